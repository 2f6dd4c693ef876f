import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError, type KeyPair, type KeyStatement } from '@csb/core'
import { key } from '@csb/store'
import {
  currentKey,
  endOfKey,
  inOrder,
  isRevoked,
  listKeyStatements,
  listTrust,
  recoveryDigest,
  recoveryOf,
  signCompromise,
  signRecovered,
  statementsOn,
} from '@csb/authority'
import { NOW, owner } from './cast.ts'
import {
  recovery,
  recovery2,
  next,
  second,
  thief,
  thief2,
  other,
  STOLEN,
  BACK,
  LATER,
  named,
  recovered,
  change,
  take,
  trusting,
  granted,
  refused,
} from './recovery-cast.ts'

describe('in whatever order it is heard', () => {
  const stolen = granted(owner, NOW)
  const probes = [stolen, granted(owner, STOLEN), granted(thief, STOLEN), granted(next, BACK), granted(second, BACK)]
  const said: readonly KeyStatement[] = [
    change(owner, thief),
    change(thief, thief2, STOLEN + 1),
    recovered(),
    recovered(other, owner, recovery, BACK + 1),
    change(next, second, LATER),
    named(next, recovery2, recovery),
    signCompromise(owner.did, LATER, thief),
    signCompromise(owner.did, BACK, next),
    signCompromise(owner.did, NOW - 1, owner),
  ]

  /** Says all of them, and what was not believed again: as a node does that comes back. */
  async function heard(order: readonly KeyStatement[]) {
    const store = await trusting(named())
    let left = order
    for (let round = 0; round < said.length; round++) {
      const refusals: KeyStatement[] = []
      for (const statement of left)
        await take(store, statement).catch((error: unknown) => {
          if (!isNodeError(error, 'DENIED') && !isNodeError(error, 'CONFLICT')) throw error
          refusals.push(statement)
        })
      left = refusals
    }
    const view = store.view()
    const state = {
      statements: await listKeyStatements(view),
      trust: await listTrust(view),
      current: [owner, thief, next, other].map(({ did }) => currentKey(view, did)),
      recovery: [owner, next, second].map(({ did }) => recoveryOf(view, did)),
      void: probes.map((grant) => isRevoked(view, '', [], grant)),
      ends: endOfKey(view, owner.did),
    }
    await store.close()
    return state
  }

  test('L1.3 a recovery beats a change, and one of two recoveries the other, at every node the same', async () => {
    const expected = await heard(said)
    expect(expected.current[0]).toBe(second.did)
    expect(expected.trust.map(({ did }) => did).toSorted()).toEqual([owner.did, next.did, second.did].toSorted())
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...said], { minLength: said.length }), async (order) => {
        expect(await heard(order)).toEqual(expected)
      }),
      { numRuns: 60 },
    )
  })

  test('L1.3 the change, two recoveries: all six orders, each said once', async () => {
    const three = [change(owner, thief), recovered(), recovered(other, owner, recovery, BACK + 1)]
    const orders = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]
    for (const order of orders) {
      const store = await trusting(named())
      for (const at of order) await take(store, three[at]).catch(() => undefined)
      expect([order, currentKey(store.view(), owner.did)]).toEqual([order, next.did])
      expect((await listTrust(store.view())).map(({ did }) => did).toSorted()).toEqual([owner.did, next.did].toSorted())
      expect(await listKeyStatements(store.view())).toEqual([named(), recovered()])
    }
  })

  test('recoveries of the same time: the lesser of the two keys, whichever comes first', async () => {
    const [low, high] = [next, other].toSorted((a, b) => (a.did < b.did ? -1 : 1)) as [KeyPair, KeyPair]
    for (const order of [
      [low, high],
      [high, low],
    ]) {
      const store = await trusting(named())
      for (const to of order) await take(store, recovered(to)).catch(() => undefined)
      expect(currentKey(store.view(), owner.did)).toBe(low.did)
    }
  })

  test('the order in which statements are told is one in which all are believed', async () => {
    const all = [
      named(),
      named(owner, recovery2, recovery),
      named(owner, other, recovery2),
      change(owner, thief),
      signRecovered({ old: owner.did, next, seq: 1, effectiveAt: BACK }, other),
      change(next, second, LATER),
      signCompromise(owner.did, BACK, second),
    ]
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(all, { minLength: all.length }), async (order) => {
        expect(inOrder([...order, ...order])).toEqual(all)
      }),
      { numRuns: 50 },
    )
    const store = await trusting(...all)
    expect(currentKey(store.view(), owner.did)).toBe(second.did)
    const told = await trusting(...(await listKeyStatements(store.view())))
    expect(await listKeyStatements(told.view())).toEqual(await listKeyStatements(store.view()))
  })

  test('a chain of recovery keys that goes round, or on for ever, is none', async () => {
    const store = await trusting(named(), named(owner, recovery2, recovery), named(owner, other, recovery2))
    await refused(store, named(owner, recovery, other), { code: 'CONFLICT' })
    await refused(store, named(owner, other, other), { code: 'CONFLICT' })
    // written past the door: it is read to an end all the same
    await store.transact((tx) =>
      tx.putJson(key('keyStatement', recoveryDigest(other.did), 'replaced'), named(owner, recovery, other)),
    )
    expect(recoveryOf(store.view(), owner.did)).toMatch(/^sha256:/)
    expect(statementsOn(store.view(), owner.did).length).toBeGreaterThan(0)
  })
})
