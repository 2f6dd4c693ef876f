import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { systemClock, type Grant, type Identity, type KeyStatement } from '@csb/core'
import { delegateTo, leaseFor, type Desk } from '../src/authorise.ts'
import { connect, createClient } from '../src/client.ts'
import { readJson } from '../src/data-folder.ts'
import { openOwner, readOwner } from '../src/owner.ts'
import { condemnKey, hangingChange, rotateOwner, settleOwner } from '../src/rotate.ts'
import { startNode } from '../src/start-node.ts'
import { takeOwner } from '../src/take-owner.ts'
import { createFolder, made, settingsIn, started } from './folder.ts'

const ROTATING = fileURLToPath(new URL('rotating.ts', import.meta.url))
const DELEGATING = { audience: ['*'], scope: ['reports'], level: 'request', ttlMs: 600_000 } as const
const ROTATE = { custody: 'unsealed', isStolen: false } as const
const STOLEN = { custody: 'unsealed', isStolen: true } as const

/** As a command stands: what was broken off is finished first. */
async function deskOf(directory: string, passphrase?: string): Promise<Desk> {
  const client = await connect(directory)
  await settleOwner(directory, client)
  return { directory, client, owner: await openOwner(directory, passphrase), now: systemClock.now() }
}

async function folder(): Promise<string> {
  const directory = await createFolder()
  await made(directory, { ownerName: 'Ines' })
  return directory
}

const identityOf = async (directory: string) => (await readJson(directory, 'identity')) as Identity
type Item = { readonly revoked: boolean; readonly grant: Grant }
const listed = async ({ client }: Desk) => (await client.call<{ items: readonly Item[] }>('GET', '/v1/grants')).items
const stands = async (desk: Desk, { delegation }: Grant) =>
  (await listed(desk)).find(({ grant }) => grant.delegation.id === delegation.id)?.revoked === false
const said = async ({ client }: Desk) => (await client.call<{ items: KeyStatement[] }>('GET', '/v1/keys')).items
/** The key of the folder is one whose word the node takes. */
const rules = async (directory: string) => (await delegateTo(await deskOf(directory), DELEGATING)).grant

describe("the owner's key is changed", () => {
  test('L1.3 files and node follow together, and what the old key granted holds, also after a restart', async () => {
    const directory = await folder()
    let node = await startNode(directory, await settingsIn(directory))
    const desk = await deskOf(directory)
    const before = (await delegateTo(desk, DELEGATING)).grant
    const lease = { actions: ['list' as const, 'read' as const], paths: ['/'], branches: ['memory'] }
    const { token } = await leaseFor(desk, { name: 'reader', lease, ttlMs: 600_000 })
    const done = await rotateOwner({ ...desk, now: systemClock.now() + 1 }, ROTATE)
    expect(done).toMatchObject({ before: desk.owner.did, reached: [], unreached: [], ended: null })
    for (const again of [false, true]) {
      if (again) {
        await node.stop()
        node = await startNode(directory, await settingsIn(directory))
      }
      expect((await readOwner(directory)).did).toBe(done.did)
      expect((await identityOf(directory)).owner).toEqual({ name: 'Ines', did: done.did })
      const now = await deskOf(directory)
      expect(await now.client.call('GET', '/v1/status')).toMatchObject({ owner: { did: done.did } })
      expect(await stands(now, before)).toBe(true)
      expect(await createClient(now.client.url, token).call('GET', '/v1/memory')).toMatchObject({ items: [] })
      expect(await stands(now, await rules(directory))).toBe(true)
      // what the person writes is the owner's still
      const entry = { content: 'mine', type: 'other', level: 'warm' }
      const { id } = await now.client.call<{ id: string }>('POST', '/v1/memory', { entry })
      expect(await now.client.call('GET', `/v1/memory/${id}`)).toMatchObject({ label: 'private:owner' })
    }
    expect(await readdir(directory)).not.toContain('owner.next.json')
    await node.stop()
  })

  test('L1.3 what the old key signs afterwards is refused, and nothing of it is kept', async () => {
    const directory = await folder()
    await started(directory)
    const old = await deskOf(directory)
    await rotateOwner(old, ROTATE)
    const before = await listed(old)
    const identity = await identityOf(directory)
    await expect(delegateTo({ ...old, now: systemClock.now() + 1 }, DELEGATING)).rejects.toMatchObject({
      code: 'GRANT_INVALID',
    })
    await expect(rotateOwner(old, ROTATE)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await listed(old)).toEqual(before)
    expect(await identityOf(directory)).toEqual(identity)
    // that attempt left a key which nobody follows: the one in force stays
    expect(await stands(await deskOf(directory), await rules(directory))).toBe(true)
  })

  test('L1.3 a key in other hands: all that it granted is void, and the node and its owner go on', async () => {
    const directory = await folder()
    await started(directory)
    const desk = await deskOf(directory)
    const granted = (await delegateTo(desk, DELEGATING)).grant
    expect((await identityOf(directory)).delegations).toHaveLength(1)
    const done = await rotateOwner({ ...desk, now: systemClock.now() + 1 }, STOLEN)
    expect(done.ended).toBe(3)
    const now = await deskOf(directory)
    expect(await stands(now, granted)).toBe(false)
    expect((await identityOf(directory)).delegations).toEqual([])
    expect(await stands(now, await rules(directory))).toBe(true)
    // the lease of the command line and of the node are the new key's
    const own = (await listed(now)).filter(({ grant }) => grant.delegation.parent === null)
    for (const { grant, revoked } of own) expect(revoked).toBe(grant.delegation.grantor_key === desk.owner.did)
    expect((await said(now)).length).toBe(2)
  })

  test('L1.3 a former key can be said to be in other hands later, and no other one', async () => {
    const directory = await folder()
    await started(directory)
    const first = await deskOf(directory)
    const granted = (await delegateTo(first, DELEGATING)).grant
    await rotateOwner({ ...first, now: systemClock.now() + 1 }, ROTATE)
    const desk = await deskOf(directory)
    expect(await stands(desk, granted)).toBe(true)
    await expect(condemnKey(desk, desk.owner.did)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect((await condemnKey(desk, first.owner.did)).ended).toBe(3)
    expect(await stands(desk, granted)).toBe(false)
    expect((await readOwner(directory)).statements).toHaveLength(2)
    expect(await stands(await deskOf(directory), await rules(directory))).toBe(true)
  })
})

describe('a change that is broken off', () => {
  test.each([
    ['before it is told', 'old'],
    ['after it was told', 'new'],
    ['before the files follow', 'new'],
  ])('L1.3 by kill -9 %s leaves the %s key in force, and never none', async (place, which) => {
    const directory = await folder()
    await started(directory)
    const before = (await readOwner(directory)).did
    const child = fork(ROTATING, [directory, place], { execArgv: ['--conditions=csb-source'], stdio: 'ignore' })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    expect(await readdir(directory)).toContain('owner.next.json')
    const grant = await rules(directory)
    const { did } = await readOwner(directory)
    expect(did === before ? 'old' : 'new').toBe(which)
    expect(grant.delegation.grantor_key).toBe(did)
    expect((await identityOf(directory)).owner.did).toBe(did)
    const hanging = await hangingChange(directory, await connect(directory))
    expect(hanging?.state).toBe(which === 'old' ? 'begun' : undefined)
    // and it can be changed again
    const done = await rotateOwner({ ...(await deskOf(directory)), now: systemClock.now() + 1 }, ROTATE)
    expect((await rules(directory)).delegation.grantor_key).toBe(done.did)
    expect(await readdir(directory)).not.toContain('owner.next.json')
    expect(await hangingChange(directory, await connect(directory))).toBeUndefined()
  })

  test('L1.3 between the two files: the next command finishes it', async () => {
    const directory = await folder()
    await started(directory)
    const child = fork(ROTATING, [directory, 'after it was told'], {
      execArgv: ['--conditions=csb-source'],
      stdio: 'ignore',
    })
    await once(child, 'exit')
    const [next] = JSON.parse(await readFile(join(directory, 'owner.next.json'), 'utf8')) as [{ file: { did: string } }]
    const identity = await identityOf(directory)
    const half = { ...identity, owner: { ...identity.owner, did: next.file.did } }
    await writeFile(join(directory, 'identity.json'), JSON.stringify(half))
    expect((await rules(directory)).delegation.grantor_key).toBe(next.file.did)
    expect((await readOwner(directory)).did).toBe(next.file.did)
  })

  test('while another command is at it nothing is begun', async () => {
    const directory = await folder()
    await started(directory)
    const desk = await deskOf(directory)
    // a process that lives: this one's parent
    const file = { v: 1, name: 'Ines', did: desk.owner.did }
    const other = [{ pid: process.ppid, at: systemClock.now(), file }]
    await writeFile(join(directory, 'owner.next.json'), JSON.stringify(other))
    await expect(rotateOwner(desk, ROTATE)).rejects.toMatchObject({ code: 'BUSY' })
    expect(await said(desk)).toEqual([])
    expect(JSON.parse(await readFile(join(directory, 'owner.next.json'), 'utf8'))).toEqual(other)
  })
})

describe('another node of the owner', () => {
  test('L1.3 takes the new key while it runs, and its command line has a right at every moment', async () => {
    const [first, second] = [await folder(), await createFolder()]
    await made(second, { join: { directory: first } })
    const nodes = [await startNode(first, await settingsIn(first)), await startNode(second, await settingsIn(second))]
    const desk = await deskOf(first)
    for (const rotating of [ROTATE, STOLEN]) {
      await rotateOwner({ ...(await deskOf(first)), now: systemClock.now() + 1 }, rotating)
      const taken = await takeOwner({ directory: second, from: { directory: first }, custody: 'unsealed' })
      expect(taken).toEqual({ did: (await readOwner(first)).did, isRunning: true })
      expect((await rules(second)).delegation.grantor_key).toBe(taken.did)
      expect((await identityOf(second)).owner.did).toBe(taken.did)
      // done again nothing is different
      await takeOwner({ directory: second, from: { directory: first }, custody: 'unsealed' })
      expect((await said(await deskOf(second))).length).toBe((await readOwner(first)).statements.length)
    }
    expect(
      (await said(await deskOf(second))).some((one) => 'keychange' in one && one.keychange.old === desk.owner.did),
    ).toBe(true)
    for (const node of nodes) await node.stop()
  })

  test('L1.3 takes the new key while it is stopped where the old one was stolen and its own command line has no right', async () => {
    const [first, second] = [await folder(), await createFolder()]
    await made(second, { join: { directory: first } })
    await started(first)
    await rotateOwner(await deskOf(first), STOLEN)
    let node = await startNode(second, await settingsIn(second))
    // as a peer would tell it: the key of this node's command line is void from then on
    const { client } = await deskOf(second)
    const { statements } = await readOwner(first)
    for (const statement of statements) await client.call('POST', '/v1/keys', { statement }).catch(() => undefined)
    await expect(client.call('GET', '/v1/memory')).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
    const before = await readFile(join(second, 'owner.json'), 'utf8')
    await expect(
      takeOwner({ directory: second, from: { directory: first }, custody: 'unsealed' }),
    ).rejects.toMatchObject({ code: 'HOME_LOCKED', details: { pid: process.pid } })
    expect(await readFile(join(second, 'owner.json'), 'utf8')).toBe(before)
    await node.stop()
    const passphrase = 'another one, long'
    const { did } = await takeOwner({ directory: second, from: { directory: first }, custody: { passphrase } })
    expect(did).toBe((await readOwner(first)).did)
    node = await startNode(second, await settingsIn(second))
    const desk = await deskOf(second, passphrase)
    expect((await delegateTo(desk, DELEGATING)).grant.delegation.grantor_key).toBe(did)
    expect(await desk.client.call('GET', '/v1/record/verify')).toMatchObject({ ok: true })
    await node.stop()
  })

  test('takes no key of somebody else, and keeps what it has', async () => {
    const [own, other] = [await folder(), await folder()]
    await started(other)
    await rotateOwner(await deskOf(other), ROTATE)
    const before = [await readFile(join(own, 'owner.json'), 'utf8'), await readFile(join(own, 'identity.json'), 'utf8')]
    await expect(takeOwner({ directory: own, from: { directory: other }, custody: 'unsealed' })).rejects.toMatchObject({
      code: 'DENIED',
    })
    expect([
      await readFile(join(own, 'owner.json'), 'utf8'),
      await readFile(join(own, 'identity.json'), 'utf8'),
    ]).toEqual(before)
    await started(own)
    expect(await said(await deskOf(own))).toEqual([])
    await expect(takeOwner({ directory: own, from: { directory: other }, custody: 'unsealed' })).rejects.toMatchObject({
      code: 'DENIED',
    })
    expect(await readFile(join(own, 'owner.json'), 'utf8')).toBe(before[0])
    expect(await said(await deskOf(own))).toEqual([])
  })
})
