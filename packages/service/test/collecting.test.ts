import { describe, expect, test } from 'vitest'
import { LIMITS, createFakeClock, type Lease } from '@csb/core'
import { givePass, holdRecord, signApproval, signCheckpoint, signRevocation } from '@csb/authority'
import { createHome, getRef, writeBlob } from '@csb/files'
import { key, prefix } from '@csb/store'
import { collectHomes, collectRows } from '../src/collecting.ts'
import { HOUR, NOW, cardFor, createHouse, holdingIn, type House } from './house.ts'

/** A copy of somebody's home, and in it an object that nothing needs. */
async function addCopy(house: House): Promise<{ home: string; waste: string }> {
  return house.store.transact((tx) => {
    const { id: home } = createHome(tx, { owner: house.owner.did, origin: house.key.did, now: NOW })
    return { home, waste: writeBlob(tx, home, Buffer.from('nobody needs this')) }
  })
}

describe('the daily collection of garbage', () => {
  test('reaches every home that is kept, and each is told in the record', async () => {
    const house = await createHouse()
    const copies = [await addCopy(house), await addCopy(house)]
    await collectHomes(house.parts, house.service, new AbortController().signal)
    for (const { home, waste } of copies) expect(house.store.view().has(key('object', home, waste))).toBe(false)
    const { items } = await house.owned<{ items: { header: { operation: string } }[] }>('record.tail')
    const told = items.filter(({ header }) => header.operation === 'files.gc')
    expect(told).toHaveLength(3)
  })

  test('goes on behind a home that is damaged, and says so', async () => {
    const house = await createHouse()
    const copies = [await addCopy(house), await addCopy(house)].sort((a, b) => (a.home < b.home ? -1 : 1))
    const [first] = copies
    await house.store.transact((tx) => {
      const home = first?.home ?? ''
      tx.del(key('object', home, getRef(tx, home, 'main')?.commit ?? ''))
    })
    await collectHomes(house.parts, house.service, new AbortController().signal)
    const view = house.store.view()
    expect(copies.map(({ home, waste }) => view.has(key('object', home, waste)))).toEqual([true, false])
    expect(house.logged.join('\n')).toContain('OBJECT_DAMAGED')
  })

  test('ends where the node stops', async () => {
    const house = await createHouse()
    const { home, waste } = await addCopy(house)
    const stopping = new AbortController()
    stopping.abort()
    await expect(collectHomes(house.parts, house.service, stopping.signal)).rejects.toBeDefined()
    expect(house.store.view().has(key('object', home, waste))).toBe(true)
  })
})

describe('rows that nobody comes back for', () => {
  const LEASE: Partial<Lease> = { actions: ['list', 'read', 'write', 'propose'], paths: ['/'], branches: ['*'] }
  const collect = (house: House) => collectRows(house.parts, new AbortController().signal)
  const rows = async (house: House, table: Parameters<typeof prefix>[0]) =>
    Object.keys(await house.dump((fullKey) => !fullKey.startsWith(prefix(table)))).length

  /** A session that has read one note, and may read no more. */
  async function read(house: House) {
    const entry = { content: 'tea', type: 'other' }
    const { id } = await house.owned<{ id: string }>('memory.create', { entry, label: 'public:owner' })
    const session = await holdingIn(house, LEASE)
    await house.service.perform(session, 'memory.get', { id })
    return { id, lease: session.hash }
  }

  test('L1.5 what was read under a lease that is over is listed in an entry of its own, and its rows go', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const [expired, revoked] = [await read(house), await read(house)]
    await house.owned('authority.revoke', signRevocation({ target: revoked.lease, now: NOW }, house.owner))
    expect(await rows(house, 'unlisted')).toBe(2)
    await collect(house)
    expect(await rows(house, 'unlisted')).toBe(1)
    clock.advance(HOUR)
    const going = await read(house)
    await collect(house)
    await collect(house)
    expect(await rows(house, 'unlisted')).toBe(1)
    const told = (await house.records()).filter(({ operation }) => operation === 'files.gc')
    expect(told.map(({ lease, reads }) => [lease, reads.map(({ path }) => path)])).toEqual(
      [revoked, expired].map(({ lease, id }) => [lease, [expect.stringContaining(id)]]),
    )
    expect(told.map(({ lease }) => lease)).not.toContain(going.lease)
  })

  test('L1.6 it stays while the record is held', async () => {
    const house = await createHouse()
    const { lease } = await read(house)
    await house.owned('authority.revoke', signRevocation({ target: lease, now: NOW }, house.owner))
    const checkpoint = signCheckpoint(0, { size: 99_999, root: 'ab'.repeat(32) }, house.key)
    await house.store.transact((tx) =>
      holdRecord(tx, { reason: 'shorter', checkpoint, witness: house.owner.did, size: 1, at: NOW }),
    )
    await collect(house)
    expect(await rows(house, 'unlisted')).toBe(1)
  })

  test('L1.7 what was given back to be changed goes when its card would have expired, a pass when its time is over', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const session = await holdingIn(house, { ...LEASE, labels_max: 'sealed' })
    const file = { branch: 'runs/x', path: 'a.md' }
    await house.owned('files.write', { ...file, text: 'tea' })
    const wish = house.service.perform(session, 'files.label', { ...file, label: 'public:owner' })
    const card = await cardFor(wish, house.owned)
    const said = { decision: 'needs-changes', words: 'no', shownAt: NOW, now: NOW } as const
    await house.owned('gate.reject', { card: card.id, approval: signApproval({ card, ...said }, house.owner) })
    const pass = { lease: session.hash, wish: 'sha256:x' }
    await house.store.transact((tx) => givePass(tx, pass, { card: card.id, until: NOW + 1 }))
    await collect(house)
    expect([await rows(house, 'gateReturned'), await rows(house, 'gatePass')]).toEqual([1, 1])
    clock.advance(1)
    await collect(house)
    expect([await rows(house, 'gateReturned'), await rows(house, 'gatePass')]).toEqual([1, 0])
    clock.advance(LIMITS.gateCardMs)
    await collect(house)
    expect([await rows(house, 'gateReturned'), await rows(house, 'gatePass')]).toEqual([0, 0])
  })
})
