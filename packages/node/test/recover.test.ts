import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createKeyPair, systemClock, until, type Identity, type KeyPair, type KeyStatement } from '@csb/core'
import { signCompromise, signKeyChange } from '@csb/authority'
import { key, openStore } from '@csb/store'
import { delegateTo, type Desk } from '../src/authorise.ts'
import { connect } from '../src/client.ts'
import { pathOf, readJson, writeJson } from '../src/data-folder.ts'
import { openOwner, readOwner } from '../src/owner.ts'
import { nameRecovery, recoverOwner } from '../src/recover.ts'
import { createRecoveryFile, openRecoveryFile } from '../src/recovery-file.ts'
import { rotateOwner, settleOwner } from '../src/rotate.ts'
import { startNode } from '../src/start-node.ts'
import { takeOwner } from '../src/take-owner.ts'
import { createFolder, made, settingsIn, started } from './folder.ts'

const RECOVERING = fileURLToPath(new URL('recovering.ts', import.meta.url))
const DELEGATING = { audience: ['*'], scope: ['reports'], level: 'request', ttlMs: 600_000 } as const
const PASSPHRASE = 'kept in a drawer'

async function folder(options: Parameters<typeof made>[1] = {}): Promise<string> {
  const directory = await createFolder()
  await made(directory, { ownerName: 'Ines', ...options })
  return directory
}

/** As a command stands: what was broken off is finished first. */
async function deskOf(directory: string): Promise<Desk> {
  const client = await connect(directory)
  await settleOwner(directory, client)
  return { directory, client, owner: await openOwner(directory, undefined), now: systemClock.now() }
}

async function drawer(): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'csb-drawer-'))
  onTestFinished(() => rm(place, { recursive: true, force: true }))
  return place
}

/** A node that runs, with a recovery key set. */
async function recoverable(options: Parameters<typeof made>[1] = {}) {
  const directory = await folder(options)
  const file = join(await drawer(), 'recovery.json')
  const node = await startNode(directory, await settingsIn(directory))
  const desk = await deskOf(directory)
  const owner = { name: 'Ines', did: desk.owner.did }
  const { key: recovery, digest } = await createRecoveryFile(file, { directory, owner, passphrase: PASSPHRASE })
  await nameRecovery(desk, digest)
  return { directory, file, node, desk, recovery, digest }
}

type Spoken = { readonly items: readonly KeyStatement[]; readonly recovery: string | null }
/** What is said of keys: the same at every node of the owner, beside the grant by which each acts. */
const spoken = async ({ client }: Pick<Desk, 'client'>): Promise<Spoken> => {
  const { items, recovery } = await client.call<Spoken>('GET', '/v1/keys')
  return { items, recovery }
}
const rules = async (directory: string) =>
  (await delegateTo(await deskOf(directory), DELEGATING)).grant.delegation.grantor_key
const identityOf = async (directory: string) => (await readJson(directory, 'identity')) as Identity
const isThief = (thief: { readonly did: string }) => (one: KeyStatement) => JSON.stringify(one).includes(thief.did)

/** Somebody who has the owner's key changes it, as a peer would bring that here. */
async function steal({ client, owner, now }: Desk, thief = createKeyPair()): Promise<KeyPair> {
  const statement = signKeyChange({ old: owner, next: thief, seq: 1, effectiveAt: now })
  await client.call('POST', '/v1/keys', { statement })
  return thief
}

describe('the owner gets the key back', () => {
  test('L1.3 from a thief who changed it, while the node runs, and what the thief has is worth nothing', async () => {
    const { directory, node, desk, recovery, digest } = await recoverable()
    expect(await spoken(desk)).toMatchObject({ recovery: digest })
    expect((await readOwner(directory)).statements).toHaveLength(1)
    const granted = (await delegateTo(desk, DELEGATING)).grant
    const thief = await steal({ ...desk, now: systemClock.now() + 1 })
    expect(await desk.client.call('GET', '/v1/status')).toMatchObject({ owner: { did: thief.did } })

    const done = await recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false })
    // it was changed by somebody else: so it is in other hands
    expect(done).toMatchObject({ before: desk.owner.did, ended: expect.any(Number) as number })
    expect(done.ended).toBeGreaterThanOrEqual(3)
    expect((await readOwner(directory)).did).toBe(done.did)
    expect((await identityOf(directory)).owner).toEqual({ name: 'Ines', did: done.did })
    expect((await identityOf(directory)).delegations).toEqual([])
    const now = await deskOf(directory)
    expect(await now.client.call('GET', '/v1/status')).toMatchObject({ owner: { did: done.did } })
    expect((await spoken(now)).items.some(isThief(thief))).toBe(false)
    expect(await rules(directory)).toBe(done.did)
    const { items } = await now.client.call<{ items: { revoked: boolean; grant: typeof granted }[] }>(
      'GET',
      '/v1/grants',
    )
    expect(items.find(({ grant }) => grant.delegation.id === granted.delegation.id)?.revoked).toBe(true)
    await expect(steal(desk, thief)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await readdir(directory)).not.toContain('owner.next.json')
    await node.stop()

    // a node that joins by this folder knows all of it from the start
    const before = (await readOwner(directory)).statements
    const other = await createFolder()
    await made(other, { join: { directory } })
    await started(other)
    expect(await spoken(await deskOf(other))).toEqual({ items: before, recovery: digest })
  })

  test('L1.3 without the key and its passphrase, at a node that is stopped; what it granted holds', async () => {
    const { directory, node, desk, recovery } = await recoverable()
    const granted = (await delegateTo(desk, DELEGATING)).grant
    await node.stop()
    await rm(pathOf(directory, 'owner'))
    const passphrase = 'a new one, long'
    const done = await recoverOwner({ directory, recovery, custody: { passphrase }, isStolen: false })
    expect(done).toMatchObject({ before: desk.owner.did, reached: [], ended: null })
    expect((await identityOf(directory)).owner).toEqual({ name: 'Ines', did: done.did })
    const owner = await readOwner(directory)
    expect(owner).toMatchObject({ name: 'Ines', did: done.did, isSealed: true })
    expect((await openOwner(directory, passphrase)).did).toBe(done.did)
    await started(directory)
    const client = await connect(directory)
    expect((await spoken({ client })).items).toEqual(owner.statements)
    const { items } = await client.call<{ items: { revoked: boolean; grant: typeof granted }[] }>('GET', '/v1/grants')
    expect(items.find(({ grant }) => grant.delegation.id === granted.delegation.id)?.revoked).toBe(false)
    expect(await client.call('GET', '/v1/record/verify')).toMatchObject({ ok: true })
  })

  test('L1.3 after changes of the key, by the recovery key that the first one named', async () => {
    const { directory, node, desk, recovery, digest } = await recoverable()
    const changed = await rotateOwner({ ...desk, now: systemClock.now() + 1 }, { custody: 'unsealed', isStolen: false })
    expect(await spoken(desk)).toMatchObject({ recovery: digest })
    const done = await recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: true })
    expect(done.before).toBe(changed.did)
    expect(await rules(directory)).toBe(done.did)
    expect((await spoken(await deskOf(directory))).recovery).toBe(digest)
    await node.stop()
  })

  test('L1.3 where the thief took the very folder: the key that is named is recovered, with the node stopped', async () => {
    const { directory, node, desk, recovery } = await recoverable()
    const thief = await rotateOwner({ ...desk, now: systemClock.now() + 1 }, { custody: 'unsealed', isStolen: false })
    const recover = (old: string) => recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false, old })
    await expect(recover(desk.owner.did)).rejects.toMatchObject({ code: 'HOME_LOCKED' })
    expect(await readdir(directory)).not.toContain('owner.next.json')
    await node.stop()
    const done = await recover(desk.owner.did)
    const again = await startNode(directory, await settingsIn(directory))
    expect(await rules(directory)).toBe(done.did)
    const { items } = await spoken(await deskOf(directory))
    expect(items.filter((one) => 'keychange' in one)).toEqual([])
    expect(items.filter((one) => !('recovery' in one)).some(isThief(thief))).toBe(false)
    await again.stop()
  })

  test('L1.3 where the thief made the command line useless: the node is to be stopped, and then it goes', async () => {
    const { directory, node, desk, recovery } = await recoverable()
    const thief = await steal({ ...desk, now: systemClock.now() + 1 })
    await desk.client.call('POST', '/v1/keys', {
      statement: signCompromise(desk.owner.did, systemClock.now() + 2, thief),
    })
    const before = await readFile(pathOf(directory, 'owner'), 'utf8')
    const recover = () => recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false })
    await expect(recover()).rejects.toMatchObject({ code: 'HOME_LOCKED', details: { pid: process.pid } })
    expect(await readFile(pathOf(directory, 'owner'), 'utf8')).toBe(before)
    expect(await readdir(directory)).not.toContain('owner.next.json')
    await node.stop()
    const done = await recover()
    await started(directory)
    expect(await rules(directory)).toBe(done.did)
    // what the thief said goes no further: a node that joins by this folder would not believe it
    expect((await readOwner(directory)).statements.some(isThief(thief))).toBe(false)
    const other = await createFolder()
    await made(other, { join: { directory } })
    await started(other)
    expect((await spoken(await deskOf(other))).items).toEqual((await readOwner(directory)).statements)
  })

  test.each([['while it runs'], ['while it is stopped']])(
    'not by another recovery key, %s: nothing is written but the refusal',
    async (when) => {
      const { directory, node, desk } = await recoverable()
      if (when === 'while it is stopped') await node.stop()
      const files = async () =>
        Promise.all((['owner', 'identity'] as const).map((name) => readFile(pathOf(directory, name), 'utf8')))
      const before = await files()
      await expect(
        recoverOwner({ directory, recovery: createKeyPair(), custody: 'unsealed', isStolen: true }),
      ).rejects.toMatchObject({ code: 'DENIED', details: { key: desk.owner.did } })
      expect(await files()).toEqual(before)
      expect(await readdir(directory)).not.toContain('owner.next.json')
      if (when === 'while it runs') await node.stop()
      const store = await openStore(pathOf(directory, 'database'))
      expect(store.view().has(key('keyStatement', desk.owner.did, 'change'))).toBe(false)
      await store.close()
    },
  )

  test('another recovery key takes the place of the first only by the word of that one', async () => {
    const { directory, node, desk, recovery, digest } = await recoverable()
    const file = join(await drawer(), 'second.json')
    const owner = { name: 'Ines', did: desk.owner.did }
    const second = await createRecoveryFile(file, { directory, owner, passphrase: PASSPHRASE })
    await expect(nameRecovery(desk, second.digest)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(nameRecovery(desk, second.digest, createKeyPair())).rejects.toMatchObject({ code: 'CONFLICT' })
    expect((await spoken(desk)).recovery).toBe(digest)
    expect((await readOwner(directory)).statements).toHaveLength(1)
    await nameRecovery(desk, second.digest, recovery)
    expect((await spoken(desk)).recovery).toBe(second.digest)
    await expect(recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false })).rejects.toMatchObject({
      code: 'DENIED',
    })
    const done = await recoverOwner({ directory, recovery: second.key, custody: 'unsealed', isStolen: false })
    expect(await rules(directory)).toBe(done.did)
    await node.stop()
  })
})

test('L1.3 another node of the owner hears which key recovers, and of the recovery, and takes the new key', async () => {
  const { directory: first, node, desk, recovery, digest } = await recoverable()
  const second = await createFolder()
  await made(second, { join: { directory: first } })
  // it joined by a folder that had the word with it
  let other = await startNode(second, await settingsIn(second))
  const there = await deskOf(second)
  expect((await spoken(there)).recovery).toBe(digest)
  await desk.client.call('POST', '/v1/peers', { address: other.addresses[0] })
  const next = await createRecoveryFile(join(await drawer(), 'next.json'), {
    directory: first,
    owner: { name: 'Ines', did: desk.owner.did },
    passphrase: PASSPHRASE,
  })
  await nameRecovery(desk, next.digest, recovery)
  await until(async () => (await spoken(there)).recovery === next.digest, 30_000, 'it has heard of the next one')
  const done = await recoverOwner({ directory: first, recovery: next.key, custody: 'unsealed', isStolen: true })
  const isShut = () =>
    spoken(there).then(
      () => false,
      ({ code }: { code?: string }) => code === 'LEASE_REVOKED',
    )
  await until(isShut, 30_000, 'it has heard that the key is in other hands')
  const take = () => takeOwner({ directory: second, from: { directory: first }, custody: 'unsealed' })
  await expect(take()).rejects.toMatchObject({ code: 'HOME_LOCKED' })
  await other.stop()
  expect(await take()).toEqual({ did: done.did, isRunning: false })
  other = await startNode(second, await settingsIn(second))
  expect(await rules(second)).toBe(done.did)
  expect(await spoken(await deskOf(second))).toEqual(await spoken(await deskOf(first)))
  await other.stop()
  await node.stop()
})

describe('a recovery that is broken off', () => {
  test.each([
    ['before it is told', 'old'],
    ['after it was told', 'new'],
  ])('L1.3 by kill -9 %s leaves the %s key in force, and never none', async (place, which) => {
    const { directory, file, node } = await recoverable()
    const before = (await readOwner(directory)).did
    const running = await readJson(directory, 'running')
    const child = fork(RECOVERING, [directory, file, PASSPHRASE, place], {
      execArgv: ['--conditions=csb-source'],
      stdio: 'ignore',
    })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    await writeJson(directory, 'running', running)
    expect(await readdir(directory)).toContain('owner.next.json')
    const by = await rules(directory)
    expect(by === before ? 'old' : 'new').toBe(which)
    expect((await readOwner(directory)).did).toBe(by)
    // and it can be done again, of the key that is there now
    const { key: recovery } = await openRecoveryFile(file, PASSPHRASE)
    const done = await recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false })
    expect(await rules(directory)).toBe(done.did)
    expect(await readdir(directory)).not.toContain('owner.next.json')
    await node.stop()
  })
})
