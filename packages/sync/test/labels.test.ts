/** Labels over sessions: raised and lowered apart from each other, and by those who are not believed in it. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createKeyPair, formatLabel, LIMITS, parseLabel } from '@csb/core'
import { key } from '@csb/store'
import { FULL, HOME, TRUSTED, createNode, seenBy, sync, type Between, type Node } from './nodes.ts'
import { createWire } from './ports.ts'

const nodes: Node[] = []
let nas: Node
let laptop: Node
let friend: Node

const OWN: Between = { ofRight: FULL, ofLeft: FULL }
const READER: Between = { ofRight: { clearance: TRUSTED, mayWrite: false }, ofLeft: FULL }
const WRITER: Between = { ofRight: { clearance: TRUSTED, mayWrite: true }, ofLeft: FULL }

beforeEach(async () => {
  const owner = createKeyPair().did
  nas = await createNode('nas', owner)
  laptop = await createNode('laptop', owner)
  friend = await createNode('friend', owner, false)
  nodes.push(nas, laptop, friend)
})

afterAll(async () => {
  for (const node of nodes) await node.close()
})

const label = (node: Node, id: string): string => formatLabel(node.note(id).label)
const ids = async (node: Node): Promise<string[]> => (await node.states()).map((state) => state.id)

/** What a session says when nothing differs. */
const isSilent = async (left: Node, right: Node, how: Between): Promise<boolean> => {
  const wire = createWire()
  await sync(left, right, { ...how, wire })
  const kinds = [...wire.toLeft, ...wire.toRight].map((text) => (JSON.parse(text) as { type: string }).type)
  return !kinds.includes('list')
}

describe('two nodes of the owner', () => {
  test('L1.7 one raises a label, the other writes the note later under the old one: it is raised on both', async () => {
    const id = await nas.create('first', 'private:owner')
    await sync(nas, laptop, OWN)
    await nas.relabel(id, 'sealed:owner')
    await laptop.rewrite(id, 'later')
    const { left, right } = await sync(nas, laptop, OWN)
    expect([left.equal, right.equal]).toEqual([true, true])
    for (const node of [nas, laptop]) {
      expect(label(node, id)).toBe('sealed:owner')
      expect(node.note(id).entry.content).toBe('later')
    }
    expect(nas.tree()).toBe(laptop.tree())
    expect(await isSilent(nas, laptop, OWN)).toBe(true)
  })

  test('L4.2 nor does it reach a third by way of the one that had not heard of it', async () => {
    const id = await nas.create('first', 'trusted:owner')
    await sync(nas, laptop, OWN)
    await sync(laptop, friend, READER)
    await nas.relabel(id, 'sealed:owner')
    await laptop.rewrite(id, 'later, and secret')
    await sync(laptop, nas, OWN)
    const wire = createWire()
    await sync(laptop, friend, { ...READER, wire })
    expect(wire.toRight.join('')).not.toContain('later, and secret')
    expect(await ids(friend)).toEqual([])
  })

  test('L1.7 a label that a person lowered is lowered on the other, and those who may see it now get it', async () => {
    const id = await nas.create('plan', 'sealed:owner:health')
    await sync(nas, laptop, OWN)
    await nas.relabel(id, 'trusted:owner')
    await expect(sync(nas, laptop, OWN)).resolves.toMatchObject({ left: { equal: true }, right: { received: 1 } })
    expect(label(laptop, id)).toBe('trusted:owner')
    const wire = createWire()
    await sync(laptop, friend, { ...READER, wire })
    expect(friend.note(id).entry.content).toBe('plan')
    // what it was called before is none of the friend's business
    expect(wire.toRight.join('')).not.toMatch(/health|sealed/)
    for (const [a, b, how] of [
      [nas, laptop, OWN],
      [laptop, friend, READER],
      [nas, friend, READER],
    ] as const)
      expect(await isSilent(a, b, how)).toBe(true)
  })

  test('L1.7 one lowers a label, the other raises it meanwhile: it is raised, for everybody', async () => {
    const id = await nas.create('plan', 'private:owner')
    await sync(nas, laptop, OWN)
    await laptop.relabel(id, 'sealed:owner')
    await nas.relabel(id, 'trusted:owner')
    await sync(nas, friend, READER)
    expect(await ids(friend)).toEqual([id])
    await sync(nas, laptop, OWN)
    expect([label(nas, id), label(laptop, id)]).toEqual(['sealed:owner', 'sealed:owner'])
    await sync(nas, friend, READER)
    expect(await ids(friend)).toEqual([])
    expect(await isSilent(nas, laptop, OWN)).toBe(true)
    expect(await isSilent(nas, friend, READER)).toBe(true)
  })

  test('a note whose label was changed goes to a new node as it is', async () => {
    const id = await nas.create('plan', 'private:owner')
    await nas.relabel(id, 'sealed:owner')
    await nas.relabel(id, 'trusted:owner')
    await expect(sync(nas, laptop, OWN)).resolves.toMatchObject({ left: { sent: 1, equal: true } })
    expect(nas.tree()).toBe(laptop.tree())
  })
})

describe('one id made on two nodes', () => {
  test('L1.7 who saw one of them only lowers the other one nowhere', async () => {
    const third = await createNode('third', createKeyPair().did)
    nodes.push(third)
    const id = await nas.create('taken in here', 'public:owner')
    await laptop.create('taken in there', 'sealed:owner:health', id)
    await sync(nas, third, OWN)
    await third.relabel(id, 'trusted:owner')
    for (const [left, right] of [
      [laptop, third],
      [nas, laptop],
      [third, nas],
    ] as const)
      await sync(left, right, OWN)
    expect([nas, laptop, third].map((node) => label(node, id))).toEqual(Array(3).fill('sealed:owner:health'))
    expect(nas.tree()).toBe(laptop.tree())
    expect(await isSilent(nas, third, OWN)).toBe(true)
  })
})

describe('one id made here and by a friend', () => {
  const isEqual = async (id: string, how: Between): Promise<void> => {
    const { oid } = (await nas.states()).find((state) => state.id === id) ?? {}
    expect(seenBy(await friend.states(), () => true)).toEqual({ [id]: oid })
    expect(await isSilent(nas, friend, how)).toBe(true)
  }

  test.each([
    ['the owner first', true, 'public:owner'],
    ['the friend first', false, 'public:owner'],
    ['under a stricter label, by the owner first', true, 'trusted:owner:work'],
    ['under a stricter label, by the friend first', false, 'trusted:owner:work'],
  ])('L4.1 is the same at both after the second session: %s', async (_name, ownerFirst, spelled) => {
    const how: Between = { ...WRITER, ofRight: { clearance: { level: 'trusted', tags: ['work'] }, mayWrite: true } }
    let id = ''
    if (ownerFirst) id = await nas.create('one', 'trusted:owner')
    id = await friend.create('two', spelled, ...(ownerFirst ? [id] : []))
    if (!ownerFirst) await nas.create('one', 'trusted:owner', id)
    await sync(nas, friend, how)
    await sync(nas, friend, how)
    await isEqual(id, how)
    expect(friend.note(id).entry.content).toBe(ownerFirst ? 'two' : 'one')
    expect(nas.note(id).label.tags).toEqual(parseLabel(spelled).tags)
  })
})

describe('what was raised', () => {
  test('L4.2 is sent to nobody below it at any later session, in no version', async () => {
    const id = await nas.create('first words', 'trusted:owner')
    await sync(nas, friend, READER)
    await nas.rewrite(id, 'second words')
    await nas.relabel(id, 'private:owner')
    const late = await createNode('late', createKeyPair().did, false)
    nodes.push(late)
    const { oid } = (await nas.states())[0] ?? { oid: '' }
    for (const reader of [friend, late, friend, late]) {
      const wire = createWire()
      await sync(nas, reader, { ...READER, wire })
      const heard = wire.toRight.join('\n')
      for (const word of ['first words', 'second words', oid, 'private']) expect(heard).not.toContain(word)
      expect(await ids(reader)).toEqual([])
    }
  })

  test('L4.2 between the list and the answer does not go any more', async () => {
    const id = await nas.create('first words', 'trusted:owner')
    const wire = createWire()
    const send = wire.right.send
    const right = {
      ...wire.right,
      send: async (message: unknown) => {
        // it was listed and is asked for: now it rises
        if ((message as { type: string }).type === 'want') await nas.relabel(id, 'private:owner')
        await send(message)
      },
    }
    await sync(nas, friend, { ...READER, wire: { ...wire, right } })
    expect(wire.toRight.join('\n')).not.toContain('first words')
    expect(await ids(friend)).toEqual([])
  })
})

describe('a peer that is no node of the owner', () => {
  test('is stopped where it brings labels without end, and nobody else is', async () => {
    await nas.create('mine', 'trusted:owner')
    await nas.store.transact((tx) => tx.putJson(key('noteLabel', HOME), LIMITS.syncLabelsOfOthers))
    const [before, held] = [nas.tree(), await ids(nas)]
    await friend.create('one more', 'public:owner:new')
    const how: Between = { ...WRITER, ofRight: { clearance: { level: 'trusted', tags: ['new'] }, mayWrite: true } }
    await expect(sync(nas, friend, how)).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect([nas.tree(), await ids(nas)]).toEqual([before, held])
    const other = await createNode('other', createKeyPair().did, false)
    nodes.push(other)
    await expect(sync(nas, other, WRITER)).resolves.toMatchObject({ left: { equal: true } })
    await laptop.create('new here', 'private:owner:newer')
    await expect(sync(nas, laptop, OWN)).resolves.toMatchObject({ left: { received: 1, equal: true } })
  })

  test('L1.7 lowers no label here, and its own copy follows', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, WRITER)
    await expect(friend.relabel(id, 'public:owner')).rejects.toMatchObject({ code: 'DENIED' })
    // one that does not keep to that says so in its bytes
    await friend.forge(id, (note) => ({ ...note, label: parseLabel('public:owner') }))
    await sync(nas, friend, WRITER)
    expect(label(nas, id)).toBe('trusted:external')
    await sync(nas, friend, WRITER)
    expect(label(friend, id)).toBe('trusted:external')
    expect(await isSilent(nas, friend, WRITER)).toBe(true)
  })

  test('L1.7 is not believed in what it says of a change by a node of the owner', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, WRITER)
    const { hlc } = nas.note(id)
    const at = `${hlc.slice(0, 10)}ffffff`
    const changes = { [nas.key.did]: { at, label: parseLabel('public:owner') } }
    const clock = { written: parseLabel('public:owner'), made: [], changes }
    await friend.forge(id, (note) => ({ ...note, label: parseLabel('public:owner'), clock }))
    const before = label(nas, id)
    await sync(nas, friend, WRITER)
    expect([before, label(nas, id)]).toEqual(['trusted:owner', 'trusted:external'])
    // what the owner says from then on counts on every node of the owner
    await sync(nas, laptop, OWN)
    await nas.relabel(id, 'sealed:owner')
    await sync(nas, laptop, OWN)
    expect(label(laptop, id)).toBe('sealed:owner')
  })

  test('L3.2 what it brings is from outside here, whatever its bytes say, and of one of the owner it stays', async () => {
    const forged = await friend.create('plan', 'trusted:owner')
    await friend.forge(forged, (note) => ({ ...note, label: parseLabel('trusted:owner') }))
    const own = await laptop.create('mine', 'trusted:owner')
    const agents = await laptop.create('by an agent', 'trusted:agent')
    await sync(nas, friend, WRITER)
    await sync(nas, laptop, OWN)
    expect([forged, own, agents].map((id) => label(nas, id))).toEqual([
      'trusted:external',
      'trusted:owner',
      'trusted:agent',
    ])
    expect(label(laptop, forged)).toBe('trusted:external')
    await sync(nas, friend, WRITER)
    expect(label(friend, forged)).toBe('trusted:external')
    expect(seenBy(await friend.states(), () => true)).toEqual(seenBy(await nas.states(), () => true))
  })

  test('makes a label stricter, and loses what it may not see any more', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, WRITER)
    await friend.relabel(id, 'private:owner')
    await sync(nas, friend, WRITER)
    expect(nas.note(id).label.level).toBe('private')
    await sync(nas, friend, WRITER)
    expect(await ids(friend)).toEqual([])
    await sync(nas, laptop, OWN)
    expect(laptop.note(id).label.level).toBe('private')
  })

  test('L1.7, L3.4 makes nothing forgotten or let go of on a node of the owner: that takes a card there', async () => {
    const [kept, told] = [await nas.create('kept', 'trusted:owner'), await nas.create('told', 'trusted:owner')]
    await sync(nas, friend, WRITER)
    await friend.forget(kept)
    // as it withdraws what the other side may not see
    const hidden: Between = { ...WRITER, ofLeft: { clearance: { level: 'public', tags: [] }, mayWrite: true } }
    await friend.rewrite(told, 'better')
    await sync(nas, friend, hidden)
    await sync(nas, friend, WRITER)
    expect([kept, told].map((id) => nas.note(id).entry.content)).toEqual(['kept', 'better'])
    expect(await nas.tombstones()).toEqual([])
    await sync(nas, laptop, OWN)
    expect(await ids(laptop)).toEqual([kept, told].sort())
    // nor by way of the other one
    await sync(laptop, friend, WRITER)
    expect(await laptop.tombstones()).toEqual([])
    // to delete softly what it may write is its right, and can be taken back
    await friend.softDelete(told)
    await sync(nas, friend, WRITER)
    expect(nas.note(told).deletedAt).not.toBeNull()
  })
})
