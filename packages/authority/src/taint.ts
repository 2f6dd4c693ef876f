/**
 * Taint of a session: what was read under a lease that somebody outside may have written. It is what transactions
 * noted, never what a caller says; it is kept with the lease before what was read is answered, so it outlives a
 * restart; it only grows, and what is made under a tainted lease begins tainted.
 *
 * The owner's own command line and the node's own work are no sessions: nobody else speaks through them.
 * @clause L1.7
 */
import { formatLabel, joinLabels, parseLabel, type Grant } from '@csb/core'
import { key, type ReadEntry, type Transaction, type View } from '@csb/store'

/** One thing of integrity `external` that was read. */
export type TaintedRead = { readonly home: string; readonly path: string; readonly oid: string; readonly label: string }

export type Taint = {
  /** join of the labels of all that taints */
  readonly label: string
  /** the first that were read, in that order */
  readonly reads: readonly TaintedRead[]
  /** further ones were read, which are not told */
  readonly more: boolean
}

/** Reads told one by one; a person reads no more. */
const TOLD = 32

/** Does it come from somebody else than the owner and the owner's agents? */
export const isExternal = ({ label }: Pick<ReadEntry, 'label'>): boolean => label.integrity === 'external'

/**
 * Taint a lease with what was read under it. Reads that do not taint and those that are known change nothing.
 * @param lease hash of its grant
 */
export function taintLease(tx: Transaction, lease: string, reads: readonly ReadEntry[]): void {
  const grown = grownTaint(tx, lease, reads)
  if (grown !== undefined) tx.putJson(key('taint', lease), grown)
}

/** The taint of a lease after these reads; undefined where it stays what it is. */
export function grownTaint(view: View, lease: string, reads: readonly ReadEntry[]): Taint | undefined {
  const told = reads
    .filter(isExternal)
    .map(({ home, path, oid, label }) => ({ home, path, oid, label: formatLabel(label) }))
  if (told.length === 0) return undefined
  const before = ownTaint(view, lease)
  const after = joined([before, { label: joinedLabel(told.map(({ label }) => label)), reads: told, more: false }])
  return JSON.stringify(after) === JSON.stringify(before) ? undefined : after
}

/** Let a lease begin with the taint of another that does not stand above it. Both are hashes of grants. */
export function inheritTaint(tx: Transaction, from: string, lease: string): void {
  const taint = joined([taintOf(tx, from), ownTaint(tx, lease)])
  if (taint !== undefined) tx.putJson(key('taint', lease), taint)
}

/** Taint of a session under a lease: its own and that of every lease above it. */
export function taintOf(view: View, lease: string): Taint | undefined {
  const found: (Taint | undefined)[] = []
  for (let next: string | null = lease; next !== null;) {
    found.push(ownTaint(view, next))
    next = view.getJson<Grant>(key('grant', next))?.delegation.parent ?? null
  }
  return joined(found)
}

const ownTaint = (view: View, lease: string): Taint | undefined => view.getJson<Taint>(key('taint', lease))

function joined(all: readonly (Taint | undefined)[]): Taint | undefined {
  const taints = all.filter((taint) => taint !== undefined)
  if (taints.length === 0) return undefined
  const reads = new Map(taints.flatMap((taint) => taint.reads).map((read) => [nameOf(read), read]))
  const told = [...reads.values()]
  return {
    label: joinedLabel(taints.map(({ label }) => label)),
    reads: told.slice(0, TOLD),
    more: told.length > TOLD || taints.some(({ more }) => more),
  }
}

const nameOf = ({ home, path, oid }: TaintedRead): string => `${home}\0${path}\0${oid}`

const joinedLabel = (labels: readonly string[]): string =>
  formatLabel(joinLabels(labels.map((label) => parseLabel(label))))
