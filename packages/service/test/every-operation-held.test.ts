/** Every operation while something stands against writing: the record is held, or a run has no young word on its right. */
import { describe, expect, test } from 'vitest'
import { createKeyPair, fail, newId } from '@csb/core'
import { holdRecord, isRevoked, signCheckpoint, signKeyChange, signRevocation, trusted } from '@csb/authority'
import { prefix } from '@csb/store'
import type { Caller } from '../src/index.ts'
import { NOW, visitor } from './house.ts'
import { LEASED, refused, unlike, wrong } from './every-operation-checks.ts'
import {
  EVERYTHING,
  ask,
  changed,
  contentOf,
  createWorld,
  grantOf,
  session,
  type World,
} from './every-operation-rig.ts'
import type { Row } from './every-operation-rows.ts'

/** As their rows ask them, these look at tasks of this node: nothing is changed, and nobody is told anything. */
const ASKING = ['agents.getTask', 'agents.listTasks', 'agents.subscribe']

/** These take rights away: they are done while the record is held, too. */
const ENDING = ['authority.revoke', 'authority.end', 'authority.declared', 'authority.untrust', 'keys.state']

const changes = ({ operation, kind }: Row): boolean =>
  operation === 'files.export' ||
  operation === 'agents.stream' ||
  (!ASKING.includes(operation) && kind !== 'read' && kind !== 'stream')

/** Questions that go out to others, and what each would carry. */
const questions = ({ friend }: World): readonly (readonly [string, object])[] => {
  const there = { agent: 'clerk', did: friend.key.did }
  return [
    ['agents.getTask', { ...there, params: { id: 'xoword' } }],
    ['agents.listTasks', { ...there, params: { contextId: 'xoword' } }],
    ['agents.subscribe', { ...there, params: { id: 'xoword' } }],
    ['agents.card', { ...there, agent: 'xoword' }],
    ['agents.find', { did: friend.key.did }],
    ['agents.find', { capability: 'xoword' }],
    ['peers.dial', { address: '/dns4/xoword.example/tcp/1' }],
  ]
}

/** A run that may do everything, and the moment from which nobody confirms what it rests on. */
async function runIn({ house }: World) {
  const task = newId('task', NOW)
  const caller = await house.leased({ ...EVERYTHING, max_children: 0 }, { type: 'single', task, maxDepth: 0 })
  const goStale = () =>
    house.parts.runs.active.set(task, {
      agent: 'clerk',
      owner: house.owner.did,
      origin: null,
      scope: [],
      heldBy: [],
      checkWriting: () => fail('GRANT_INVALID', { reason: 'revocation_stale' }),
      abort: new AbortController(),
    })
  return { caller, goStale }
}

describe('L1.3 a run whose right nobody has confirmed lately', () => {
  test('L1.3 changes nothing and tells nobody anything, by any operation', async () => {
    const world = await createWorld()
    const found = await wrong(
      LEASED.filter((row) => row.open === 'lease' && changes(row)),
      async (row) => {
        const { caller, goStale } = await runIn(world)
        const input = await row.input(world, caller)
        goStale()
        const said = world.network.sent.length
        const told = unlike(await refused(world, { ...row, input: () => input }, caller), 'GRANT_INVALID')
        return world.network.sent.length === said ? told : `${told} something was sent`
      },
    )
    expect(found).toEqual([])
  })

  test('L1.3 asks nobody anything', async () => {
    const world = await createWorld()
    const { caller, goStale } = await runIn(world)
    goStale()
    for (const [operation, input] of questions(world))
      expect([operation, (await ask(world, caller, operation, input)).code]).toEqual([operation, 'GRANT_INVALID'])
    expect(world.network.sent).toEqual([])
  })

  test('L1.3 goes on looking', async () => {
    const world = await createWorld()
    const found = await wrong(
      LEASED.filter((row) => !changes(row)),
      async (row) => {
        const { caller, goStale } = await runIn(world)
        const input = await row.input(world, caller)
        goStale()
        const { code } = await ask(world, caller, row.operation, input)
        return code === row.code ? '' : code
      },
    )
    expect(found).toEqual([])
  })
})

describe('L1.6 while the record is held', () => {
  /** As a witness that knows of more entries than there are finds a node that came back from an old backup. */
  const hold = ({ house, friend, clock }: World) =>
    house.store.transact((tx) =>
      holdRecord(tx, {
        reason: 'shorter',
        checkpoint: signCheckpoint(0, { size: 99_999, root: 'ab'.repeat(32) }, house.key),
        witness: friend.key.did,
        size: 1,
        at: clock.now(),
      }),
    )

  test('L1.6 every operation that changes anything is refused and changes nothing; those that look go on', async () => {
    const world = await createWorld()
    const prepared: { row: Row; caller: Caller; input: object; says: readonly unknown[] }[] = []
    for (const row of LEASED.filter(({ operation }) => ![...ENDING, 'record.resume'].includes(operation))) {
      const caller = row.open === 'owner' ? world.house.owning : await session(world)
      prepared.push({ row, caller, input: await row.input(world, caller), says: row.says?.(world) ?? [] })
    }
    await hold(world)
    const records = (await world.house.records()).length
    const found: string[] = []
    for (const { row, caller, input, says } of prepared) {
      const [before, said] = [await contentOf(world), world.network.sent.length]
      const { code } = await ask(world, caller, row.operation, input, says)
      const wanted = changes(row) ? 'RECORD_HELD' : row.code
      const left = changed(before, await contentOf(world)).filter((one) => !one.startsWith('aj/'))
      const isSent = world.network.sent.length !== said && changes(row)
      if (code !== wanted || left.length > 0 || isSent)
        found.push(`${row.operation}: ${code} instead of ${wanted}, left: ${left.join(' ')}${isSent ? ', sent' : ''}`)
    }
    expect(found).toEqual([])
    expect((await world.house.records()).length).toBe(records)
  })

  test('L1.3 a lease that is revoked is over at once, and the entry that goes on with the record tells it', async () => {
    const world = await createWorld()
    const { house } = world
    const [reader, other] = [await session(world), await session(world)]
    await hold(world)
    const [size, document] = [
      (await house.records()).length,
      signRevocation({ target: reader.hash, now: NOW }, house.owner),
    ]
    expect((await ask(world, reader, 'memory.list', {})).code).toBe('done')
    await house.owned('authority.revoke', document)
    await house.owned('authority.end', { grant: world.received })
    expect((await ask(world, reader, 'memory.list', {})).code).toBe('LEASE_REVOKED')
    expect((await ask(world, other, 'memory.list', {})).code).toBe('done')
    expect(await house.records()).toHaveLength(size)
    await house.owned('record.resume', { after_restore: true })
    const entries = (await house.records()).slice(size)
    expect(entries.map(({ operation }) => operation)).toEqual(['record.resume'])
    const ended = { actor: house.owner.did, at: house.clock.now(), lease: expect.any(String) as string }
    expect(entries[0]?.effect['meanwhile']).toMatchObject([
      { ...ended, operation: 'authority.revoke', effect: { revoked: reader.hash, by: house.owner.did } },
      { ...ended, operation: 'authority.end', effect: { revoked: world.received } },
    ])
    expect(await house.dump((fullKey) => !fullKey.startsWith(prefix('meanwhile')))).toEqual({})
    expect(await house.owned('record.verify')).toMatchObject({ ok: true })
  })

  test('L1.3 what a peer ends is ended, what it grants is not taken, and who asks what holds is told', async () => {
    const world = await createWorld()
    const { house, friend } = world
    await hold(world)
    const kept = await contentOf(world)
    const says = (message: object) => ask(world, visitor(friend.key.did), 'authority.receive', {}, [message])
    const grant = grantOf(friend, { to: { name: 'nas', did: house.key.did } })
    expect((await says({ chain: [grant] })).code).toBe('RECORD_HELD')
    expect(changed(kept, await contentOf(world))).toEqual([])
    const revoked = signRevocation({ target: world.received, now: NOW }, friend.owner)
    expect(await says({ revocation: revoked })).toMatchObject({ code: 'done' })
    expect(isRevoked(house.store.view(), world.received)).toBe(true)
    expect((await says({ status: [house.key.did] })).text).toContain(house.key.did)
  })

  test('L1.3 a key that is changed, trust that is taken back and a delegation that is declared no more end rights', async () => {
    const world = await createWorld()
    const { house, friend } = world
    await hold(world)
    await house.owned('authority.untrust', { did: friend.owner.did })
    expect(trusted(house.store.view(), friend.owner.did)).toBeUndefined()
    await house.owned('authority.declared', { ids: ['one'] })
    const next = createKeyPair()
    await house.owned('keys.state', {
      statement: signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: house.clock.now() }),
    })
    expect((await ask(world, house.owning, 'memory.list', {})).code).toBe('LEASE_REVOKED')
    const waiting = await house.dump((fullKey) => !fullKey.startsWith(prefix('meanwhile')))
    expect(Object.keys(waiting)).toHaveLength(3)
  })

  test('L1.6 nobody is asked anything', async () => {
    const world = await createWorld()
    await hold(world)
    for (const [operation, input] of questions(world))
      expect([operation, (await ask(world, world.house.owning, operation, input)).code]).toEqual([
        operation,
        'RECORD_HELD',
      ])
    expect(world.network.sent).toEqual([])
  })
})

describe('L1.5 a question that goes out', () => {
  const asking = (world: World) => questions(world).filter(([, input]) => 'agent' in input)

  test('L1.5 is in the record before it is answered, and carries what it must and nothing else', async () => {
    const world = await createWorld()
    const { house, friend } = world
    const caller = await session(world)
    for (const [operation, input] of asking(world)) {
      const size = (await house.records()).length
      const params = 'params' in input ? { params: { ...(input.params as object), metadata: { a: 'xosecret' } } } : {}
      await ask(world, caller, operation, { ...input, ...params })
      const [entry] = (await house.records()).slice(size)
      expect(entry).toMatchObject({ operation, outcome: 'done', effect: { to: friend.key.did } })
    }
    const sent = world.network.sent.map(({ text }) => text)
    expect(sent.filter((text) => text.includes('xoword'))).toHaveLength(asking(world).length)
    expect(sent.filter((text) => text.includes('xosecret'))).toEqual([])
  })

  test('L1.2 takes the right to send', async () => {
    const world = await createWorld()
    const caller = await session(world, { actions: ['list', 'read'], capabilities: [] })
    for (const [operation, input] of questions(world))
      expect([operation, (await ask(world, caller, operation, input)).code]).toEqual([operation, 'SCOPE_EXCEEDED'])
    expect(world.network.sent).toEqual([])
  })
})
