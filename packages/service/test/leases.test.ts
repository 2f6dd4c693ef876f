/** Leases in full: narrower ones for children, budgets that all of them share, and what is left when time is over. */
import { describe, expect, test } from 'vitest'
import { createFakeClock, createKeyPair, fail, newId, type Grant, type Lease } from '@csb/core'
import {
  createToken,
  draftGrant,
  findGrant,
  holderOf,
  signGrant,
  signKeyChange,
  signRevocation,
  tokenHash,
} from '@csb/authority'
import { getRef } from '@csb/files'
import type { Caller } from '../src/index.ts'
import {
  HOUR,
  NOW,
  attach,
  codeOf,
  createHouse,
  holdingIn,
  messageOf,
  type Holder,
  type House,
  type Task,
} from './house.ts'

type Child = { readonly token: string; readonly hash: string; readonly expires_at: number; readonly lease: Lease }

const PARENT: Partial<Lease> = {
  actions: ['list', 'read', 'write'],
  paths: ['/notes', '/projects'],
  deny_paths: ['/projects/secret'],
  branches: ['memory', 'runs/*'],
  labels_max: 'private',
  label_tags: ['work'],
  label_floor: 'trusted',
  capabilities: ['C'],
  external: 'deny',
  gates: ['merge'],
  budget: { calls: 100, bytes_written: 100_000 },
  max_children: 2,
}

const holding = (house: House, lease: Partial<Lease> = PARENT) => holdingIn(house, lease)
const attenuate = (house: House, parent: Caller, lease: Partial<Lease>, more: object = {}) =>
  house.service.perform(parent, 'authority.attenuate', { name: 'child', lease, ...more }) as Promise<Child>
const as = ({ token }: Child): Holder => ({ kind: 'bearer', token, door: 'http' })
const write = (house: House, caller: Caller, text = 'x') =>
  house.service.perform(caller, 'memory.create', {
    entry: { content: text, level: 'warm', type: 'lesson' },
    label: 'private:agent:work',
  })
const list = (house: House, caller: Caller) => house.service.perform(caller, 'memory.list', {})

describe('L1.2 a child of a lease', () => {
  test.each<[string, Partial<Lease>, object?]>([
    ['locations', { locations: ['nas://*/home_bbbbbbbbbbbbbbbbbbbbbbbbbb'] }],
    ['actions', { actions: ['list', 'send'] }],
    ['paths', { paths: ['/notes2'] }],
    ['deny_paths', { deny_paths: [] }],
    ['branches', { branches: ['*'] }],
    ['labels_max', { labels_max: 'sealed' }],
    ['label_tags', { label_tags: ['work', 'health'] }],
    ['label_floor', { label_floor: 'public' }],
    ['capabilities', { capabilities: ['B', 'C'] }],
    ['external', { external: 'taint' }],
    ['gates', { gates: [] }],
    ['budget.calls', { budget: { calls: 101 } }],
    ['max_children', { max_children: 3 }],
    ['expires_at', {}, { ttl_ms: HOUR + 1000 }],
  ])('L1.2 that exceeds its parent in %s is refused, and the field is named', async (field, lease, more = {}) => {
    const house = await createHouse()
    const parent = await holding(house)
    const asked = attenuate(house, parent, lease, more)
    await expect(asked).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field } })
    const told = (await house.records()).at(-1)
    expect(told).toMatchObject({ operation: 'authority.attenuate', outcome: 'refused', code: 'SCOPE_EXCEEDED' })
  })

  test('L1.2 that is narrower works, as far as it reaches, and ends with its parent', async () => {
    const house = await createHouse()
    const parent = await holding(house)
    const child = await attenuate(house, parent, { actions: ['list', 'read'] })
    expect(child).toMatchObject({
      expires_at: NOW + HOUR,
      lease: { max_children: 0, deny_paths: ['/projects/secret'] },
    })
    expect(await codeOf(list(house, as(child)))).toBe('done')
    expect(await codeOf(write(house, as(child)))).toBe('SCOPE_EXCEEDED')
    // it has no children of its own
    expect(await codeOf(attenuate(house, as(child), {}))).toBe('SCOPE_EXCEEDED')
    await house.owned('authority.revoke', signRevocation({ target: parent.hash, now: NOW }, house.owner))
    expect(await codeOf(list(house, as(child)))).toBe('LEASE_REVOKED')
  })

  test('L1.2 of a child is within both', async () => {
    const house = await createHouse()
    const parent = await holding(house)
    const child = await attenuate(house, parent, { paths: ['/notes'], max_children: 1 })
    const wide = attenuate(house, as(child), { paths: ['/projects'] })
    await expect(wide).rejects.toMatchObject({ details: { field: 'paths' } })
    const grandchild = await attenuate(house, as(child), { paths: ['/notes/2027'] })
    expect(grandchild.lease.paths).toEqual(['/notes/2027'])
    // and no further: the owner let it be passed on twice
    expect(await codeOf(attenuate(house, as(grandchild), {}))).toBe('SCOPE_EXCEEDED')
  })

  test('L1.2 are as many as the lease says, also after a restart, and those that are over count', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const parent = await holding(house)
    for (const _ of [1, 2]) await attenuate(house, parent, {}, { ttl_ms: 1000 })
    clock.advance(2000)
    const again = await house.reopen()
    await expect(attenuate(again, parent, {})).rejects.toMatchObject({ details: { field: 'max_children' } })
  })

  test('attack 40: needs the capability to act on others, and the token of its parent', async () => {
    const house = await createHouse()
    const mute = await holding(house, { ...PARENT, capabilities: [] })
    await expect(attenuate(house, mute, {})).rejects.toMatchObject({ details: { field: 'capabilities' } })
    // a lease whose holder's key nobody has makes no children
    const foreign = await house.leased(PARENT, { maxDepth: 2, to: { name: 'x', did: createKeyPair().did } })
    await expect(attenuate(house, foreign, {})).rejects.toMatchObject({ details: { reason: 'holder_mismatch' } })
  })
})

describe('L1.2 a budget', () => {
  test('attack 28: many children together do no more than their parent may', async () => {
    const house = await createHouse()
    const parent = await holding(house, { ...PARENT, budget: { calls: 10 } })
    const [one, other] = [await attenuate(house, parent, {}), await attenuate(house, parent, {})]
    // two calls went into making them
    const codes: string[] = []
    for (let n = 0; n < 6; n++) for (const child of [one, other]) codes.push(await codeOf(list(house, as(child))))
    expect(codes.filter((code) => code === 'done')).toHaveLength(8)
    await expect(list(house, parent)).rejects.toMatchObject({
      code: 'SCOPE_EXCEEDED',
      details: { field: 'budget.calls', lease: parent.hash },
    })
  })

  test('L1.2 is not given back by a restart, nor by what was refused', async () => {
    const house = await createHouse()
    const parent = await holding(house, { ...PARENT, budget: { calls: 3 } })
    expect(await codeOf(list(house, parent))).toBe('done')
    expect(await codeOf(house.service.perform(parent, 'memory.get', { id: 'mem_0000000000000_x' }))).toBe('NOT_FOUND')
    const again = await house.reopen()
    expect(await codeOf(list(again, parent))).toBe('done')
    expect(await codeOf(list(again, parent))).toBe('SCOPE_EXCEEDED')
  })

  test('L1.2 of bytes is counted before anything is written or shown', async () => {
    const house = await createHouse()
    const writer = await holding(house, { ...PARENT, budget: { bytes_written: 600 } })
    expect(await codeOf(write(house, writer, 'x'.repeat(300)))).toBe('done')
    await expect(write(house, writer, 'x'.repeat(300))).rejects.toMatchObject({
      details: { field: 'budget.bytes_written' },
    })
    const reader = await holding(house, { ...PARENT, budget: { bytes_read: 700 } })
    expect(await codeOf(list(house, reader))).toBe('done')
    await expect(list(house, reader)).rejects.toMatchObject({ details: { field: 'budget.bytes_read' } })
  })

  test('L1.2 of bytes is counted in a session as well: a push is refused before it is taken in', async () => {
    const house = await createHouse()
    const branch = 'runs/pushed'
    const change = { name: `refs/heads/${branch}`, from: null, to: 'ab'.repeat(32) }
    const pushing = async (bytes: number) => {
      const pusher = await holding(house, { ...PARENT, paths: ['/'], deny_paths: [], budget: { bytes_written: bytes } })
      const told: unknown[] = []
      const chunks = [new Uint8Array(64)]
      await house.service.attend(
        pusher,
        'git.push',
        { changes: [change] },
        {
          send: async (message) => void told.push(message),
          receive: async () => chunks.shift(),
          close: async () => undefined,
          abort: () => undefined,
        },
      )
      return JSON.stringify(told.at(-1))
    }
    expect(await pushing(63)).toContain('budget.bytes_written')
    // what is no pack is said to be that, once there is enough to take it in
    expect(await pushing(64)).toContain('MALFORMED')
    expect(getRef(house.store.view(), house.home, branch)).toBeUndefined()
  })

  test('attack 28: a run that a lease began is on its account', async () => {
    const house = await createHouse()
    await attach(house)
    const caller = await holding(house, {
      ...PARENT,
      actions: ['list', 'read', 'write', 'send'],
      label_floor: 'public',
      budget: { bytes_written: 1000, calls: 3, wall_ms: 60_000 },
    })
    const ask = async (words: string): Promise<Task> => {
      const sent = house.service.perform(caller, 'agents.send', {
        agent: 'clerk',
        params: { message: messageOf(words) },
      })
      return ((await sent) as { task: Task }).task
    }
    expect((await ask(`write notes/a.md ${'x'.repeat(600)}`)).status.state).toBe('TASK_STATE_COMPLETED')
    expect((await ask(`write notes/b.md ${'x'.repeat(600)}`)).status.state).toBe('TASK_STATE_FAILED')
    expect((await house.records()).at(-1)).toMatchObject({ code: 'SCOPE_EXCEEDED' })
    expect(await codeOf(ask('show'))).toBe('done')
    expect(await codeOf(ask('show'))).toBe('SCOPE_EXCEEDED')
  })
})

describe('L1.3 when a lease is over', () => {
  test('L1.3 expired, it shows what it showed and changes nothing', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const agent = await holding(house, { ...PARENT, budget: {} })
    await write(house, agent, 'kept')
    clock.advance(HOUR)
    expect(await list(house, agent)).toMatchObject({ items: [{ content: 'kept' }] })
    expect(await codeOf(house.service.perform(agent, 'files.refs', {}))).toBe('done')
    expect(await codeOf(write(house, agent))).toBe('LEASE_EXPIRED')
    for (const [operation, input] of [
      ['files.write', { branch: 'runs/x', path: 'notes/a.md', text: 'x' }],
      ['authority.attenuate', { name: 'x', lease: {} }],
      ['peers.dial', { address: '/ip4/127.0.0.1/tcp/1' }],
      ['agents.send', { agent: 'clerk', params: {} }],
    ] as const)
      expect([operation, await codeOf(house.service.perform(agent, operation, input))]).toEqual([
        operation,
        'LEASE_EXPIRED',
      ])
    // and shows nothing that it did not
    expect(await codeOf(house.service.perform(agent, 'record.tail', {}))).toBe('SCOPE_EXCEEDED')
  })

  test.each<[string, Partial<Lease>]>([
    ['paths', { paths: ['/nothing'] }],
    ['deny_paths', { deny_paths: ['/finance'] }],
    ['labels_max', { labels_max: 'private' }],
    ['label_tags', { label_tags: ['work'] }],
    ['actions', { actions: ['exec'] }],
    ['branches', { branches: ['runs/*'] }],
  ])('L1.2, attack 33: what tells of everything is not told where the lease is limited in %s', async (field, less) => {
    const house = await createHouse()
    const agent = await house.leased({ capabilities: ['C'], ...less })
    for (const [operation, input] of [
      ['gate.list', {}],
      ['gate.show', { card: newId('gate', NOW) }],
      ['record.tail', {}],
      ['agents.inbox', {}],
      ['authority.grants', {}],
    ] as const) {
      const asked = house.service.perform(agent, operation, input)
      await expect(asked).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field } })
    }
  })

  test('L1.3 expired, what is more than looking is over, whatever kind of answer it has', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const everything = {
      paths: ['/'],
      deny_paths: [],
      branches: ['*'],
      labels_max: 'sealed' as const,
      label_tags: ['*'],
    }
    const wide = {
      ...PARENT,
      ...everything,
      actions: ['list' as const, 'read' as const, 'exec' as const, 'send' as const],
    }
    const agent = await holding(house, { ...wide, budget: {}, external: 'taint' })
    expect(await codeOf(house.service.perform(agent, 'gate.list', {}))).toBe('done')
    clock.advance(HOUR)
    expect(await codeOf(house.service.perform(agent, 'gate.list', {}))).toBe('LEASE_EXPIRED')
    const stream = house.service.open(agent, 'agents.stream', { agent: 'clerk', params: { message: messageOf('x') } })
    expect(await codeOf(stream[Symbol.asyncIterator]().next())).toBe('LEASE_EXPIRED')
  })

  test('attack 9: a clock set back lets it write no more', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const agent = await holding(house, { ...PARENT, budget: {} })
    clock.advance(HOUR)
    expect(await codeOf(write(house, agent))).toBe('LEASE_EXPIRED')
    clock.set(NOW)
    expect(await codeOf(write(house, agent))).toBe('LEASE_EXPIRED')
  })

  test('L1.3 revoked, it is nothing any more from the next operation on', async () => {
    const house = await createHouse()
    const agent = await holding(house)
    expect(await codeOf(list(house, agent))).toBe('done')
    await house.owned('authority.revoke', signRevocation({ target: agent.hash, now: NOW }, house.owner))
    expect([await codeOf(list(house, agent)), await codeOf(write(house, agent))]).toEqual([
      'LEASE_REVOKED',
      'LEASE_REVOKED',
    ])
  })
})

describe("L1.2 a token of one's own for a grant of the owner", () => {
  type Listed = { readonly items: readonly { readonly hash: string; readonly grant: Grant }[] }
  const RULING = {
    actions: ['list', 'read', 'exec'],
    paths: ['/'],
    branches: ['*'],
    labels_max: 'sealed',
    label_tags: ['*'],
    capabilities: ['C'],
  } satisfies Partial<Lease>
  const mine = 'csb_chosen-by-whoever-asks'
  const bring = (house: House, session: Caller, grant: Grant) =>
    house.service.perform(session, 'authority.accept', { grant, token_hash: tokenHash(mine) })

  test('L1.2 is not given to who saw the grant here, and who it was made out to goes on', async () => {
    const house = await createHouse()
    const writer = await holding(house, { ...PARENT, external: 'taint' })
    const session = await holding(house, RULING)
    const { items } = (await house.service.perform(session, 'authority.grants', {})) as Listed
    expect(items.map(({ hash }) => hash)).toContain(writer.hash)
    const [old, next] = [createKeyPair(), createKeyPair()]
    await house.owned('authority.trust', { did: old.did, name: 'somebody' })
    const statement = signKeyChange({ old, next, seq: 1, effectiveAt: NOW })
    for (const { grant } of items) {
      expect(await codeOf(bring(house, session, grant))).toBe('DENIED')
      // nor beside a word on a key that is true
      const grants = [{ grant, token_hash: tokenHash(mine) }]
      expect(await codeOf(house.service.perform(session, 'keys.state', { statement, grants }))).toBe('DENIED')
    }
    expect(await codeOf(write(house, { kind: 'bearer', token: mine, door: 'http' }))).toBe('UNAUTHENTICATED')
    expect(await codeOf(write(house, writer))).toBe('done')
  })

  test('L1.2 is given for as many children, signed elsewhere, as the lease may have', async () => {
    const house = await createHouse()
    const session = await holding(house, { ...RULING, max_children: 1 })
    const parent = findGrant(house.store.view(), session.hash).at(-1) ?? fail('NOT_FOUND')
    const child = () =>
      signGrant(
        draftGrant({
          type: 'scoped',
          from: { name: 'builder', did: holderOf(session.token).did },
          to: { name: 'child', did: createKeyPair().did },
          audience: [house.key.did],
          scope: ['lease'],
          level: 'request',
          now: NOW,
          ttlMs: 1000,
          parent,
          lease: { ...RULING, type: 'urn:csb:lease:1', locations: [`nas://*/${house.home}`] },
        }),
        holderOf(session.token),
      )
    const bringChild = () =>
      house.service.perform(session, 'authority.accept', {
        chain: [parent],
        grant: child(),
        token_hash: tokenHash(createToken()),
      })
    expect(await codeOf(bringChild())).toBe('done')
    const before = await house.dump()
    await expect(bringChild()).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'max_children' } })
    expect(await house.dump()).toEqual(before)
  })

  test('L1.2 is not given for one that is shown at other nodes, kept here or not', async () => {
    const house = await createHouse()
    const session = await holding(house, RULING)
    const granting = await createHouse({ owner: house.owner, home: house.home })
    const elsewhere = await granting.grant({ to: { name: 'another node', did: granting.key.did }, audience: ['*'] })
    expect(await codeOf(bring(house, session, elsewhere))).toBe('DENIED')
    expect(await codeOf(house.owned('authority.accept', { grant: elsewhere, token_hash: tokenHash(mine) }))).toBe(
      'done',
    )
  })
})
