import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { LIMITS, createKeyPair, isNodeError } from '@csb/core'
import { FULL, TRUSTED, createNode, seenBy, sync, type Between, type Node } from './nodes.ts'
import { createWire } from './ports.ts'

const nodes: Node[] = []
let nas: Node
let laptop: Node
let friend: Node

const OWN: Between = { ofRight: FULL, ofLeft: FULL }
/** right is a friend: it sees what is trusted, and changes nothing here */
const READER: Between = { ofRight: { clearance: TRUSTED, mayWrite: false }, ofLeft: FULL }
/** the same, and it may write what it sees */
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

describe('two nodes that see the same', () => {
  test('L4.1 end with the same tree, whoever wrote what', async () => {
    for (let n = 0; n < 5; n++) await nas.create(`from the nas ${n}`, n % 2 === 0 ? 'private:owner' : 'public:owner')
    for (let n = 0; n < 3; n++) await laptop.create(`from the laptop ${n}`, 'sealed:owner:health')
    const { left, right } = await sync(nas, laptop, OWN)
    expect(left).toMatchObject({ sent: 5, received: 3, equal: true })
    expect(right).toMatchObject({ sent: 3, received: 5, equal: true })
    expect(nas.tree()).toBe(laptop.tree())
  })

  test('L4.1 keep the newer version of a note that both changed', async () => {
    const id = await nas.create('first')
    await sync(nas, laptop, OWN)
    await nas.rewrite(id, 'of the nas')
    await laptop.rewrite(id, 'of the laptop, later')
    await sync(nas, laptop, OWN)
    expect(nas.note(id).entry.content).toBe('of the laptop, later')
    expect(nas.tree()).toBe(laptop.tree())
  })

  test('say no more than hello and done when nothing differs', async () => {
    await nas.create('one')
    await sync(nas, laptop, OWN)
    const wire = createWire()
    await sync(nas, laptop, { ...OWN, wire })
    expect(wire.toRight.map((text) => (JSON.parse(text) as { type: string }).type)).toEqual([
      'hello',
      'want',
      'notes',
      'done',
    ])
    expect(wire.toRight.join('').length).toBeLessThan(700)
  })

  test('more labels than a page holds, and longer ones, go in several', async () => {
    const tag = (n: number) => `tag-${n}-${'x'.repeat(50)}`
    const labels = Array.from({ length: LIMITS.syncPageRows + 1 }, (_, n) => `private:owner:${tag(n)}`)
    await nas.createMany(labels)
    const wire = createWire()
    await expect(sync(nas, laptop, { ...OWN, wire })).resolves.toMatchObject({
      left: { sent: labels.length, equal: true },
      right: { received: labels.length, equal: true },
    })
    const hellos = wire.toRight.filter((text) => text.includes('"type":"hello"'))
    expect(hellos.length).toBeGreaterThan(1)
    expect(Math.max(...wire.toRight.map((text) => Buffer.byteLength(text)))).toBeLessThan(LIMITS.frameBytes)
    expect(nas.tree()).toBe(laptop.tree())
  })

  test('a softly deleted note is deleted on both, and can be restored from either', async () => {
    const id = await nas.create('one')
    await sync(nas, laptop, OWN)
    await nas.softDelete(id)
    await sync(laptop, nas, OWN)
    expect(laptop.note(id).deletedAt).not.toBeNull()
  })

  test('many notes go in several pages', async () => {
    const text = 'x'.repeat(2000)
    for (let n = 0; n < 200; n++) await nas.create(`${n} ${text}`)
    const wire = createWire()
    const { left } = await sync(nas, laptop, { ...OWN, wire })
    expect(left).toMatchObject({ sent: 200, equal: true })
    const pages = wire.toRight.filter((message) => message.includes('"type":"notes"'))
    expect(pages.length).toBeGreaterThan(1)
    expect(Math.max(...wire.toRight.map((message) => Buffer.byteLength(message)))).toBeLessThan(1_048_576)
  })
})

describe('a peer with a lower clearance', () => {
  const HIDDEN = ['private:owner', 'sealed:owner', 'public:owner:health']

  test('L4.2 gets what it may see and not a byte of the rest', async () => {
    const shown = await nas.create('for friends', 'trusted:owner')
    const hidden = []
    for (const label of HIDDEN) hidden.push(await nas.create(`secret under ${label} Zq9`, label))
    const wire = createWire()
    const { left, right } = await sync(nas, friend, { ...READER, wire })
    expect(left).toMatchObject({ sent: 1, equal: true })
    expect(right.received).toBe(1)
    expect(Object.keys(seenBy(await friend.states(), () => true))).toEqual([shown])
    const heard = wire.toRight.join('\n')
    expect(heard).toContain(shown)
    const states = new Map((await nas.states()).map((state) => [state.id, state]))
    for (const id of hidden) {
      const state = states.get(id)
      for (const word of [id, state?.oid, state?.path, state?.hlc, 'secret under', id.slice(-10)])
        expect(heard).not.toContain(word)
    }
    for (const word of ['private', 'sealed', 'health', nas.tree()]) expect(heard).not.toContain(word)
  })

  test('L4.2 hears word for word the same, whatever becomes of what it may not see', async () => {
    await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, READER)
    const hears = async () => {
      const wire = createWire()
      await sync(nas, friend, { ...READER, wire })
      return wire.toRight
    }
    const before = await hears()
    const id = await nas.create('hidden', 'private:owner')
    expect(await hears()).toEqual(before)
    await nas.rewrite(id, 'hidden, longer than before')
    await nas.create('hidden too', 'sealed:owner:health')
    expect(await hears()).toEqual(before)
    await nas.softDelete(id)
    expect(await hears()).toEqual(before)
    await nas.forget(id)
    expect(await hears()).toEqual(before)
  })

  test('L4.2 drops its copy when the label is raised', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, READER)
    await nas.relabel(id, 'private:owner')
    const { left, right } = await sync(nas, friend, READER)
    expect([left.withdrawn, right.withdrawn]).toEqual([1, 1])
    expect(await friend.states()).toEqual([])
    expect(nas.note(id).entry.content).toBe('for friends')
  })

  test('L4.2 drops many copies at once', async () => {
    const ids: string[] = []
    for (let n = 0; n < 12; n++) ids.push(await nas.create(`n ${n}`, 'trusted:owner'))
    await sync(nas, friend, READER)
    for (const id of ids) await nas.relabel(id, 'private:owner')
    await sync(nas, friend, READER)
    expect(await friend.states()).toEqual([])
  })

  test('L4.3 drops its copy of a note that was raised and then forgotten', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, READER)
    await nas.relabel(id, 'private:owner')
    await nas.forget(id)
    const wire = createWire()
    await sync(nas, friend, { ...READER, wire })
    expect(await friend.states()).toEqual([])
    expect(wire.toRight.join('')).not.toContain('private')
  })

  test('without the right to write changes nothing', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    const gone = await nas.create('stays', 'trusted:owner')
    await sync(nas, friend, READER)
    await friend.rewrite(id, 'mine now')
    await friend.create('from the friend', 'trusted:owner')
    await friend.forget(gone)
    const before = nas.tree()
    const { left } = await sync(nas, friend, READER)
    expect(left).toMatchObject({ received: 0, tombstonesReceived: 0, equal: false })
    expect(nas.tree()).toBe(before)
    expect(await nas.tombstones()).toEqual([])
  })

  test('with the right to write changes what it sees', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, WRITER)
    await friend.rewrite(id, 'better')
    const made = await friend.create('from the friend', 'public:owner')
    const { left } = await sync(nas, friend, WRITER)
    expect(left).toMatchObject({ received: 2, equal: true })
    expect(nas.note(id).entry.content).toBe('better')
    expect(nas.note(made).actor).toBe(friend.key.did)
  })

  test('L4.2 can neither overwrite nor forget a note above it, though it knows the id', async () => {
    const id = await nas.create('for friends', 'trusted:owner')
    await sync(nas, friend, WRITER)
    await nas.relabel(id, 'private:owner')
    await friend.rewrite(id, 'mine, later')
    await sync(nas, friend, WRITER)
    expect(nas.note(id)).toMatchObject({ entry: { content: 'for friends' }, label: { level: 'private' } })
    await friend.create('planted', 'trusted:owner', id)
    await friend.forget(id)
    await sync(nas, friend, WRITER)
    expect(nas.note(id).entry.content).toBe('for friends')
    expect(await nas.tombstones()).toEqual([])
  })

  test('L4.2 can not forget a note above it through a node that does not hold it yet', async () => {
    const id = await nas.create('private', 'private:owner')
    await friend.create('planted', 'trusted:owner', id)
    await friend.forget(id)
    await sync(laptop, friend, WRITER)
    expect(await laptop.tombstones()).toEqual([])
    await sync(nas, laptop, OWN)
    expect(nas.note(id).entry.content).toBe('private')
    expect(laptop.note(id).entry.content).toBe('private')
  })

  test('L4.2 gets nothing more once its right ends in the middle of a session', async () => {
    for (let n = 0; n < 200; n++) await nas.create(`${n} ${'x'.repeat(2000)}`, 'trusted:owner')
    const wire = createWire()
    let asked = 0
    // 200 notes are looked at one by one before they leave
    const rights = () => ({ clearance: asked++ < 50 ? TRUSTED : undefined, mayWrite: false })
    await expect(sync(nas, friend, { ...READER, ofRight: FULL, wire, ofRightNow: rights })).rejects.toMatchObject({
      code: 'CLEARANCE',
    })
    expect((await friend.states()).length).toBeLessThan(200)
  })
})

describe('forgetting', () => {
  test('L4.3 tombstones go before everything else', async () => {
    const id = await nas.create('one')
    await sync(nas, laptop, OWN)
    await nas.forget(id)
    await nas.create('two')
    const wire = createWire()
    await sync(nas, laptop, { ...OWN, wire })
    const kinds = wire.toRight.map((text) => (JSON.parse(text) as { type: string }).type)
    expect(kinds.slice(0, 3)).toEqual(['hello', 'tombstones', 'hello'])
    expect(kinds.filter((kind) => kind === 'tombstones')).toHaveLength(1)
    expect((await laptop.states()).some((state) => state.id === id)).toBe(false)
  })

  test('L4.3 a forgotten note does not come back from a node that was away, whatever it did meanwhile', async () => {
    const id = await nas.create('one')
    await sync(nas, laptop, OWN)
    await sync(nas, friend, WRITER)
    await nas.forget(id)
    await laptop.rewrite(id, 'still here, and newer')
    await friend.relabel(id, 'public:owner')
    await sync(laptop, friend, WRITER)
    for (const [left, right, how] of [
      [nas, laptop, OWN],
      [laptop, friend, WRITER],
      [nas, friend, WRITER],
    ] as const) {
      await sync(left, right, how)
    }
    for (const node of [nas, laptop, friend]) {
      expect(await node.states()).toEqual([])
      expect(await node.tombstones()).toEqual([id])
    }
  })

  test('L4.3 a tombstone reaches a node that never had the note, and stops it there', async () => {
    const id = await nas.create('one')
    await sync(nas, friend, WRITER)
    await nas.forget(id)
    await sync(nas, laptop, OWN)
    expect(await laptop.tombstones()).toEqual([id])
    await sync(laptop, friend, WRITER)
    expect(await laptop.states()).toEqual([])
    expect(await friend.states()).toEqual([])
  })
})

describe('a line that is cut', () => {
  test('L4.1 at any message leaves both whole, and the next session completes', async () => {
    let forgotten = await nas.create('to be forgotten')
    let cuts = 0
    for (let at = 0; at < 24; at++) {
      await sync(nas, laptop, OWN)
      await nas.forget(forgotten)
      forgotten = await nas.create(`again ${at}`, 'private:owner')
      await laptop.create(`and again ${at}`)
      const isCut = await sync(nas, laptop, { ...OWN, wire: createWire(at) }).then(
        () => false,
        (error: unknown) => isNodeError(error, 'PEER_UNREACHABLE'),
      )
      if (isCut) cuts++
      // every row of the index is a note that can be read, and the tree holds as many
      for (const node of [nas, laptop]) {
        const ids = (await node.states()).map(({ id }) => id)
        expect(ids.map((id) => node.note(id).entry.id)).toEqual(ids)
        expect(await node.filed()).toEqual(ids)
      }
    }
    expect(cuts).toBeGreaterThan(13)
    await sync(nas, laptop, OWN)
    expect(nas.tree()).toBe(laptop.tree())
    expect(await laptop.tombstones()).toEqual(await nas.tombstones())
  })
})
