/** A delegation from hand to hand, as people do it at the command lines of two nodes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { csb, csbStart, type Ran, type Running } from './command.ts'

const CLERK = fileURLToPath(new URL('../../harness/agents/clerk.mjs', import.meta.url))

let folder: string
let nas: Running
let friend: Running
const at = (name: string) => ['--data', join(folder, name)]

async function run(...args: string[]): Promise<Ran> {
  const ran = await csb(args)
  expect(ran.code, ran.out + ran.err).toBe(0)
  return ran
}

type Grants = {
  readonly items: readonly {
    readonly hash: string
    readonly grant: { readonly delegation: { readonly scope: string[]; readonly id: string } }
  }[]
}
const json = async <T>(...args: string[]): Promise<T> => JSON.parse((await run(...args, '--json')).out) as T

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-delegate-'))
  const made = (name: string, owner: string) => [
    '--init',
    '--unsealed',
    '--name',
    name,
    '--owner',
    owner,
    '--port',
    '0',
  ]
  nas = await csbStart([...made('nas', 'Ines'), ...at('nas')])
  friend = await csbStart([...made('friend', 'Bo \u202eevil'), ...at('friend')])
  const [address] = friend.ready['addresses'] as [string]
  await run('peers', address, ...at('nas'))
})

afterAll(async () => {
  await Promise.all([nas.stop(), friend.stop()])
  await rm(folder, { recursive: true, force: true })
})

test('a delegation is received, passed on narrower, used, and taken back', async () => {
  const [nasDid, friendDid] = [nas.ready['did'] as string, friend.ready['did'] as string]
  const { owner } = await json<{ owner: { did: string } }>('status', ...at('nas'))
  await run('trust', owner.did, '--name', 'Ines', '--ceiling', 'execute', '--clearance', 'trusted', ...at('friend'))
  await run('agent', 'attach', 'clerk', ...at('nas'), '--', process.execPath, CLERK)
  const to = ['--to', friendDid, '--to-name', 'Bo \u202eevil\u001b[2J', '--send']
  const given = ['--audience', nasDid, '--scope', 'reports', '--level', 'execute', '--depth', '1']
  const granted = await run('delegate', ...given, ...to, ...at('nas'))
  // a name that would turn letters round is shown, not obeyed, and the key stands beside it
  expect(granted.out).toContain(`Bo \\u{202e}evil\\u{1b}[2J (…${friendDid.slice(-8)})`)
  for (const steering of ['\u001b', '\u202e']) expect(granted.out).not.toContain(steering)

  const listed = await run('grants', ...at('friend'))
  expect(listed.out).toMatch(/^\* sha256:[0-9a-f]{12} {2}del_/m)
  expect(listed.out).toContain('csb delegate --from')
  const { items } = await json<Grants>('grants', ...at('friend'))
  const { hash } = items.find(({ grant }) => grant.delegation.scope[0] === 'reports') ?? expect.fail()
  const from = ['delegate', '--from', hash.slice(0, 19), ...at('friend')]
  for (const [field, ...wider] of [
    ['scope', '--scope', 'payments'],
    ['max_depth', '--depth', '1'],
    ['expires_at', '--ttl', '9d'],
    ['audience', '--audience', friendDid],
    ['revocation.max_age_ms', '--max-age', '2m'],
  ] as const) {
    const { code, err } = await csb([...from, '--to', nasDid, ...wider])
    expect([code, err]).toEqual([3, expect.stringContaining(`field: ${field}`)])
  }
  expect((await csb(from)).err).toContain('It needs --to.')
  expect((await json<Grants>('grants', ...at('friend'))).items).toHaveLength(items.length)

  const narrower = ['--scope', 'reports/weekly', '--level', 'request', '--ttl', '1h']
  const passed = await run(...from, '--to', friendDid, '--to-name', 'my agent', ...narrower)
  const { owner: self } = await json<{ owner: { did: string } }>('status', ...at('nas'))
  expect(passed.out).toContain(`(…${self.did.slice(-8)}) -> Bo`)
  expect(passed.out).toContain(`-> my agent (…${friendDid.slice(-8)})`)
  const id = /^ {2}id {4}(\S+)$/m.exec(passed.out)?.[1] ?? ''
  const send = (...more: string[]) =>
    csb(['send', 'clerk', 'hello', '--to', nasDid, '--delegation', id, ...more, ...at('friend')])
  expect((await send()).out).toContain('with authority from Ines')
  expect((await send('--scope', 'reports')).out).toContain('granted senders only')
  const inbox = await run('inbox', ...at('nas'))
  expect(inbox.out).toContain('request, for Ines')
  expect(inbox.out).toContain('ordinary: out_of_scope')
  expect(inbox.out).toContain(`(…${friendDid.slice(-8)})`)

  expect((await run('trust', ...at('friend'))).out).toContain('honoured up to execute, sees up to trusted')
  const revoked = await run('revoke', id, ...at('friend'))
  expect(revoked.out).toMatch(/^Revoked sha256:[0-9a-f]{64}:\n/)
  expect(revoked.out).toContain(`-> my agent (…${friendDid.slice(-8)}), request about reports/weekly`)
  expect((await send()).out).not.toContain('with authority')
  expect((await run('grants', ...at('friend'))).out).toContain('csb grants --all')
  expect((await run('grants', '--all', ...at('friend'))).out).toContain('REVOKED')
})

test('a lease that was received with a delegation is passed on as a file narrows it', async () => {
  const file = join(folder, 'lease.json')
  await writeFile(file, JSON.stringify({ type: 'urn:csb:lease:1', paths: ['/drafts'] }))
  const { code, err } = await csb(['delegate', '--audience', '*', '--lease', file, ...at('nas')])
  expect([code, err]).toEqual([2, expect.stringContaining('csb lease')])
  const { items } = await json<Grants>('grants', ...at('friend'))
  const { hash } = items.find(({ grant }) => grant.delegation.scope[0] === 'reports') ?? expect.fail()
  const did = nas.ready['did'] as string
  const none = await csb(['delegate', '--from', hash, '--to', did, '--lease', file, ...at('friend')])
  expect([none.code, none.err]).toEqual([3, expect.stringContaining('field: authorization_details')])
})

test('a lease is narrowed by who holds its token, without the owner, and nowhere wider', async () => {
  const lease = ['lease', '--for', 'builder', '--actions', 'list,read', '--paths', '/', '--branches', 'memory']
  const given = ['--capability', 'C', '--children', '2', '--budget', 'calls=9,tokens=100', '--ttl', '2h']
  const { token } = await json<{ token: string }>(...lease, ...given, ...at('nas'))
  const narrow = (...more: string[]) =>
    csb(['lease', '--narrow', '--for', 'child', ...more, '--json', ...at('nas')], { env: { CSB_TOKEN: token } })
  for (const [field, ...wider] of [
    ['actions', '--actions', 'list,write'],
    ['budget.tokens', '--budget', 'tokens=101'],
    ['expires_at', '--ttl', '3h'],
    ['max_children', '--children', '3'],
  ] as const) {
    const { code, out } = await narrow(...wider)
    expect([code, JSON.parse(out)]).toMatchObject([3, { error: { code: 'SCOPE_EXCEEDED', details: { field } } }])
  }
  const { code, out } = await narrow('--budget', 'tokens=10')
  expect([code, JSON.parse(out)]).toMatchObject([
    0,
    { token: expect.stringMatching(/^csb_/) as string, lease: { actions: ['list', 'read'], budget: { tokens: 10 } } },
  ])
  const none = await csb(['lease', '--narrow', '--for', 'child', ...at('nas')])
  expect([none.code, none.err]).toEqual([3, expect.stringContaining('CSB_TOKEN')])
})
