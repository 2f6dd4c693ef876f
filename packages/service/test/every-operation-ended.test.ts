/** Every operation under a right that hangs on something else: a lease above it, or a task. When that ends it ends. */
import { describe, expect, test } from 'vitest'
import { signRevocation } from '@csb/authority'
import type { Caller } from '../src/index.ts'
import { HOUR } from './house.ts'
import { LEASED, isLooking, refused, unlike, wrong } from './every-operation-checks.ts'
import { EVERYTHING, ask, createWorld, session, taskOf, type World } from './every-operation-rig.ts'

/** A child of a session, with all that its parent has. */
async function childIn(world: World): Promise<{ readonly parent: string; readonly child: Caller }> {
  const parent = await session(world, { max_children: 1 })
  const { token } = (await world.house.service.perform(parent, 'authority.attenuate', {
    name: 'child',
    lease: {},
  })) as {
    token: string
  }
  return { parent: parent.hash, child: { kind: 'bearer', token, door: 'http' } }
}

describe('L1.3 by every operation', () => {
  test('L1.3 a child is nothing when the lease above it was revoked', async () => {
    const world = await createWorld()
    const { house, clock } = world
    const found = await wrong(LEASED, async (row) => {
      const { parent, child } = await childIn(world)
      const revocation = signRevocation({ target: parent, now: clock.now() }, house.owner)
      await house.owned('authority.revoke', revocation)
      return unlike(await refused(world, row, child), 'LEASE_REVOKED')
    })
    expect(found).toEqual([])
  })

  test('L1.3 a child only looks when the lease above it is over', async () => {
    const world = await createWorld()
    const found = await wrong(LEASED, async (row) => {
      const { child } = await childIn(world)
      const input = await row.input(world, child)
      world.clock.advance(HOUR)
      if (!isLooking(row)) return unlike(await refused(world, { ...row, input: () => input }, child), 'LEASE_EXPIRED')
      const { code } = await ask(world, child, row.operation, input)
      return code === row.code ? '' : code
    })
    expect(found).toEqual([])
  })

  test('L1.2 what was made out for a task is nothing when the task has ended, and does not look either', async () => {
    const world = await createWorld()
    const { house } = world
    const task = await taskOf(world, house.owning, 'show')
    const found = await wrong(LEASED, async (row) => {
      const lease = { ...EVERYTHING, max_children: 0 }
      const caller = await house.leased(lease, { type: 'single', task, maxDepth: 0 })
      return unlike(await refused(world, row, caller), 'UNAUTHENTICATED')
    })
    expect(found).toEqual([])
  })
})
