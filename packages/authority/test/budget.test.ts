/** Trees of leases that share budgets: never less than nothing, never more than a parent has. */
import { array, assert, asyncProperty, constantFrom, integer, option, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError, type Grant, type Lease } from '@csb/core'
import {
  charge,
  grantHash,
  leaseOf,
  leftOf,
  payFor,
  refund,
  signGrant,
  spend,
  storeGrant,
  usedOf,
} from '@csb/authority'
import type { Store } from '@csb/store'
import { childDraft, childGrant, helper, ownerGrant, party, stranger, testStore, wideLease } from './cast.ts'

const UNITS = ['calls', 'tokens', 'cost_micro', 'wall_ms'] as const
const MOST = 40

type Node = { readonly hash: string; readonly above: readonly string[]; readonly budget: Lease['budget'] }

/** A root, two below it, one below the first of them, and one beside that the second pays for too. */
async function tree(store: Store, budgets: readonly Lease['budget'][]): Promise<readonly Node[]> {
  const [top, left, right, deep, beside] = budgets
  const leased = (budget: Lease['budget'], outer?: Lease) => {
    const members = Object.fromEntries(
      UNITS.flatMap((unit) => {
        const [own, above] = [budget?.[unit], outer?.budget?.[unit]]
        const most = Math.min(own ?? Number.POSITIVE_INFINITY, above ?? Number.POSITIVE_INFINITY)
        return Number.isFinite(most) ? [[unit, most]] : []
      }),
    )
    return { ...wideLease(), max_children: 5, ...(Object.keys(members).length === 0 ? {} : { budget: members }) }
  }
  const root = ownerGrant({ lease: leased(top), maxDepth: 3 })
  const within = (parent: Grant, most: Lease['budget']) => ({
    lease: leased(most, leaseOf(parent) ?? undefined),
    maxDepth: parent.delegation.max_depth - 1,
  })
  const [a, b] = [childGrant(root, within(root, left)), childGrant(root, within(root, right))]
  const c = signGrant(
    childDraft(a, { ...within(a, deep), from: party('helper', helper), to: party('deep', stranger) }),
    helper,
  )
  const other = ownerGrant({ lease: leased(beside) })
  const hashes = [root, a, b, c, other].map(grantHash)
  const [hr = '', ha = '', hb = ''] = hashes
  await store.transact((tx) => {
    for (const chain of [[root, a, c], [root, b], [other]]) storeGrant(tx, { chain })
    payFor(tx, hashes[4] ?? '', hb)
  })
  const above = [[], [hr], [hr], [ha, hr], [hb, hr]]
  return [root, a, b, c, other].map((grant, n) => ({
    hash: hashes[n] ?? '',
    above: above[n] ?? [],
    budget: leaseOf(grant)?.budget,
  }))
}

const amount = integer({ min: 0, max: 25 })
const step = record({
  how: constantFrom('charge' as const, 'spend' as const, 'give back' as const),
  at: integer({ min: 0, max: 4 }),
  unit: constantFrom(...UNITS),
  amount,
})
const budget = option(
  record(
    { calls: integer({ min: 0, max: MOST }), tokens: integer({ min: 0, max: MOST }), cost_micro: amount },
    { requiredKeys: [] },
  ),
  { nil: undefined },
)

describe('L1.2 a budget', () => {
  test('L1.2 is never below nothing, never above what there is, and what a child uses its parent has used', async () => {
    const store = await testStore()
    await assert(
      asyncProperty(
        array(budget, { minLength: 5, maxLength: 5 }),
        array(step, { maxLength: 25 }),
        async (budgets, steps) => {
          const nodes = await tree(store, budgets)
          for (const { how, at, unit, amount: by } of steps) {
            const node = nodes[at] ?? expect.fail()
            const before = nodes.map(({ hash }) => usedOf(store.view(), hash)[unit] ?? 0)
            if (how === 'charge') {
              const isRoom = leftOf(store.view(), node.hash, unit) >= by
              const done = await store
                .transact((tx) => charge(tx, node.hash, { [unit]: by }))
                .then(
                  () => true,
                  (error: unknown) => !isNodeError(error, 'SCOPE_EXCEEDED'),
                )
              expect(done).toBe(isRoom)
              // refused is not counted anywhere
              if (!isRoom) expect(nodes.map(({ hash }) => usedOf(store.view(), hash)[unit] ?? 0)).toEqual(before)
            } else if (how === 'spend') {
              const left = leftOf(store.view(), node.hash, unit)
              const short = await store.transact((tx) => spend(tx, node.hash, { [unit]: by }))
              expect(short === undefined).toBe(by <= left)
              expect(leftOf(store.view(), node.hash, unit)).toBe(Math.max(0, left - by))
            } else await store.transact((tx) => refund(tx, node.hash, { [unit]: by }))
            const view = store.view()
            nodes.forEach(({ hash, budget: most }, n) => {
              const used = usedOf(view, hash)[unit] ?? 0
              const isPayer = n === at || node.above.includes(hash)
              expect(used).toBeGreaterThanOrEqual(0)
              expect(used).toBeLessThanOrEqual(most?.[unit] ?? Number.POSITIVE_INFINITY)
              if (!isPayer) expect(used).toBe(before[n])
              expect(leftOf(view, hash, unit)).toBeGreaterThanOrEqual(0)
            })
            for (const { hash, above } of nodes) {
              for (const payer of above) expect(leftOf(view, hash, unit)).toBeLessThanOrEqual(leftOf(view, payer, unit))
            }
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  test('L1.2 attack 28: many children together use no more than their parent has', async () => {
    const store = await testStore()
    const root = ownerGrant({ lease: { ...wideLease(), budget: { tokens: 100 } }, maxDepth: 2 })
    const children = Array.from({ length: 8 }, () =>
      childGrant(root, { lease: { ...wideLease(), budget: { tokens: 100 } }, maxDepth: 0 }),
    )
    await store.transact((tx) => {
      for (const child of children) storeGrant(tx, { chain: [root, child] })
    })
    const codes = await Promise.all(
      children.map((child) =>
        store
          .transact((tx) => charge(tx, grantHash(child), { tokens: 30 }))
          .then(
            () => 'done',
            (error: unknown) => (isNodeError(error) ? error.code : String(error)),
          ),
      ),
    )
    expect(codes.filter((code) => code === 'done')).toHaveLength(3)
    expect(usedOf(store.view(), grantHash(root))).toEqual({ tokens: 90 })
  })
})
