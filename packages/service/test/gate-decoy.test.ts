/** What a session read is listed once, in its next entry. A branch that is made in between takes nothing off the card. */
import { describe, expect, test } from 'vitest'
import { LIMITS, createFakeClock, type Lease } from '@csb/core'
import { signApproval, type Card } from '@csb/authority'
import { NOW, cardFor, createHouse, holdingIn, type Holder, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'propose'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
}

async function standing() {
  const clock = createFakeClock(NOW)
  const house = await createHouse({ clock })
  const remember = async (label: string, content = label) =>
    (await house.owned<{ id: string }>('memory.create', { entry: { content, type: 'other' }, label })).id
  return { house, clock, remember, session: await holdingIn(house, LEASE) }
}

const read = (house: House, session: Holder, id: string) => house.service.perform(session, 'memory.get', { id })
const write = (house: House, session: Holder, branch: string) =>
  house.service.perform(session, 'files.write', { branch, path: `${branch.slice(5)}.md`, text: branch })
const wish = (house: House, session: Holder, branch: string) =>
  house.service.perform(session, 'files.merge', { from: branch, into: 'main' })
const cardOf = (house: House, session: Holder, branch: string): Promise<Card> =>
  cardFor(wish(house, session, branch), house.owned)
const risksOn = ({ risks }: Card) => risks.map(({ id }) => id).filter((id) => id.startsWith('external'))
const outsideOn = ({ made_by: makers }: Card) =>
  makers.map(({ reads, outside }) => ({ reads, outside: outside.length }))

describe('the card of a session', () => {
  test('L1.7 tells what it read from outside, though the entry of a decoy lists it', async () => {
    const { house, remember, session } = await standing()
    await read(house, session, await remember('private:external'))
    await write(house, session, 'runs/decoy')
    await write(house, session, 'runs/real')
    const cards = [await cardOf(house, session, 'runs/decoy'), await cardOf(house, session, 'runs/real')]
    for (const card of cards) {
      expect(outsideOn(card)).toEqual([{ reads: 1, outside: 1 }])
      expect(card.made_by[0]?.label).toBe('private:external')
      expect(card.taint).toBe(true)
      expect(risksOn(card)).toEqual(['external-with-reach', 'external'])
    }
  })

  test('L1.7 bears the taint, though more entries lie between than are looked at', async () => {
    const { house, remember, session } = await standing()
    const [outer, own] = [await remember('private:external'), await remember('private:owner')]
    await read(house, session, outer)
    for (let round = 0; round < LIMITS.earlierEntries + 1; round++) {
      await house.service.perform(session, 'files.write', { branch: 'runs/decoy', path: `${round}.md`, text: 'x' })
      await read(house, session, own)
    }
    await write(house, session, 'runs/real')
    const card = await cardOf(house, session, 'runs/real')
    expect(card.made_by).toMatchObject([{ outside: [], label: 'private:external' }])
    expect(card.taint).toBe(true)
    expect(risksOn(card)).toEqual(['external-with-reach', 'external'])
  })

  test('L1.7 that read nothing from outside bears none, and holds though it reads on of its own', async () => {
    const { house, clock, remember, session } = await standing()
    const [a, b] = [await remember('private:owner', 'a'), await remember('private:owner', 'b')]
    await read(house, session, a)
    await write(house, session, 'runs/real')
    const card = await cardOf(house, session, 'runs/real')
    expect(outsideOn(card)).toEqual([{ reads: 1, outside: 0 }])
    expect([card.taint, risksOn(card)]).toEqual([false, []])
    await read(house, session, b)
    await write(house, session, 'runs/other')
    const now = clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    expect(await house.owned('gate.approve', { card: card.id, approval })).toMatchObject({ outcome: 'approved' })
  })

  test('L1.7 is void where its session read from outside since, and says so when it is drawn anew', async () => {
    const { house, clock, remember, session } = await standing()
    await write(house, session, 'runs/real')
    const card = await cardOf(house, session, 'runs/real')
    await read(house, session, await remember('private:external'))
    await write(house, session, 'runs/other')
    const now = clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    await expect(house.owned('gate.approve', { card: card.id, approval })).rejects.toMatchObject({ code: 'GATE_STALE' })
    expect((await cardOf(house, session, 'runs/real')).taint).toBe(true)
  })

  test("L1.7 has no part of what another session read, nor the owner's own", async () => {
    const { house, remember, session } = await standing()
    const id = await remember('private:external')
    const other = await holdingIn(house, LEASE)
    await read(house, other, id)
    await write(house, other, 'runs/other')
    await house.owned('memory.get', { id })
    await house.owned('files.write', { branch: 'runs/mine', path: 'mine.md', text: 'x' })
    await house.owned('files.write', { branch: 'runs/more', path: 'more.md', text: 'x' })
    await write(house, session, 'runs/real')
    expect(outsideOn(await cardOf(house, session, 'runs/real'))).toEqual([{ reads: 0, outside: 0 }])
    expect(risksOn(await cardOf(house, session, 'runs/more'))).toEqual([])
  })
})
