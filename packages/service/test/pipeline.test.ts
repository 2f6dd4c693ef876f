import { describe, expect, test } from 'vitest'
import { createFakeClock, createKeyPair, newId, type Lease } from '@csb/core'
import { signRevocation } from '@csb/authority'
import { OPERATIONS, type Caller } from '../src/index.ts'
import { HOUR, NOW, codeOf, createHouse, nobody, visitor, type House } from './house.ts'

const entry = { content: 'tea is hot', level: 'warm', type: 'lesson' }
const create = (house: House, caller: Caller, more: object = {}) =>
  house.service.perform(caller, 'memory.create', { entry, ...more })

/** The code, and that nothing was left but one record of it. */
async function refused(house: House, work: () => Promise<unknown>): Promise<string> {
  const before = await house.dump()
  const size = (await house.records()).length
  const code = await codeOf(work())
  expect(await house.dump()).toEqual(before)
  const records = await house.records()
  expect(records.slice(size).map((told) => [told.outcome, told.code])).toEqual([['refused', code]])
  return code
}

describe('a request that is refused leaves nothing but its record', () => {
  test('L1.1 attack 14: without a lease', async () => {
    const house = await createHouse()
    expect(await refused(house, () => create(house, nobody))).toBe('LEASE_REQUIRED')
    expect(await refused(house, () => create(house, visitor(createKeyPair().did)))).toBe('LEASE_REQUIRED')
  })

  test('L1.1 with a token nobody issued', async () => {
    const house = await createHouse()
    const made = { kind: 'bearer', token: 'csb_made-up', door: 'http' } as const
    expect(await refused(house, () => create(house, made))).toBe('UNAUTHENTICATED')
  })

  test('L1.3 with a lease that has expired, and a clock set back does not bring it to life', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const agent = await house.leased()
    expect(await codeOf(create(house, agent))).toBe('done')
    clock.advance(HOUR)
    expect(await refused(house, () => create(house, agent))).toBe('LEASE_EXPIRED')
    clock.set(NOW)
    expect(await codeOf(create(house, agent))).toBe('LEASE_EXPIRED')
  })

  test('L1.3 with a lease that was revoked', async () => {
    const house = await createHouse()
    const agent = await house.leased()
    const { revocation } = signRevocation({ target: agent.hash, now: NOW }, house.owner)
    await house.owned('authority.revoke', { revocation })
    expect(await refused(house, () => create(house, agent))).toBe('LEASE_REVOKED')
  })

  test.each<[string, Partial<Lease>]>([
    ['locations', { locations: ['nas://*/home_bbbbbbbbbbbbbbbbbbbbbbbbbb'] }],
    ['actions', { actions: ['read', 'list', 'send'] }],
    ['paths', { paths: ['/projects'] }],
    ['deny_paths', { deny_paths: ['/notes'] }],
    ['branches', { branches: ['runs/*'] }],
    ['label_floor', { label_floor: 'sealed' }],
  ])('L1.1 with a lease whose %s does not reach', async (field, lease) => {
    const house = await createHouse()
    const agent = await house.leased(lease)
    await expect(create(house, agent)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field } })
    const [told] = (await house.records()).slice(-1)
    expect(told).toMatchObject({ operation: 'memory.create', outcome: 'refused', code: 'SCOPE_EXCEEDED' })
  })

  test('L0.2 that writes into a protected branch, with every right there is', async () => {
    const house = await createHouse()
    const write = () => house.owned('files.write', { branch: 'main', path: 'a.md', text: 'x' })
    expect(await refused(house, write)).toBe('PROTECTED')
  })

  test('that does not fit its schema, however long its names are', async () => {
    const house = await createHouse()
    const long = 'x'.repeat(100_000)
    const work = () => house.owned('memory.create', { entry, [long]: 1 })
    expect(await refused(house, work)).toBe('INVALID_INPUT')
    expect(JSON.stringify((await house.records()).at(-1)).length).toBeLessThan(4000)
  })

  test('L1.3 whose lease ends between the check and the write', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const agent = await house.leased()
    const before = await house.dump()
    // the transaction before it is still at work when the lease is checked for the first time
    const { promise, resolve } = Promise.withResolvers<void>()
    const blocking = house.store.transact(async () => promise)
    const writing = codeOf(create(house, agent))
    clock.advance(HOUR)
    resolve()
    await blocking
    expect(await writing).toBe('LEASE_EXPIRED')
    expect(await house.dump()).toEqual(before)
  })

  test('a session or an envelope asked for with a token, which proves no key', async () => {
    const house = await createHouse()
    const port = {
      send: async () => undefined,
      receive: async () => undefined,
      close: async () => undefined,
      abort: () => undefined,
    }
    expect(await codeOf(house.service.attend(house.owning, 'sync.serve', { home: house.home }, port))).toBe(
      'LEASE_REQUIRED',
    )
    expect(await codeOf(house.service.attend(house.owning, 'authority.receive', {}, port))).toBe('LEASE_REQUIRED')
    const deliver = house.service.open(house.owning, 'agents.deliver', { envelope: {} })[Symbol.asyncIterator]()
    expect(await codeOf(deliver.next())).toBe('LEASE_REQUIRED')
  })
})

describe('the record', () => {
  test('L1.1 attack 39: folds a flood of the same refusal, and tells how many there were', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    for (let n = 0; n < 50; n++) await codeOf(create(house, nobody))
    clock.advance(10_001)
    await codeOf(create(house, nobody))
    const told = (await house.records()).filter(({ code }) => code === 'LEASE_REQUIRED')
    expect(told.map(({ effect }) => effect['folded'])).toEqual([0, 49])
  })

  test('L1.1 keeps the refusals of others while one floods', async () => {
    const house = await createHouse()
    for (let n = 0; n < 1100; n++) await codeOf(create(house, visitor(createKeyPair().did)))
    await codeOf(create(house, nobody))
    expect((await house.records()).length).toBeGreaterThan(100)
    await expect(house.owned('record.verify')).resolves.toMatchObject({ ok: true })
  })

  test('reads make none', async () => {
    const house = await createHouse()
    const { id } = (await create(house, house.owning)) as { id: string }
    const before = await house.dump(() => false)
    await house.owned('memory.get', { id })
    await house.owned('memory.list')
    await house.owned('files.list', { branch: 'memory' })
    await house.owned('files.refs')
    await house.owned('record.tail')
    await house.owned('node.status')
    expect(await house.dump(() => false)).toEqual(before)
  })

  test('L1.5 a commit leads to its lease and to who granted it', async () => {
    const house = await createHouse()
    const agent = await house.leased()
    const { commit } = (await create(house, agent)) as { commit: string }
    const explained = await house.owned('record.explain', { commit: commit.slice(0, 12) })
    expect(JSON.stringify(explained)).toContain(agent.hash)
    expect(JSON.stringify(explained)).toContain(house.owner.did)
  })

  test('L1.5 tells only those who may see everything what was done and read', async () => {
    const house = await createHouse()
    const { commit } = (await create(house, house.owning)) as { commit: string }
    const reader = await house.leased({ actions: ['read', 'list'], labels_max: 'private' })
    for (const [operation, input] of [
      ['record.tail', {}],
      ['record.explain', { commit }],
      ['record.verify', {}],
      ['record.prove', { seq: 0 }],
      ['record.checkpoint', {}],
      ['record.witnessed', {}],
      ['sync.status', {}],
      ['peers.list', {}],
      ['authority.grants', {}],
      ['authority.trusted', {}],
      ['files.log', { branch: 'memory' }],
    ] as const) {
      await expect(house.service.perform(reader, operation, input)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED' })
    }
    await expect(house.owned('record.verify')).resolves.toMatchObject({ ok: true })
    // of the node itself: who it is, which its card tells as well
    const status = await house.service.perform(reader, 'node.status', {})
    expect(Object.keys(status as object).sort()).toEqual(['did', 'name', 'peer_id', 'version'])
    await expect(house.owned('node.status')).resolves.toMatchObject({ home: house.home, peers: { known: 0 } })
  })
})

describe('the registry', () => {
  test('an operation that is not in it does not exist, under any way of asking', async () => {
    const house = await createHouse()
    expect(await codeOf(house.owned('snapshots.delete'))).toBe('UNKNOWN_OPERATION')
    expect(await codeOf(house.owned('__proto__'))).toBe('UNKNOWN_OPERATION')
    expect(await codeOf(house.owned('agents.stream', { agent: 'clerk', params: {} }))).toBe('UNKNOWN_OPERATION')
    const stream = house.service.open(house.owning, 'memory.list', {})[Symbol.asyncIterator]()
    expect(await codeOf(stream.next())).toBe('UNKNOWN_OPERATION')
  })

  test('L1.4 no operation moves or deletes a snapshot, and no lease has a word for it', async () => {
    const names = [...OPERATIONS.keys()].filter((name) => /snapshot|reset|prune|purge/i.test(name))
    // the one there is makes one
    expect(names).toEqual(['files.snapshot'])
    const house = await createHouse()
    for (const action of ['delete_snapshot', 'write_protected', '*']) {
      await expect(house.leased({ actions: [action as 'read'] })).rejects.toMatchObject({ code: 'GRANT_INVALID' })
    }
  })

  test('L1.1 attack 14: every operation that needs a lease refuses whoever has none', async () => {
    const house = await createHouse()
    const inputs: Record<string, object> = {
      'memory.create': { entry },
      'memory.batch': { items: [{ entry }] },
    }
    const id = newId('memory', NOW)
    const named = { id, branch: 'main', path: 'a', text: 'x', commit: 'abcdef', seq: 0, agent: 'clerk', params: {} }
    for (const [name, operation] of OPERATIONS) {
      if (operation.open !== 'lease' || operation.kind === 'stream' || operation.kind === 'session') continue
      const code = await codeOf(house.service.perform(nobody, name, inputs[name] ?? named))
      // an input that does not fit is told first
      expect([name, ['LEASE_REQUIRED', 'INVALID_INPUT'].includes(code)]).toEqual([name, true])
    }
  })

  test('L1.2 changing who may do what takes more than any agent is given', async () => {
    const house = await createHouse()
    const agent = await house.leased()
    const did = createKeyPair().did
    for (const [operation, input] of [
      ['authority.trust', { did, name: 'me', ceiling: 'override' }],
      ['authority.untrust', { did: house.owner.did }],
      ['authority.accept', { grant: {} }],
      ['authority.revoke', { revocation: {} }],
      ['agents.detach', { id: 'clerk' }],
    ] as const) {
      await expect(house.service.perform(agent, operation, input)).rejects.toMatchObject({
        code: 'SCOPE_EXCEEDED',
        details: { field: 'capabilities' },
      })
    }
  })
})
