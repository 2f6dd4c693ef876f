/** csb key recovery and csb key recover as a person uses them, on two nodes that know each other, with a thief about. */
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKeyPair, systemClock, until } from '@csb/core'
import { signKeyChange } from '@csb/authority'
import { connect, createRecoveryFile, openOwner } from '@csb/node'
import { t } from '../src/texts.ts'
import { csb, csbStart, type Running, type Setting } from './command.ts'

const OLD = 'the first passphrase'
const DRAWER = 'the one in the drawer'
const NEW = 'the one after that'

let folder: string
let nas: Running
let friend: Running
const at = (name: string) => ['--data', join(folder, name)]
const inDrawer = (name: string) => join(folder, 'drawer', name)

async function json<T>(args: readonly string[], setting: Setting = {}): Promise<T> {
  const ran = await csb([...args, '--json'], setting)
  expect(ran.code, ran.out + ran.err).toBe(0)
  return JSON.parse(ran.out) as T
}

type Shown = { readonly owner: { readonly did: string; readonly recovery: string | null } }
const shownAt = (name: string) => json<Shown>(['key', 'show', ...at(name)])
const trustedAt = async (name: string) =>
  (await json<{ items: { did: string; name: string }[] }>(['trust', ...at(name)])).items

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-recovery-'))
  await mkdir(join(folder, 'drawer'))
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

test('a recovery key is made, outside of the data folder, once, and the peers hear of it', async () => {
  const { owner } = await shownAt('nas')
  expect(owner.recovery).toBeNull()
  expect((await csb(['key', 'show', ...at('nas')])).out).toContain('not set: csb key recovery new FILE')
  await json(['trust', owner.did, '--name', 'Ines', '--ceiling', 'execute', ...at('friend')])
  const env = { CSB_PASSPHRASE: OLD, CSB_NEW_PASSPHRASE: DRAWER }
  const make = (file: string, setting: Setting = { env }) =>
    csb(['key', 'recovery', 'new', file, ...at('nas')], setting)
  const inside = await make(join(folder, 'nas', 'recovery.json'))
  expect([inside.code, inside.err]).toEqual([2, expect.stringContaining('lost together with it')])
  await writeFile(inDrawer('letter'), 'dear')
  const over = await make(inDrawer('letter'))
  expect([over.code, over.err]).toEqual([2, expect.stringContaining('a file of that name already')])
  expect(await readFile(inDrawer('letter'), 'utf8')).toBe('dear')
  const none = await make(inDrawer('key'), { env: { CSB_PASSPHRASE: OLD } })
  expect([none.code, none.err]).toEqual([3, expect.stringContaining('CSB_NEW_PASSPHRASE')])
  expect((await shownAt('nas')).owner.recovery).toBeNull()

  const done = await make(inDrawer('key'))
  expect([done.code, done.err]).toEqual([0, ''])
  expect(done.out).toContain('WARNING: keep it and its passphrase away from this machine')
  const { recovery } = (await shownAt('nas')).owner
  expect(done.out).toContain(String(recovery))
  await until(
    async () => (await csb(['key', 'show', ...at('friend')])).out.includes(String(recovery).slice(0, 19)),
    30_000,
    'the friend has heard',
  )
  // the same again: broken off or not, it ends in the same
  expect((await make(inDrawer('key'))).code).toBe(0)
  const second = await make(inDrawer('second'))
  expect([second.code, second.err]).toEqual([5, expect.stringContaining('--replace')])
  expect((await shownAt('nas')).owner.recovery).toBe(recovery)
  const shown = await csb(['key', 'recovery', 'show', inDrawer('key'), ...at('nas')])
  expect(shown.out).toContain('holds it.')
  expect(await json<object>(['key', 'recovery', 'show', ...at('nas')])).toEqual({ recovery })
  const wrong = await csb(['key', 'recovery', 'show', inDrawer('letter'), ...at('nas')])
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('no file with a recovery key')])
})

test('one that was written and not named yet is named by the same command, and none that somebody else put there', async () => {
  const { owner } = await shownAt('friend')
  const [broken, planted] = [inDrawer('broken'), inDrawer('planted')]
  const init = { directory: join(folder, 'friend'), owner: { name: 'friend', did: owner.did } }
  const { digest } = await createRecoveryFile(broken, { ...init, passphrase: DRAWER })
  await createRecoveryFile(planted, { ...init, passphrase: 'of somebody else' })
  const make = (file: string) =>
    csb(['key', 'recovery', 'new', file, ...at('friend')], { env: { CSB_NEW_PASSPHRASE: DRAWER } })
  const refused = await make(planted)
  expect([refused.code, refused.err]).toEqual([3, expect.stringContaining(t('message.PASSPHRASE.wrong'))])
  expect((await shownAt('friend')).owner.recovery).toBeNull()
  const before = await readFile(broken, 'utf8')
  expect((await make(broken)).err).toBe('')
  expect((await shownAt('friend')).owner.recovery).toBe(digest)
  expect(await readFile(broken, 'utf8')).toBe(before)
})

test('a thief changes the key, and the owner gets it back, here and at the peer', async () => {
  const { owner } = await shownAt('nas')
  // with the folder and the passphrase of the owner
  const [old, thief] = [await openOwner(join(folder, 'nas'), OLD), createKeyPair()]
  const statement = signKeyChange({ old, next: thief, seq: 1, effectiveAt: systemClock.now() })
  await (await connect(join(folder, 'nas'))).call('POST', '/v1/keys', { statement })
  await until(
    async () => (await trustedAt('friend')).some(({ did }) => did === thief.did),
    30_000,
    'the friend believes the thief',
  )
  expect((await csb(['key', 'show', ...at('nas')])).out).toContain('csb key recover FILE')
  const recover = ['key', 'recover', inDrawer('key'), ...at('nas')]
  const badly = await csb(recover, { env: { CSB_RECOVERY_PASSPHRASE: OLD, CSB_NEW_PASSPHRASE: NEW } })
  expect([badly.code, badly.err]).toEqual([3, expect.stringContaining(t('message.PASSPHRASE.wrong'))])
  const unasked = await csb(recover, { env: { CSB_NEW_PASSPHRASE: NEW } })
  expect([unasked.code, unasked.err]).toEqual([3, expect.stringContaining('CSB_RECOVERY_PASSPHRASE')])

  const done = await csb(recover, { env: { CSB_RECOVERY_PASSPHRASE: DRAWER, CSB_NEW_PASSPHRASE: NEW } })
  expect([done.code, done.err]).toEqual([0, ''])
  const { owner: now } = await shownAt('nas')
  expect(now.did).not.toBe(owner.did)
  expect(now.did).not.toBe(thief.did)
  expect(now.recovery).toBe(owner.recovery)
  expect(done.out).toContain(`The key is ${now.did} now.`)
  await until(
    async () => {
      const dids = (await trustedAt('friend')).map(({ did }) => did)
      return dids.includes(now.did) && !dids.includes(thief.did)
    },
    30_000,
    'the friend believes the owner',
  )
  expect((await csb(['key', 'show', ...at('nas')])).out).toContain(`${owner.did} was recovered: ${now.did} follows`)
  const delegate = [
    'delegate',
    '--audience',
    String(friend.ready['did']),
    '--to',
    String(friend.ready['did']),
    '--send',
  ]
  expect((await csb([...delegate, ...at('nas')], { env: { CSB_PASSPHRASE: NEW } })).err).toBe('')
  expect((await csb(['record', 'verify', ...at('nas')])).code).toBe(0)
})

test('a node that is stopped is recovered too, and starts with the new key', async () => {
  await nas.stop()
  const before = JSON.parse(await readFile(join(folder, 'nas', 'identity.json'), 'utf8')) as { owner: { did: string } }
  await copyFile(inDrawer('key'), inDrawer('copy'))
  const ran = await csb(['key', 'recover', inDrawer('copy'), '--stolen', '--unsealed', '--json', ...at('nas')], {
    env: { CSB_RECOVERY_PASSPHRASE: DRAWER },
  })
  expect([ran.code, ran.err]).toEqual([0, ''])
  const done = JSON.parse(ran.out) as { did: string; before: string; unreached: { did: string }[] }
  expect(done.before).toBe(before.owner.did)
  expect(done.unreached.map(({ did }) => did)).toContain(friend.ready['did'])
  nas = await csbStart(['--port', '0', ...at('nas')])
  expect((await shownAt('nas')).owner.did).toBe(done.did)
  const [address] = friend.ready['addresses'] as [string]
  await json(['peers', address, ...at('nas')])
  await until(
    async () => (await trustedAt('friend')).some(({ did }) => did === done.did),
    30_000,
    'the friend hears of it when the node is back',
  )
})
