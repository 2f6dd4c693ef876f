/**
 * Every operation, one check after another: what one of them has missed is found here, and one that is new is not
 * left unchecked.
 */
import { describe, expect, test } from 'vitest'
import { createKeyPair } from '@csb/core'
import { signRevocation } from '@csb/authority'
import { OPERATIONS, type Caller } from '../src/index.ts'
import { HOUR, nobody, visitor } from './house.ts'
import { LEASED, isLooking, refused, unlike, wrong } from './every-operation-checks.ts'
import { ask, createWorld, session } from './every-operation-rig.ts'
import { ROWS } from './every-operation-rows.ts'

describe('the registry', () => {
  test('every operation has a row, and every row is of an operation as it is', () => {
    const rows = ROWS.map(({ operation, kind, open }) => ({ operation, kind, open }))
    const there = [...OPERATIONS].map(([operation, { kind, open }]) => ({ operation, kind, open }))
    const byName = (a: { operation: string }, b: { operation: string }) => (a.operation < b.operation ? -1 : 1)
    expect(rows.toSorted(byName)).toEqual(there.toSorted(byName))
  })

  test('what each row asks for is well-formed: with every right it is given', async () => {
    const world = await createWorld()
    const found = await wrong(ROWS, async (row) => {
      const caller = {
        peer: visitor(createKeyPair().did),
        owner: world.house.owning,
        lease: await session(world),
        nobody,
      }[row.open]
      const { code, text } = await ask(world, caller, row.operation, await row.input(world, caller), row.says?.(world))
      return code === row.code ? '' : `${code} instead of ${row.code}: ${text.slice(0, 200)}`
    })
    expect(found).toEqual([])
  })
})

describe('the owner alone', () => {
  /**
   * An archive says of itself what the owner wrote and what was read there; and that a log goes on after entries were lost
   * is for whoever knows why they were. What else only the owner can do takes the owner's signature, on a card or a grant.
   */
  test('L1.7 takes in an archive, and goes on after a restore: no session, whatever it may do', async () => {
    const world = await createWorld()
    const owners = ROWS.filter(({ open }) => open === 'owner')
    expect(owners.map(({ operation }) => operation)).toEqual(['files.import', 'record.resume'])
    expect(
      await wrong(owners, async (row) => unlike(await refused(world, row, await session(world)), 'DENIED')),
    ).toEqual([])
  })
})

describe('L1.1 every operation refuses, records it and writes nothing else', () => {
  test('L1.1 attack 14: whoever shows nothing, or a token that nobody issued, or only its own key', async () => {
    const world = await createWorld()
    const unknown: Caller = { kind: 'bearer', token: 'csb_made-up', door: 'http' }
    const found = await wrong(ROWS, async (row) => {
      if (row.open === 'nobody') return ''
      const codes = [unlike(await refused(world, row, nobody), 'LEASE_REQUIRED')]
      const isPeers = row.open === 'peer'
      codes.push(unlike(await refused(world, row, unknown), isPeers ? 'LEASE_REQUIRED' : 'UNAUTHENTICATED'))
      if (!isPeers) codes.push(unlike(await refused(world, row, visitor(createKeyPair().did)), 'LEASE_REQUIRED'))
      return codes.filter((one) => one !== '').join('; ')
    })
    expect(found).toEqual([])
  })

  test('L1.1 whoever shows nothing makes this node ask no other one', async () => {
    const world = await createWorld()
    const row = ROWS.filter(({ operation }) => operation === 'agents.card')
    const elsewhere = () => ({ agent: 'clerk', did: world.friend.key.did })
    for (const caller of [nobody, visitor(createKeyPair().did)]) {
      const found = await wrong(row, async (one) =>
        unlike(await refused(world, { ...one, input: elsewhere }, caller), 'LEASE_REQUIRED'),
      )
      expect(found).toEqual([])
    }
  })

  test('L1.1 a token at a door that only peers use, whatever it may do', async () => {
    const world = await createWorld()
    const found = await wrong(
      ROWS.filter(({ open }) => open === 'peer'),
      async (row) => unlike(await refused(world, row, await session(world)), 'LEASE_REQUIRED'),
    )
    expect(found).toEqual([])
  })

  test('L1.3 a lease that is over, but for what only shows what is there', async () => {
    const world = await createWorld()
    const found = await wrong(LEASED, async (row) => {
      const caller = await session(world)
      const input = await row.input(world, caller)
      world.clock.advance(HOUR)
      const late = { ...row, input: () => input }
      if (!isLooking(row)) return unlike(await refused(world, late, caller), 'LEASE_EXPIRED')
      const { code } = await ask(world, caller, row.operation, input)
      return code === row.code ? '' : `${code} though it only looks`
    })
    expect(found).toEqual([])
  })

  test('L1.3 a lease that was revoked', async () => {
    const world = await createWorld()
    const found = await wrong([...LEASED, ...ROWS.filter(({ open }) => open === 'nobody')], async (row) => {
      const caller = await session(world)
      await world.house.owned(
        'authority.revoke',
        signRevocation({ target: caller.hash, now: world.clock.now() }, world.house.owner),
      )
      return unlike(await refused(world, row, caller), 'LEASE_REVOKED')
    })
    expect(found).toEqual([])
  })
})
