/** Labels of notes on several nodes: what one says apart from the other, what another owner's node says, and what is read of its home. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { signApproval, taintOf, trust } from '@csb/authority'
import { cardFor, codeOf, createHouse, holdingIn, type House } from './house.ts'
import { createNetwork } from './network.ts'

type Shown = { readonly id: string; readonly label: string; readonly hlc: string }

const remember = async (house: House, label: string, home = house.home, content = 'plan'): Promise<string> => {
  const entry = { content, level: 'warm', type: 'lesson' }
  return (await house.owned<Shown>('memory.create', { entry, label, home })).id
}
const labelOn = async (house: House, id: string, home: string): Promise<string> =>
  (await house.owned<Shown>('memory.get', { id, home })).label
const syncing = (from: House, to: House, home: string) =>
  from.owned<{ equal: boolean; received: number }>('sync.run', { did: to.key.did, home })

/** Ask for a lower label and approve what the card says. */
async function lower(house: House, id: string, label: string): Promise<void> {
  const card = await cardFor(house.owned('memory.label', { id, label }), house.owned)
  const now = house.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
  await house.owned('gate.approve', { card: card.id, approval })
}

const WRITES: Partial<Lease> = { actions: ['list', 'read', 'write'], label_tags: ['*'] }

async function houses() {
  const network = createNetwork()
  const nas = await createHouse({ name: 'nas', network })
  const laptop = await createHouse({ name: 'laptop', network, owner: nas.owner, home: nas.home })
  const friend = await createHouse({ name: 'friend', network })
  const clearance = { level: 'sealed' as const, tags: ['*'] }
  const owner = { did: nas.owner.did, name: 'nas', ceiling: 'override' as const, clearance }
  await friend.store.transact((tx) => trust(tx, owner))
  const lease = { type: 'urn:csb:lease:1' as const, locations: [`nas://*/${nas.home}`], ...WRITES }
  await nas.grant({
    to: { name: 'friend', did: friend.key.did },
    lease: {
      ...lease,
      actions: ['list', 'read', 'write'],
      paths: ['/'],
      branches: ['memory'],
      labels_max: 'trusted',
    },
  })
  return { nas, laptop, friend }
}

describe('two nodes of one owner', () => {
  test('L1.7 no label is lowered without a card: not by a note that was changed later under the old one', async () => {
    const { nas, laptop, friend } = await houses()
    const id = await remember(nas, 'trusted:owner')
    await syncing(nas, laptop, nas.home)
    await nas.owned('memory.label', { id, label: 'sealed:owner' })
    await laptop.owned('memory.delete', { id })
    await laptop.owned('memory.restore', { id })
    await expect(syncing(nas, laptop, nas.home)).resolves.toMatchObject({ equal: true })
    for (const house of [nas, laptop]) expect(await labelOn(house, id, nas.home)).toBe('sealed:owner')
    await syncing(laptop, nas, nas.home)
    await syncing(nas, friend, nas.home)
    expect(await codeOf(friend.owned('memory.get', { id, home: nas.home }))).toBe('NOT_FOUND')
    // nobody was asked, and nothing was lowered
    expect(await nas.owned('gate.list', { all: true })).toEqual({ items: [] })
  })

  test('L1.7 what a person approved on one holds on the other, and not against what was raised there meanwhile', async () => {
    const { nas, laptop } = await houses()
    const [plain, raised] = [await remember(nas, 'private:owner'), await remember(nas, 'private:owner')]
    await syncing(nas, laptop, nas.home)
    await laptop.owned('memory.label', { id: raised, label: 'sealed:owner' })
    for (const id of [plain, raised]) await lower(nas, id, 'public:owner')
    await expect(syncing(laptop, nas, nas.home)).resolves.toMatchObject({ equal: true })
    for (const house of [nas, laptop]) {
      expect(await labelOn(house, plain, nas.home)).toBe('public:owner')
      expect(await labelOn(house, raised, nas.home)).toBe('sealed:owner')
    }
    // asked for again, with the raised label before the person's eyes
    const card = await cardFor(nas.owned('memory.label', { id: raised, label: 'public:owner' }), nas.owned)
    expect(card.labels).toEqual(['public:owner', 'sealed:owner'])
  })

  test('L1.7 an approval does not hold for a note that came from elsewhere since', async () => {
    const { nas, laptop } = await houses()
    const id = await remember(nas, 'private:owner')
    await syncing(nas, laptop, nas.home)
    const card = await cardFor(nas.owned('memory.label', { id, label: 'public:owner' }), nas.owned)
    await laptop.owned('memory.label', { id, label: 'sealed:owner' })
    await syncing(nas, laptop, nas.home)
    const now = nas.clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, nas.owner)
    expect(await codeOf(nas.owned('gate.approve', { card: card.id, approval }))).toBe('GATE_STALE')
    expect(await labelOn(nas, id, nas.home)).toBe('sealed:owner')
  })
})

describe("another owner's node", () => {
  test('L3.2 what it writes to the home is from outside, on both', async () => {
    const { nas, friend } = await houses()
    await syncing(nas, friend, nas.home)
    const id = await remember(friend, 'trusted:owner', nas.home, 'from the friend')
    await expect(syncing(friend, nas, nas.home)).resolves.toMatchObject({ equal: true })
    for (const house of [nas, friend]) expect(await labelOn(house, id, nas.home)).toBe('trusted:external')
  })

  test('L1.7 lowers no label of the home, and is not asked to', async () => {
    const { nas, friend } = await houses()
    const id = await remember(nas, 'trusted:owner')
    await syncing(nas, friend, nas.home)
    const before = await friend.dump()
    const wish = friend.owned('memory.label', { id, label: 'public:owner', home: nas.home })
    expect(await codeOf(wish)).toBe('DENIED')
    expect(await friend.dump()).toEqual(before)
    expect((await friend.records()).at(-1)).toMatchObject({ operation: 'memory.label', outcome: 'refused' })
    // it may make one stricter, and does not see it any more then
    await friend.owned('memory.label', { id, label: 'private:owner', home: nas.home })
    await syncing(friend, nas, nas.home)
    expect((await labelOn(nas, id, nas.home)).split(':')[0]).toBe('private')
  })

  test('L3.2 a session there that reads of the home has read from outside, whatever the label says', async () => {
    const { nas, friend } = await houses()
    const id = await remember(nas, 'trusted:owner')
    await syncing(nas, friend, nas.home)
    const lease: Partial<Lease> = {
      locations: [`nas://*/${nas.home}`, `nas://*/${friend.home}`],
      actions: ['list', 'read', 'write', 'propose'],
      paths: ['/'],
      branches: ['*'],
      labels_max: 'sealed',
      capabilities: ['B', 'C'],
      max_children: 2,
    }
    const [reading, listing] = [await holdingIn(friend, lease), await holdingIn(friend, lease)]
    await friend.service.perform(reading, 'memory.get', { id, home: nas.home })
    await friend.service.perform(listing, 'memory.list', { home: nas.home })
    for (const { hash } of [reading, listing])
      expect(taintOf(friend.store.view(), hash)).toMatchObject({ label: 'trusted:external' })
    expect(await codeOf(friend.service.perform(reading, 'authority.attenuate', { name: 'child', lease: {} }))).toBe(
      'GATE_REQUIRED',
    )
    // a lease that takes nothing from outside sees nothing of it
    const closed = await holdingIn(friend, { ...lease, external: 'deny' })
    expect(await codeOf(friend.service.perform(closed, 'memory.get', { id, home: nas.home }))).toBe('DENIED')
    expect(await friend.service.perform(closed, 'memory.list', { home: nas.home })).toMatchObject({ items: [] })
  })
})
