/** By what right a command asks in a run of an agent: real runs of a real agent, that finds all of the owner's files. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { EXIT } from '@csb/core'
import { askToForget, connect, type Client } from '@csb/node'
import { agentCommands } from '../src/commands/agents.ts'
import { authorityCommands } from '../src/commands/authority.ts'
import { fileCommands } from '../src/commands/files.ts'
import { gateCommands } from '../src/commands/gate.ts'
import { keyCommands } from '../src/commands/keys.ts'
import { leaseCommands } from '../src/commands/leases.ts'
import { nodeCommands } from '../src/commands/node.ts'
import { noteCommands } from '../src/commands/notes.ts'
import { peerCommands } from '../src/commands/peers.ts'
import { recordCommands } from '../src/commands/record.ts'
import { csb, csbStart, type Ran, type Running } from './command.ts'

const BUILDERS = [
  agentCommands,
  authorityCommands,
  fileCommands,
  gateCommands,
  keyCommands,
  leaseCommands,
  nodeCommands,
  noteCommands,
  peerCommands,
  recordCommands,
]
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const SOURCES = fileURLToPath(new URL('../src', import.meta.url))
/** Calls `csb` with each list of arguments that its message says, as an agent does that was talked into it. */
const PUPPET = `
  import { spawn } from 'node:child_process'
  import { once } from 'node:events'
  import { text } from 'node:stream/consumers'
  const { message } = JSON.parse(await text(process.stdin))
  const begin = (args) => spawn(process.execPath, ['--conditions=csb-source', ${JSON.stringify(MAIN)}, ...args])
  const ran = await Promise.all(
    JSON.parse(message.parts[0].text).map(async (args) => {
      const child = begin(args)
      const ended = once(child, 'exit')
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended])
      return { code, out, err }
    }),
  )
  process.stdout.write(JSON.stringify({ result: { text: JSON.stringify(ran) } }))`
const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'
const NOTE = 'mem_1700000000000_aaaa'
/** A run that was told where and given a token, though nobody is there. */
const LENT = { CSB_RUN: 'run_x', CSB_URL: 'http://127.0.0.1:9', CSB_TOKEN: 'csb_lent' }

/** What takes the owner's key, as it is called. */
const OWNERS: readonly (readonly string[])[] = [
  ['key', 'seal'],
  ['key', 'show'],
  ['key', 'rotate', '--unsealed'],
  ['key', 'compromise', '--yes', '--unsealed'],
  ['key', 'take', '.'],
  ['key', 'recovery', 'new', 'recovery.json'],
  ['key', 'recovery', 'show'],
  ['key', 'recover', 'recovery.json'],
  ['gate', 'approve', 'card', '--yes', '--digest', 'sha256:x'],
  ['gate', 'reject', 'card'],
  ['gate', 'return', 'card'],
  ['delegate', '--audience', '*'],
  ['share', DID],
  ['trust', DID],
  ['lease', '--for', 'me'],
  ['revoke', 'sha256:x'],
]
/** The same, where others of its forms are asked by the token. */
const PARTLY: readonly (readonly string[])[] = [
  ['trust', DID, '--remove'],
  ['delegate', '--from', 'sha256:x', '--to', DID],
  ['init', '--join', '.'],
  ['forget', NOTE, '--yes'],
  ['note', 'forget', NOTE, '--digest', 'sha256:x'],
]
/** What is asked by the token, or of nobody. */
const ASKING = `
  init start status import forget find send peers sync handoff inbox grants explain
  note: add list show rm restore forget
  files: refs ls cat put rm log diff merge branch snapshot recycle restore fsck gc export import credential
  agent: attach list detach card
  gate: list show
  label: file note
  record: tail verify prove export witnessed resume`
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [, group, names = ''] = /^ *(?:([a-z]+): )?(.*)$/.exec(line) ?? []
    return names.split(' ').map((name) => (group === undefined ? name : `${group} ${name}`))
  })

let parent: string
let folder: string
let nas: Running
/** as the owner */
let owner: Client

type Header = {
  readonly seq: number
  readonly run: string | null
  readonly lease: string | null
  readonly operation: string
  readonly outcome: string
  readonly code: string | null
  readonly actor: string | null
}
type Said = { readonly task: { readonly artifacts: readonly { readonly parts: readonly { text: string }[] }[] } }

const recorded = async () => (await owner.call<{ items: { header: Header }[] }>('GET', '/v1/record?limit=200')).items

/** What the record tells of a work, oldest first. */
async function linesOf(work: () => Promise<unknown>): Promise<readonly Header[]> {
  const before = (await recorded()).length
  await work()
  const headers = (await recorded()).map(({ header }) => header)
  return headers.filter(({ seq }) => seq >= before).toSorted((a, b) => a.seq - b.seq)
}

/** What came of each command that a run of the agent called, with the owner's folder named. */
async function inRun(...commands: readonly (readonly string[])[]): Promise<readonly Ran[]> {
  const text = JSON.stringify(commands.map((args) => ['--data', folder, '--json', ...args]))
  const message = { messageId: `msg_${randomUUID()}`, role: 'ROLE_USER', parts: [{ text }] }
  const said = await owner.call<Said>('POST', '/v1/agents/puppet/send', { params: { message } })
  return JSON.parse(said.task.artifacts[0]?.parts[0]?.text ?? '[]') as Ran[]
}

/** Everything in the data folder but the database. */
async function filesOf(): Promise<readonly string[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile())
  return Promise.all(entries.map(async ({ name }) => `${name} ${await readFile(join(folder, name), 'base64')}`))
}

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'csb-right-'))
  folder = join(parent, 'nas')
  nas = await csbStart(['--init', '--unsealed', '--name', 'nas', '--owner', 'Ines', '--port', '0', '--data', folder])
  owner = await connect(folder)
  const command = [process.execPath, '--input-type=module', '-e', PUPPET]
  const skills = [{ id: 'obey', name: 'obey', description: 'does as it is told' }]
  await owner.call('POST', '/v1/agents', { id: 'puppet', name: 'puppet', description: 'a puppet', command, skills })
})

afterEach(() => vi.unstubAllEnvs())

afterAll(async () => {
  await nas.stop()
  await rm(parent, { recursive: true, force: true })
})

const answerOf = ({ code, out }: Ran) => ({ exit: code, ...(JSON.parse(out) as object) })

describe('a run of an agent', () => {
  test('L1.1 asks by its own token: what it may not do is not done as the owner instead', async () => {
    const entry = { type: 'event', level: 'warm', content: 'The spare key hangs behind the mill.' }
    const { id } = await owner.call<{ id: string }>('POST', '/v1/memory', { entry })
    const review = await askToForget(owner, { ids: [id] })
    const { id: card } = review.card
    const before = await filesOf()
    let ran: readonly Ran[] = []
    const lines = await linesOf(async () => {
      ran = await inRun(
        ['note', 'add', 'By the agent.'],
        ['forget', id],
        ['gate', 'show', card],
        ['gate', 'approve', card, '--yes', '--digest', review.digest],
        ['key', 'show'],
      )
    })
    const alone = { exit: EXIT.refused, error: { code: 'DENIED', details: { reason: 'run_of_agent' } } }
    expect(ran.map(answerOf)).toMatchObject([
      { exit: EXIT.ok, label: 'private:agent' },
      {
        exit: EXIT.refused,
        error: { code: 'GATE_REQUIRED', details: { card: expect.stringMatching(/^gate_/) as string } },
      },
      { exit: EXIT.refused, error: { code: 'SCOPE_EXCEEDED' } },
      alone,
      alone,
    ])
    // the run of the agent did that, under its lease, and the owner sent it a message
    const own = lines.filter(({ run }) => run?.startsWith('task_'))
    expect(new Set(own.map(({ run, actor, lease }) => `${run} ${actor} ${lease}`)).size).toBe(1)
    expect(own.map(({ operation, outcome, code }) => [operation, outcome, code].join(' ')).toSorted()).toEqual([
      // what came of it is kept under its lease too, and the card that was opened
      'agents.send done ',
      'gate.show refused SCOPE_EXCEEDED',
      'memory.create done ',
      'memory.forget done ',
      'memory.forget refused GATE_REQUIRED',
    ])
    const { did, owner: ines } = await owner.call<{ did: string; owner: { did: string } }>('GET', '/v1/status')
    expect(own[0]?.actor).toBe(did)
    const others = lines.filter(({ actor }) => actor === ines.did)
    expect(others.map(({ operation }) => operation)).toEqual(['agents.send'])
    const explained = await owner.call<{ lease: { chain: { to: { name: string } }[] } }>(
      'GET',
      `/v1/record/runs/${own[0]?.run ?? ''}`,
    )
    expect(explained.lease.chain.at(-1)?.to.name).toBe('puppet')
    // and nothing that was refused has changed anything
    expect(await owner.call('GET', `/v1/gate/${card}`)).toMatchObject({ state: 'open', digest: review.digest })
    await owner.call('GET', `/v1/memory/${id}`)
    expect(await filesOf()).toEqual(before)
  })

  test.each([
    ['that was given no token', { CSB_RUN: 'run_x' }],
    ['whose token was taken away on the way', { CSB_RUN: 'run_x', CSB_URL: 'http://127.0.0.1:9', CSB_TOKEN: '' }],
  ])('L1.1 %s asks nothing', async (_name, env) => {
    let ran: Ran | undefined
    const lines = await linesOf(async () => {
      ran = await csb(['note', 'add', 'As the owner?', '--data', folder], { env })
    })
    expect(ran).toMatchObject({ code: EXIT.refused, out: '', err: expect.stringContaining('CSB_TOKEN') as string })
    expect(ran?.err).toContain('[LEASE_REQUIRED]')
    expect(lines).toEqual([])
  })

  test('L1.1 is not let in by a token of its own making, and the record says so', async () => {
    let ran: Ran | undefined
    const env = { CSB_TOKEN: 'csb_made-up' }
    const lines = await linesOf(async () => {
      ran = await csb(['note', 'add', 'As the owner?', '--data', folder], { env })
    })
    expect(ran).toMatchObject({
      code: EXIT.refused,
      out: '',
      err: expect.stringContaining('[UNAUTHENTICATED]') as string,
    })
    expect(lines).toMatchObject([{ operation: 'memory.create', outcome: 'refused', lease: null }])
  })
})

describe('what is the owner’s alone', () => {
  /** What a command says, called here with what a run was given: its error by --json, and its exit code. */
  async function refusalOf(args: readonly string[]) {
    const program = builtCommands()
    const said: string[] = []
    const writing = vi.spyOn(process.stdout, 'write').mockImplementation((text) => said.push(String(text)) > 0)
    try {
      await program.parseAsync([...args, '--data', join(parent, 'nowhere'), '--json'], { from: 'user' })
      return { exit: process.exitCode, ...(JSON.parse(said.join('')) as object) }
    } finally {
      writing.mockRestore()
      process.exitCode = undefined
    }
  }

  test.each([...OWNERS, ...PARTLY].map((args) => [args.join(' '), args] as const))(
    'csb %s is refused before anything is read',
    async (_name, args) => {
      for (const [name, value] of Object.entries(LENT)) vi.stubEnv(name, value)
      // a folder that is not there, and a node that does not answer, would be told otherwise
      expect(await refusalOf(args)).toMatchObject({
        exit: EXIT.refused,
        error: { code: 'DENIED', details: { reason: 'run_of_agent' } },
      })
      expect(await readdir(parent)).toEqual(['nas'])
    },
  )

  test('and every other command asks by the token: one that is new must be said to be of either kind', () => {
    const names = builtCommands().commands.flatMap((command) => leavesOf(command))
    const isOwners = (name: string) => OWNERS.some((args) => args.join(' ').startsWith(name))
    expect(names.filter((name) => !isOwners(name)).toSorted()).toEqual(ASKING.toSorted())
  })

  test('the owner’s token is read in one place, which knows of runs', async () => {
    const paths = (await readdir(SOURCES, { recursive: true })).filter((path) => path.endsWith('.ts'))
    const texts = await Promise.all(paths.map(async (path) => [path, await readFile(join(SOURCES, path), 'utf8')]))
    const reading = /\b(?:connect|ownerAccess)\b[^']*'@csb\/node'|readText\([^)]*'token'\)/
    expect(texts.filter(([, text]) => reading.test(text ?? '')).map(([path]) => path)).toEqual(['right.ts'])
  })
})

/** All commands, as main.ts puts them together. */
function builtCommands(): Command {
  const program = new Command('csb').enablePositionalOptions()
  for (const build of BUILDERS) build(program)
  const everyOne = (command: Command): Command[] => [command, ...command.commands.flatMap(everyOne)]
  for (const command of everyOne(program)) command.option('-d, --data <dir>').option('--json')
  return program
}

function leavesOf(command: Command, before = ''): string[] {
  const name = `${before}${command.name()}`
  return command.commands.length === 0 ? [name] : command.commands.flatMap((one) => leavesOf(one, `${name} `))
}
