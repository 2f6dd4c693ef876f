/** L1.2: who sees a part of the notes is not told by an id that it gives whether a note is there that it does not see. */
import { describe, expect, test } from 'vitest'
import type { Lease, Memory } from '@csb/core'
import { createHouse, codeOf, holdingIn, type House } from './house.ts'
import type { Caller } from '../src/index.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'private',
}
const HIDDEN = 'mem_1700000000000_hidden'
const SEEN = 'mem_1700000000000_seen'
const NONE = 'mem_1700000000000_none'
const ENTRY = { content: 'tea is hot', level: 'warm', type: 'lesson' }

async function stand() {
  const house = await createHouse()
  await house.owned('memory.create', { entry: { ...ENTRY, id: HIDDEN }, label: 'sealed:owner' })
  await house.owned('memory.create', { entry: { ...ENTRY, id: SEEN }, label: 'private:owner' })
  return { house, session: await holdingIn(house, LEASE) }
}

const create = async (house: House, session: Caller, id: string, links: Memory['links'] = []) =>
  (await house.service.perform(session, 'memory.create', { entry: { ...ENTRY, id, links } })) as Memory

describe('L1.2 an id that is given by who sees a part', () => {
  test('L1.2 tells nothing of a note that it does not see', async () => {
    const { house, session } = await stand()
    const [hidden, none] = [await create(house, session, HIDDEN), await create(house, session, NONE)]
    for (const [note, id] of [
      [hidden, HIDDEN],
      [none, NONE],
    ] as const) {
      expect(note.id).not.toBe(id)
      expect(note.id).toMatch(/^mem_1700000000000_[0-9a-f]{32}$/)
    }
    expect(await house.owned('memory.get', { id: HIDDEN })).toMatchObject({ label: 'sealed:owner' })
    // the same again is what it wrote itself
    expect(await codeOf(create(house, session, HIDDEN))).toBe('CONFLICT')
    expect(await codeOf(create(house, session, NONE))).toBe('CONFLICT')
    // to others it tells nothing of that either
    expect((await create(house, await holdingIn(house, { ...LEASE, labels_max: 'trusted' }), NONE)).id).not.toBe(
      none.id,
    )
  })

  test('L1.2 of a note that it sees is refused, and the owner keeps what it gives', async () => {
    const { house, session } = await stand()
    expect(await codeOf(create(house, session, SEEN))).toBe('CONFLICT')
    expect((await create(house, house.owning, NONE)).id).toBe(NONE)
  })

  test('L1.2 goes along in links, and is the same when it is given again', async () => {
    const { house, session } = await stand()
    const one = await create(house, session, NONE)
    expect(one.id).not.toBe(NONE)
    const two = await create(house, session, 'mem_1700000000000_two', [
      { target_id: NONE, relation: 'relates_to' },
      { target_id: SEEN, relation: 'relates_to' },
    ])
    expect(two.links?.map(({ target_id: id }) => id)).toEqual([one.id, SEEN])
    const items = [{ entry: { ...ENTRY, id: NONE } }]
    const again = await house.service.perform(session, 'memory.batch', { items, existing: 'keep' })
    expect(again).toMatchObject({ kept: [one.id], items: [] })
  })
})
