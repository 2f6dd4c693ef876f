/** How many keys may follow one after another, and that a recovery reaches all of them. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyPair, type KeyPair, type KeyStatement } from '@csb/core'
import { key, prefix, type Store } from '@csb/store'
import {
  currentKey,
  grantHash,
  inOrder,
  isRevoked,
  listKeyStatements,
  listTrust,
  recoveryDigest,
  recoveryOf,
  storeGrant,
  trusted,
} from '@csb/authority'
import { owner } from './cast.ts'
import {
  LATER,
  change,
  granted,
  named,
  next,
  other,
  recovered,
  recovery,
  refused,
  take,
  trusting,
} from './recovery-cast.ts'

const MOST = 64
const KEYS = Array.from({ length: 131 }, (_, at) => createKeyPair(new Uint8Array(32).fill(7).with(0, at)))
const keyAt = (at: number): KeyPair => KEYS[at] ?? owner
const full = (did: string) => ({ code: 'CONFLICT', details: { reason: 'too many keys', key: did } })
/** Each key of `keys` followed by the one behind it. */
const line = (keys: readonly KeyPair[]): KeyStatement[] => keys.slice(1).map((to, at) => change(keys[at] ?? owner, to))

/** Says them in that order, up to the first that is refused. @returns how many were taken in */
async function said(store: Store, statements: readonly KeyStatement[]): Promise<number> {
  for (const [taken, one] of statements.entries()) {
    const refusal = await take(store, one).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (refusal === undefined) continue
    expect(refusal).toMatchObject({ code: 'CONFLICT', details: { reason: 'too many keys' } })
    return taken
  }
  return statements.length
}

async function rowCount(store: Store): Promise<number> {
  let count = 0
  for await (const _ of store.view().range({ prefix: prefix('keyStatement') })) count++
  return count
}

describe('a line of keys', () => {
  test.each([63, 64, 65, 130])('L1.3 of %i steps by a thief: a recovery leaves nothing of it', async (steps) => {
    const store = await trusting(named())
    const thieves = KEYS.slice(0, steps)
    expect(await said(store, line([owner, ...thieves]))).toBe(Math.min(steps, MOST))
    const grants = thieves.map((by) => granted(by, LATER))
    await store.transact((tx) => {
      for (const grant of grants) storeGrant(tx, { chain: [grant] })
    })
    const led = thieves.slice(0, MOST)
    expect(currentKey(store.view(), owner.did)).toBe(led.at(-1)?.did)
    expect(led.every(({ did }) => trusted(store.view(), did) !== undefined)).toBe(true)
    await take(store, recovered())
    const view = store.view()
    expect(currentKey(view, owner.did)).toBe(next.did)
    expect((await listTrust(view)).map(({ did }) => did).sort()).toEqual([owner.did, next.did].sort())
    const held = grants.slice(0, MOST).filter((grant) => !isRevoked(view, grantHash(grant)))
    expect(held).toEqual([])
  })

  test('L1.3 takes the 64th step, and the 65th leaves nothing, at its end as at its beginning', async () => {
    const store = await trusting(...line([owner, ...KEYS.slice(0, MOST)]))
    await refused(store, change(keyAt(MOST - 1), keyAt(MOST)), full(keyAt(MOST - 1).did))
    await refused(store, change(keyAt(MOST), owner), full(keyAt(MOST).did))
    // neither in its middle, where two lines become one
    await refused(store, change(keyAt(MOST), keyAt(3)), full(keyAt(MOST).did))
    // said again it is what it was
    await take(store, change(keyAt(MOST - 2), keyAt(MOST - 1)))
  })

  test('L1.3 two lines become none that is longer', async () => {
    const store = await trusting(...line([owner, ...KEYS.slice(0, 40)]), ...line(KEYS.slice(50, 80)))
    await refused(store, change(keyAt(39), keyAt(50)), full(keyAt(39).did))
    await refused(store, change(keyAt(39), keyAt(79)), full(keyAt(39).did))
  })

  test.each([1, 63, 64])('L1.3 of %i steps closes to no circle', async (steps) => {
    const store = await trusting(...line([owner, ...KEYS.slice(0, steps)]))
    const again = { code: 'CONFLICT', details: { reason: 'that key was there before', key: owner.did } }
    await refused(store, change(keyAt(steps - 1), owner), again)
  })

  test('L1.3 that a thief filled before the stolen key and behind it does not bar the recovery', async () => {
    const store = await trusting(named())
    const [before, behind] = [KEYS.slice(0, 40), KEYS.slice(40, 64)]
    expect(await said(store, line([...before, owner]))).toBe(40)
    expect(await said(store, line([owner, ...behind, ...KEYS.slice(64, 80)]))).toBe(24)
    await take(store, recovered())
    expect(currentKey(store.view(), owner.did)).toBe(next.did)

    const filled = await trusting(named(), ...line([...KEYS.slice(0, MOST), owner]))
    await take(filled, recovered())
    expect(currentKey(filled.view(), owner.did)).toBe(next.did)
    await refused(filled, change(next, other), full(next.did))
  })

  test('L1.3 grows by no recoveries of the thief either', async () => {
    const store = await trusting()
    await said(store, line([owner, ...KEYS.slice(0, 1)]))
    await take(store, named(keyAt(0), recovery))
    let taken = 0
    for (let at = 0; at < 100; at++)
      await take(store, recovered(keyAt(at + 1), keyAt(at))).then(
        () => taken++,
        () => undefined,
      )
    expect(taken).toBe(MOST)
    expect((await listTrust(store.view())).length).toBe(MOST + 2)
  })

  test('L1.3 keys that are led to one over and over end, whatever becomes of them', async () => {
    const store = await trusting()
    const rows = []
    for (const from of KEYS) {
      await take(store, change(from, owner)).catch(() => undefined)
      rows.push(await rowCount(store))
    }
    expect(rows.at(-1)).toBe(rows[MOST])
  })

  test('L1.3 of all the steps it may have is taken in by a node that knows none of it, from any order', async () => {
    const names = [named()]
    let before = recovery
    for (const later of KEYS.slice(70, 75)) {
      names.push(named(owner, later, before))
      before = later
    }
    const statements = [...names, ...line([owner, ...KEYS.slice(0, MOST)]), named(keyAt(MOST - 1), other, before)]
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(statements, { minLength: statements.length }), async (shuffled) => {
        const store = await trusting()
        for (const one of inOrder(shuffled)) await take(store, one)
        expect(currentKey(store.view(), owner.did)).toBe(keyAt(MOST - 1).did)
        expect(recoveryOf(store.view(), owner.did)).toBe(recoveryDigest(other.did))
        expect(inOrder(await listKeyStatements(store.view()))).toEqual(inOrder(statements))
      }),
      { numRuns: 5 },
    )
  })
})

describe('a recovery key', () => {
  test('L1.3 is replaced 64 times, the last one recovers, and the 65th replacement leaves nothing', async () => {
    const store = await trusting(named())
    let before = recovery
    for (const later of KEYS.slice(0, MOST)) {
      await take(store, named(owner, later, before))
      before = later
    }
    await refused(store, named(owner, keyAt(MOST), before), {
      code: 'CONFLICT',
      details: { reason: 'too many recovery keys' },
    })
    expect(recoveryOf(store.view(), owner.did)).toBe(recoveryDigest(before.did))
    await take(store, recovered(next, owner, before))
    expect(currentKey(store.view(), owner.did)).toBe(next.did)
    // the key that follows counts on from there
    await refused(store, named(next, keyAt(MOST), before), { code: 'CONFLICT' })
    expect(store.view().has(key('keyStatement', recoveryDigest(before.did), 'replaced'))).toBe(false)
  })
})
