/** csb key as a person uses it, on two nodes that know each other. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '@csb/core'
import { csb, csbStart, type Running, type Setting } from './command.ts'

const OLD = 'the first passphrase'
const NEW = 'the second passphrase'
const THIRD = 'the third passphrase'

let folder: string
let nas: Running
let friend: Running
const at = (name: string) => ['--data', join(folder, name)]

async function json<T>(args: readonly string[], setting: Setting = {}): Promise<T> {
  const ran = await csb([...args, '--json'], setting)
  expect(ran.code, ran.out + ran.err).toBe(0)
  return JSON.parse(ran.out) as T
}

type Shown = {
  readonly owner: { readonly did: string; readonly sealed: boolean }
  readonly node: { readonly did: string; readonly grants: readonly string[] }
  readonly statements: readonly object[]
}
const shownAt = (name: string) => json<Shown>(['key', 'show', ...at(name)])
const trustedAt = async (name: string) =>
  (await json<{ items: { did: string; name: string; ceiling: string }[] }>(['trust', ...at(name)])).items

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-key-'))
  nas = await csbStart(['--init', '--name', 'nas', '--owner', 'Ines', '--port', '0', ...at('nas')], {
    env: { CSB_PASSPHRASE: OLD },
  })
  friend = await csbStart(['--init', '--unsealed', '--name', 'friend', '--port', '0', ...at('friend')])
  const [address] = friend.ready['addresses'] as [string]
  await json(['peers', address, ...at('nas')])
})

afterAll(async () => {
  await Promise.all([nas.stop(), friend.stop()])
  await rm(folder, { recursive: true, force: true })
})

test('the key is changed, shown, and a peer that trusts the old one trusts the new one', async () => {
  const { owner } = await shownAt('nas')
  expect(owner.sealed).toBe(true)
  await json(['trust', owner.did, '--name', 'Ines', '--ceiling', 'execute', ...at('friend')])
  const wrong = await csb(['key', 'rotate', ...at('nas')], { env: { CSB_PASSPHRASE: NEW, CSB_NEW_PASSPHRASE: NEW } })
  expect([wrong.code, wrong.err]).toEqual([3, expect.stringContaining('The passphrase is wrong.')])
  const none = await csb(['key', 'rotate', ...at('nas')], { env: { CSB_PASSPHRASE: OLD } })
  expect([none.code, none.err]).toEqual([3, expect.stringContaining('CSB_NEW_PASSPHRASE')])
  expect((await shownAt('nas')).owner).toEqual(owner)

  const ran = await csb(['key', 'rotate', ...at('nas')], { env: { CSB_PASSPHRASE: OLD, CSB_NEW_PASSPHRASE: NEW } })
  expect([ran.code, ran.err]).toEqual([0, ''])
  const { owner: next } = await shownAt('nas')
  expect(ran.out).toContain(`The key is ${next.did} now.`)
  expect(ran.out).toContain(owner.did)
  const known = await until(
    async () => (await trustedAt('friend')).find(({ did }) => did === next.did),
    30_000,
    'the friend has heard',
  )
  expect(known).toMatchObject({ name: 'Ines', ceiling: 'execute' })
  const text = await csb(['key', 'show', ...at('friend')])
  expect(text.out).toContain(`${owner.did} was followed by ${next.did}`)
  // what the new key signs counts there
  const friendDid = friend.ready['did'] as string
  const delegate = ['delegate', '--audience', friendDid, '--to', friendDid, '--send', ...at('nas')]
  const refused = await csb(delegate, { env: { CSB_PASSPHRASE: OLD } })
  expect(refused.code).toBe(3)
  expect((await csb([...delegate, '--level', 'request'], { env: { CSB_PASSPHRASE: NEW } })).err).toBe('')
})

test('all that lets a node act is named where its key is shown, the grant it stands on first', async () => {
  const { node } = await shownAt('friend')
  const { hash } = await json<{ hash: string }>([
    'delegate',
    '--audience',
    node.did,
    '--scope',
    'reports',
    ...at('friend'),
  ])
  const { node: after } = await shownAt('friend')
  expect(after.grants[0]).toBe(node.grants[0])
  expect(new Set(after.grants)).toEqual(new Set([...node.grants, hash]))
  const { out } = await csb(['key', 'show', ...at('friend')])
  for (const one of after.grants) expect(out).toContain(one.slice(0, 19))
})

test('a lease for a part is told how the node is as far as it may know', async () => {
  const lease = [
    'lease',
    '--for',
    'low',
    '--actions',
    'list,read',
    '--paths',
    '/x',
    '--branches',
    'runs/*',
    ...at('friend'),
  ]
  const { token } = await json<{ token: string }>(lease)
  const { url } = await json<{ url: string }>(['status', ...at('friend')])
  const env = { CSB_TOKEN: token, CSB_URL: url }
  const { code, out, err } = await csb(['status'], { env })
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain('friend')
  expect(out).not.toContain('record')
})

test('a key in other hands: nothing happens unasked, then all that it granted is void here and there', async () => {
  const env = { CSB_PASSPHRASE: NEW, CSB_NEW_PASSPHRASE: THIRD }
  const friendDid = friend.ready['did'] as string
  const given = await json<{ hash: string }>(
    ['delegate', '--audience', friendDid, '--to', friendDid, '--send', ...at('nas')],
    { env },
  )
  const before = await shownAt('nas')
  const unasked = await csb(['key', 'compromise', ...at('nas')], { env })
  expect([unasked.code, unasked.err]).toEqual([2, expect.stringContaining('--yes')])
  const badly = await csb(['key', 'compromise', 'did:key:z6Mknone', ...at('nas')], { env })
  expect(badly.code).toBe(2)
  const stranger = await csb(['key', 'compromise', friendDid, '--yes', ...at('nas')], { env })
  expect(stranger.code).toBe(4)
  expect(await shownAt('nas')).toEqual(before)

  const done = await json<{ did: string; before: string; ended: number }>(
    ['key', 'compromise', '--yes', ...at('nas')],
    {
      env,
    },
  )
  expect(done.before).toBe(before.owner.did)
  expect(done.ended).toBeGreaterThan(0)
  const stateOf = async (name: string) =>
    (await json<{ items: { hash: string; revoked: boolean }[] }>(['grants', ...at(name)])).items.find(
      ({ hash }) => hash === given.hash,
    )?.revoked
  expect(await stateOf('nas')).toBe(true)
  await until(async () => (await stateOf('friend')) === true, 30_000, 'it is void at the friend')
  const listed = (await csb(['trust', ...at('friend')])).out.split('\n')
  const lineOf = (did: string) => listed.find((line) => line.includes(did.slice(-8)))
  expect(lineOf(done.before)).toMatch(/not honoured any more, since 20[0-9-]+T[0-9:.]+Z/)
  expect(lineOf(done.did)).toContain('honoured up to execute')
  expect((await shownAt('nas')).owner.did).toBe(done.did)
  // two changes: the one before is told before
  const times = [...(await csb(['key', 'show', ...at('nas')])).out.matchAll(/^ {2}(20\S+Z) {2}did/gm)].map(
    ([, when]) => when,
  )
  expect(times).toHaveLength(2)
  expect(times).toEqual(times.toSorted())
  expect((await csb(['note', 'add', 'still mine', ...at('nas')])).code).toBe(0)
  expect((await csb(['record', 'verify', ...at('nas')])).code).toBe(0)
})

test('a change of the key that broke off is told where the key is shown', async () => {
  const { owner } = await shownAt('nas')
  const next = join(folder, 'nas', 'owner.next.json')
  await writeFile(next, JSON.stringify([{ pid: 1, at: 0, file: { v: 1, name: 'Ines', did: 'did:key:z6Mknext' } }]))
  const begun = (await csb(['key', 'show', ...at('nas')])).out
  await rm(next)
  expect(begun).toContain(owner.did)
  expect(begun).toContain('did:key:z6Mknext')
  expect(begun).toContain('csb key rotate')
  expect((await csb(['key', 'show', ...at('nas')])).out).not.toContain('csb key rotate')
})
