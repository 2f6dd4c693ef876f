import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT, createKeyPair } from '@csb/core'
import { csb, csbStart, type Running } from './command.ts'

const parent = await mkdtemp(join(tmpdir(), 'csb-json-'))
const folder = join(parent, 'node')
const { did } = createKeyPair()
/** What earlier commands answered, by name. */
const answers: Record<string, Record<string, unknown>> = {}
let running: Running

const agent = [process.execPath, '-e', "process.stdout.write(JSON.stringify({result:{text:'done'}}))"]
/** One for all. */
const PASSPHRASES = Object.fromEntries(
  ['CSB_PASSPHRASE', 'CSB_NEW_PASSPHRASE', 'CSB_RECOVERY_PASSPHRASE'].map((name) => [name, 'correct horse']),
)
const answer = (name: string, member: string): string => String(answers[name]?.[member])

type Case = {
  readonly name: string
  readonly args?: () => readonly string[]
  readonly input?: string
  readonly code?: number
}

/** Every command, in an order in which each finds what it needs. Those that ask for what there is not end with an error. */
const CASES: readonly Case[] = [
  { name: 'status' },
  { name: 'note add', args: () => ['The mill turns.'] },
  { name: 'note list' },
  { name: 'note show', args: () => [answer('note add', 'id')] },
  { name: 'note rm', args: () => [answer('note add', 'id')] },
  { name: 'note restore', args: () => [answer('note add', 'id')] },
  { name: 'label note', args: () => [answer('note add', 'id'), 'sealed:owner'] },
  // nobody can be asked, and nothing was approved
  { name: 'note forget', args: () => [answer('note add', 'id'), '--reason', 'test'], code: EXIT.input },
  { name: 'forget', args: () => [answer('note add', 'id'), '--reason', 'test', '--yes'] },
  { name: 'import', args: () => [join(parent, 'vault')] },
  { name: 'files put', args: () => ['runs/one', 'a.txt'], input: 'hello\n' },
  { name: 'label file', args: () => ['runs/one', 'a.txt', 'sealed:owner'] },
  { name: 'files refs' },
  { name: 'files ls', args: () => ['runs/one'] },
  { name: 'files cat', args: () => ['runs/one', 'a.txt'] },
  { name: 'files log', args: () => ['runs/one'] },
  { name: 'files branch', args: () => ['runs/two', 'runs/one'] },
  { name: 'files rm', args: () => ['runs/two', 'a.txt'] },
  { name: 'files diff', args: () => ['runs/one', 'runs/two'] },
  { name: 'files merge', args: () => ['runs/two', 'runs/one'] },
  { name: 'files recycle' },
  { name: 'files restore', args: () => ['a.txt', 'runs/three'] },
  { name: 'files snapshot', args: () => ['before', 'runs/three'] },
  { name: 'files fsck' },
  { name: 'files gc' },
  { name: 'files export', args: () => [join(parent, 'home.tar')] },
  // it is here already
  { name: 'files import', args: () => [join(parent, 'home.tar')], code: EXIT.input },
  { name: 'files credential', args: () => ['store'], input: 'protocol=http\nhost=127.0.0.1\n' },
  { name: 'explain', args: () => [answer('files put', 'commit')] },
  { name: 'agent attach', args: () => ['clerk', '--', ...agent] },
  { name: 'agent list' },
  { name: 'agent card', args: () => ['clerk'] },
  { name: 'send', args: () => ['clerk', 'Good morning.'] },
  { name: 'agent detach', args: () => ['clerk'] },
  { name: 'find', args: () => ['--capability', 'nothing.there'] },
  { name: 'peers' },
  { name: 'sync', args: () => [did], code: EXIT.unreachable },
  { name: 'handoff', args: () => [did, 'clerk', 'Summarise.'], code: EXIT.unreachable },
  { name: 'trust', args: () => [did, '--name', 'friend'] },
  { name: 'share', args: () => [did] },
  { name: 'inbox' },
  { name: 'delegate', args: () => ['--audience', did, '--scope', 'reports'] },
  { name: 'lease', args: () => ['--for', 'client'] },
  { name: 'grants' },
  { name: 'revoke', args: () => [answer('delegate', 'id')] },
  { name: 'gate list' },
  { name: 'gate show', args: () => ['gate_none'], code: EXIT.input },
  { name: 'gate approve', args: () => ['gate_none'], code: EXIT.input },
  { name: 'gate reject', args: () => ['gate_none'], code: EXIT.input },
  { name: 'gate return', args: () => ['gate_none'], code: EXIT.input },
  { name: 'record tail' },
  { name: 'record verify' },
  { name: 'record prove', args: () => ['0'] },
  { name: 'record export', args: () => ['--out', join(parent, 'record.jsonl')] },
  { name: 'record witnessed' },
  { name: 'record resume', code: EXIT.input },
  { name: 'key show' },
  { name: 'key rotate', args: () => ['--unsealed'] },
  { name: 'key compromise', args: () => ['--yes', '--unsealed'] },
  { name: 'key recovery new', args: () => [join(parent, 'recovery.json')] },
  { name: 'key recovery show', args: () => [join(parent, 'recovery.json')] },
  { name: 'key recover', args: () => [join(parent, 'recovery.json'), '--unsealed'] },
  { name: 'key take', args: () => [folder, '--unsealed'] },
  { name: 'key seal' },
]

/** Whose answers other tests read. */
const ELSEWHERE = ['init', 'start']

beforeAll(async () => {
  await csb(['init', '--data', folder, '--unsealed'])
  await mkdir(join(parent, 'vault'))
  await writeFile(join(parent, 'vault', 'one.md'), 'One note.')
  running = await csbStart(['--data', folder, '--port', '0'])
})
afterAll(async () => {
  await running.stop()
  await rm(parent, { recursive: true, force: true })
})

test.each(CASES)(
  'csb $name --json answers in one line of JSON and nothing else',
  async ({ name, args, input, code }) => {
    const words = [...name.split(' '), '--json', '--data', folder, ...(args?.() ?? [])]
    const ran = await csb(words, {
      env: PASSPHRASES,
      ...(input === undefined ? {} : { input }),
    })
    expect({ code: ran.code, err: ran.err }, ran.out).toEqual({ code: code ?? EXIT.ok, err: '' })
    expect(ran.out).toMatch(/^[{[].*[}\]]\n$/)
    answers[name] = JSON.parse(ran.out) as Record<string, unknown>
    expect(Object.hasOwn(answers[name], 'error')).toBe(code !== undefined)
  },
)

test('no command is left out', async () => {
  const rowsOf = (help: string) => help.match(/^ {2}[a-z]+(?= )/gm)?.map((row) => row.trim()) ?? []
  const below = async (name: readonly string[]): Promise<string[]> => {
    const { out } = await csb([...name, '--help'])
    const own =
      name.length === 0 || out.includes('\nCommands:') ? rowsOf(out.slice(out.indexOf('\nCommands:') + 1)) : []
    if (own.length === 0) return [name.join(' ')]
    return (await Promise.all(own.map((verb) => below([...name, verb])))).flat()
  }
  expect([...CASES.map(({ name }) => name), ...ELSEWHERE].sort()).toEqual((await below([])).sort())
})
