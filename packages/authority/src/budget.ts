/**
 * What a lease has used: counted in the lease itself and in every lease above it, durably and before it is used, so
 * that many children together can do no more than their parent, and a crash gives nothing back.
 * @clause L1.2
 */
import { fail, type Grant, type Lease } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { leaseOf } from './grant.ts'

export type Unit = keyof NonNullable<Lease['budget']>
export type Amounts = Readonly<Partial<Record<Unit, number>>>

type Row = {
  readonly used: Amounts
  /** children that were made */
  readonly children: number
  /** leases besides its own chain that pay for it as well */
  readonly payers: readonly string[]
}

/** A lease that pays, and what it may use in all. */
type Account = { readonly hash: string; readonly budget: NonNullable<Lease['budget']> }

const NOTHING: Row = { used: {}, children: 0, payers: [] }

const rowOf = (view: View, hash: string): Row => view.getJson<Row>(key('spent', hash)) ?? NOTHING

/** Does anybody count what is done under the lease of that hash? */
export const isMetered = (view: View, leaseHash: string): boolean => accountsOf(view, leaseHash).length > 0

/**
 * Count a use.
 * @throws SCOPE_EXCEEDED with `budget.<unit>` and the lease whose budget it is
 * @clause L1.2
 */
export function charge(tx: Transaction, leaseHash: string, amounts: Amounts): void {
  for (const { hash, budget } of accountsOf(tx, leaseHash)) {
    const row = rowOf(tx, hash)
    const used: Partial<Record<Unit, number>> = { ...row.used }
    for (const [unit, amount] of entriesOf(amounts)) {
      const total = (used[unit] ?? 0) + amount
      if (total > (budget[unit] ?? Number.POSITIVE_INFINITY))
        fail('SCOPE_EXCEEDED', { field: `budget.${unit}`, lease: hash })
      used[unit] = total
    }
    tx.putJson(key('spent', hash), { ...row, used } satisfies Row)
  }
}

/**
 * Count what was used already, whether it was within the budget or not: as much as there is, and no more is left.
 * @returns what there was too little of, as {@link charge} would name it; undefined where it was enough
 * @clause L1.2
 */
export function spend(
  tx: Transaction,
  leaseHash: string,
  amounts: Amounts,
): { readonly field: string; readonly lease: string } | undefined {
  let short: { readonly field: string; readonly lease: string } | undefined
  for (const { hash, budget } of accountsOf(tx, leaseHash)) {
    const row = rowOf(tx, hash)
    const used: Partial<Record<Unit, number>> = { ...row.used }
    for (const [unit, amount] of entriesOf(amounts)) {
      const most = budget[unit] ?? Number.MAX_SAFE_INTEGER
      const total = (used[unit] ?? 0) + amount
      if (total > most) short ??= { field: `budget.${unit}`, lease: hash }
      used[unit] = Math.min(total, most)
    }
    tx.putJson(key('spent', hash), { ...row, used } satisfies Row)
  }
  return short
}

/** What was used of a lease by itself and all below it, in the units that it has a budget of. */
export function usedOf(view: View, leaseHash: string): Amounts {
  const budget = accountsOf(view, leaseHash).find(({ hash }) => hash === leaseHash)?.budget ?? {}
  const { used } = rowOf(view, leaseHash)
  return Object.fromEntries(entriesOf(budget).map(([unit]) => [unit, used[unit] ?? 0]))
}

/** Give back of what was counted ahead what was not used. */
export function refund(tx: Transaction, leaseHash: string, amounts: Amounts): void {
  for (const { hash } of accountsOf(tx, leaseHash)) {
    const row = rowOf(tx, hash)
    const used: Partial<Record<Unit, number>> = { ...row.used }
    for (const [unit, amount] of entriesOf(amounts)) used[unit] = Math.max(0, (used[unit] ?? 0) - amount)
    tx.putJson(key('spent', hash), { ...row, used } satisfies Row)
  }
}

/** The most of a unit that may still be used; infinite where nobody counts it. */
export function leftOf(view: View, leaseHash: string, unit: Unit): number {
  const left = accountsOf(view, leaseHash).map(
    ({ hash, budget }) => (budget[unit] ?? Number.POSITIVE_INFINITY) - (rowOf(view, hash).used[unit] ?? 0),
  )
  return Math.max(0, Math.min(Number.POSITIVE_INFINITY, ...left))
}

/** Let leases that are not above it pay for what is done under another one, which was made on their account. */
export function payFor(tx: Transaction, leaseHash: string, payer: string): void {
  const row = rowOf(tx, leaseHash)
  tx.putJson(key('spent', leaseHash), { ...row, payers: [...new Set([...row.payers, payer])] } satisfies Row)
}

/**
 * Count a child of a lease.
 * @param most `max_children` of the lease
 * @throws SCOPE_EXCEEDED with `max_children`
 * @clause L1.2
 */
export function countChild(tx: Transaction, parentHash: string, most: number): void {
  const row = rowOf(tx, parentHash)
  if (row.children >= most) fail('SCOPE_EXCEEDED', { field: 'max_children', lease: parentHash })
  tx.putJson(key('spent', parentHash), { ...row, children: row.children + 1 } satisfies Row)
}

/** Leases with a budget that pay: the one itself, those above it, those that said they would. */
function accountsOf(view: View, leaseHash: string): readonly Account[] {
  const seen = new Map<string, Account | undefined>()
  const open = [leaseHash]
  for (let hash = open.pop(); hash !== undefined; hash = open.pop()) {
    if (seen.has(hash)) continue
    const grant = view.getJson<Grant>(key('grant', hash))
    const budget = grant === undefined ? undefined : leaseOf(grant)?.budget
    seen.set(hash, budget === undefined ? undefined : { hash, budget })
    if (typeof grant?.delegation.parent === 'string') open.push(grant.delegation.parent)
    open.push(...rowOf(view, hash).payers)
  }
  return [...seen.values()].filter((account) => account !== undefined)
}

const entriesOf = (amounts: Amounts) => Object.entries(amounts) as [Unit, number][]
