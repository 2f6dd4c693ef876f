/** An answer that comes in parts ends with the lease under which it was asked for. */
import { describe, expect, test } from 'vitest'
import { createFakeClock, type Lease } from '@csb/core'
import { signRevocation } from '@csb/authority'
import { HOUR, NOW, codeOf, createHouse, holdingIn, type House } from './house.ts'

const WIDE: Partial<Lease> = {
  actions: ['list', 'read', 'write'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
}

async function exporting() {
  const clock = createFakeClock(NOW)
  const house = await createHouse({ clock })
  await house.owned('memory.create', { entry: { content: 'x', type: 'other' } })
  const session = await holdingIn(house, WIDE)
  const parts = house.service.open(session, 'files.export', {})[Symbol.asyncIterator]()
  expect((await parts.next()).value).toMatchObject({ kind: 'begun' })
  return { house, clock, session, parts }
}

const lastOf = async (house: House) => (await house.records()).at(-1)

describe('L1.3 what comes in parts', () => {
  test('L1.3 ends when its lease is revoked, and the record says so', async () => {
    const { house, session, parts } = await exporting()
    await house.owned('authority.revoke', signRevocation({ target: session.hash, now: NOW }, house.owner))
    const before = await house.dump()
    expect(await codeOf(parts.next())).toBe('LEASE_REVOKED')
    expect(await lastOf(house)).toMatchObject({ operation: 'files.export', outcome: 'refused', code: 'LEASE_REVOKED' })
    expect(await house.dump()).toEqual(before)
    expect((await parts.next()).done).toBe(true)
  })

  test('L1.3 ends when its lease is over, where more is done than looking', async () => {
    const { house, clock, parts } = await exporting()
    clock.advance(HOUR)
    expect(await codeOf(parts.next())).toBe('LEASE_EXPIRED')
    expect(await lastOf(house)).toMatchObject({ operation: 'files.export', outcome: 'refused', code: 'LEASE_EXPIRED' })
  })

  test('L1.3 goes on where it only looks, and ends all the same when it is revoked', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const { commit } = await house.owned<{ commit: string }>('files.write', {
      branch: 'runs/a',
      path: 'a.md',
      text: 'x'.repeat(200_000),
    })
    const session = await holdingIn(house, WIDE)
    const fetching = () =>
      house.service.open(session, 'git.fetch', { wants: [commit], haves: [], done: true })[Symbol.asyncIterator]()
    const whole = fetching()
    expect(await codeOf(whole.next())).toBe('done')
    clock.advance(HOUR)
    for (let part = await whole.next(); part.done !== true; part = await whole.next()) expect(part.value).toBeDefined()
    const cut = fetching()
    expect(await codeOf(cut.next())).toBe('done')
    await house.owned('authority.revoke', signRevocation({ target: session.hash, now: NOW }, house.owner))
    expect(await codeOf(cut.next())).toBe('LEASE_REVOKED')
  })
})
