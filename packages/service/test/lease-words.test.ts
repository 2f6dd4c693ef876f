/** Two words of a lease that hold for everything under it: what always takes a person, and nothing from outside. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { signApproval } from '@csb/authority'
import { getRef } from '@csb/files'
import { notePath } from '@csb/memory'
import type { Caller } from '../src/index.ts'
import { attach, cardFor, codeOf, createHouse, holdingIn, messageOf, type House } from './house.ts'
import { createNetwork } from './network.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'propose', 'send'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
  max_children: 4,
}

const remember = async (house: House, content: string, label: string) =>
  (await house.owned<{ id: string }>('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label })).id

const dump = (house: House) => house.dump((fullKey) => /^(?:r[hpncrlu]|m\/record|a[copq])(?:\/|$)/.test(fullKey))

describe('L1.2 a lease whose gates name', () => {
  const writing = async (house: House, session: Caller, branch: string) =>
    house.service.perform(session, 'files.write', { branch, path: 'a.md', text: branch })

  test('L1.2 merge: a merge into any branch waits for a person, and moves it as it was approved', async () => {
    const house = await createHouse()
    const [free, gated] = [await holdingIn(house, LEASE), await holdingIn(house, { ...LEASE, gates: ['merge'] })]
    for (const branch of ['runs/1', 'runs/2', 'runs/3']) await writing(house, gated, branch)
    expect(await codeOf(house.service.perform(free, 'files.merge', { from: 'runs/1', into: 'runs/2' }))).toBe('done')
    const wish = () => house.service.perform(gated, 'files.merge', { from: 'runs/1', into: 'runs/3' })
    const head = () => getRef(house.store.view(), house.home, 'runs/3')?.commit
    const before = head()
    const card = await cardFor(wish(), house.owned)
    expect(head()).toBe(before)
    const now = house.clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    const { commit } = await house.owned<{ commit: string }>('gate.approve', { card: card.id, approval })
    expect(head()).toBe(commit)
  })

  test('L1.2 mint: what it asks for waits though it is clean', async () => {
    const house = await createHouse()
    const gated = await holdingIn(house, { ...LEASE, gates: ['mint'] })
    const wish = () => house.service.perform(gated, 'authority.attenuate', { name: 'child', lease: {} })
    const card = await cardFor(wish(), house.owned)
    expect(card).toMatchObject({ kind: 'mint', taint: false, facts: { tainted_by: { reads: [] } } })
    const now = house.clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    await house.owned('gate.approve', { card: card.id, approval })
    // the child is held to the same
    await expect(wish()).resolves.toMatchObject({ lease: { gates: ['mint'] } })
  })

  test('L1.2 an action: nobody can be asked for that, so it is refused, and nothing is done', async () => {
    const house = await createHouse()
    await attach(house)
    const gated = await holdingIn(house, { ...LEASE, gates: ['send', 'write'] })
    const before = await dump(house)
    for (const [operation, input] of [
      ['agents.send', { agent: 'clerk', params: { message: messageOf('echo') } }],
      ['files.write', { branch: 'runs/1', path: 'a.md', text: 'x' }],
      ['memory.create', { entry: { content: 'x', level: 'warm', type: 'lesson' } }],
    ] as const)
      await expect(house.service.perform(gated, operation, input)).rejects.toMatchObject({
        code: 'SCOPE_EXCEEDED',
        details: { field: 'gates' },
      })
    expect(await dump(house)).toEqual(before)
    expect(await codeOf(house.service.perform(gated, 'memory.list', {}))).toBe('done')
  })
})

describe('L1.2 a lease that takes nothing from outside', () => {
  async function denying() {
    const house = await createHouse()
    const outside = await remember(house, 'from outside', 'private:external')
    const own = await remember(house, 'my own', 'private:owner')
    const session = await holdingIn(house, { ...LEASE, external: 'deny' })
    return { house, outside, own, session }
  }

  test('L1.2 is not shown it, whichever way it asks, and is not tainted', async () => {
    const { house, outside, own, session } = await denying()
    const before = await dump(house)
    for (const [operation, input] of [
      ['memory.get', { id: outside }],
      ['files.read', { branch: 'memory', path: notePath(outside) }],
    ] as const)
      expect(await codeOf(house.service.perform(session, operation, input))).toBe('DENIED')
    const wants = [getRef(house.store.view(), house.home, 'memory')?.commit ?? '']
    for (const stream of [
      house.service.open(session, 'git.fetch', { wants, done: true }),
      house.service.open(session, 'files.export', {}),
    ])
      expect(await codeOf(stream[Symbol.asyncIterator]().next())).toBe('DENIED')
    const told = (await house.records()).filter(({ code }) => code === 'DENIED')
    expect(told.map(({ operation, outcome }) => [operation, outcome])).toEqual(
      ['memory.get', 'files.read', 'git.fetch', 'files.export'].map((operation) => [operation, 'refused']),
    )
    expect(await dump(house)).toEqual(before)
    // what lies beside it is
    expect(await house.service.perform(session, 'memory.list', {})).toMatchObject({ items: [{ id: own }] })
    const listed = JSON.stringify(await house.service.perform(session, 'files.list', { branch: 'memory' }))
    expect(listed).toContain(own)
    expect(listed).not.toContain(outside)
    expect(await codeOf(house.service.perform(session, 'memory.get', { id: own }))).toBe('done')
    expect(await codeOf(house.service.perform(session, 'authority.attenuate', { name: 'c', lease: {} }))).toBe('done')
  })

  test('L1.2 asks no other node, since what it answers is from outside', async () => {
    const network = createNetwork()
    const house = await createHouse({ name: 'nas', network })
    const friend = await createHouse({ name: 'friend', network })
    await attach(friend)
    const session = await holdingIn(house, { ...LEASE, external: 'deny' })
    const send = { agent: 'clerk', did: friend.key.did, params: { message: messageOf('echo') } }
    expect(await codeOf(house.service.perform(session, 'agents.send', send))).toBe('DENIED')
    const events = house.service.open(session, 'agents.stream', send)
    expect(await codeOf(events[Symbol.asyncIterator]().next())).toBe('DENIED')
    expect(network.heard).toEqual([])
  })

  test('L1.2 writes nothing that rests on it', async () => {
    const { house, outside, session } = await denying()
    const before = await dump(house)
    for (const operation of ['memory.delete', 'memory.restore'])
      expect(['DENIED', 'NOT_FOUND']).toContain(
        await codeOf(house.service.perform(session, operation, { id: outside })),
      )
    expect(await dump(house)).toEqual(before)
    await expect(house.owned('memory.get', { id: outside })).resolves.toMatchObject({ content: 'from outside' })
  })
})
