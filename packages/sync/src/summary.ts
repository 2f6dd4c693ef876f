/**
 * Compartments: one set of notes per exact label, each summed up by one root. A peer is told of the
 * compartments it may see and of no other, so nothing computed from a hidden note reaches it.
 * @clause L4.2
 */
import { canonicalize, digestOf, dominates, parseLabel, type Clearance, type Tombstone } from '@csb/core'
import { isForgotten, listTombstones } from '@csb/guard'
import { listStates, type NoteState } from '@csb/memory'
import type { View } from '@csb/store'
import type { CompartmentSummary, Row } from './messages.ts'

export type Holdings = {
  /** label -> rows in id order */
  readonly compartments: ReadonlyMap<string, readonly Row[]>
  readonly tombstones: readonly Tombstone[]
}

/** What of a home a reader with this clearance may know about. */
export async function holdingsFor(view: View, home: string, clearance: Clearance): Promise<Holdings> {
  const compartments = new Map<string, Row[]>()
  for await (const state of listStates(view, home)) {
    if (!dominates(clearance, parseLabel(state.label)) || isForgotten(view, home, state.id)) continue
    const rows = compartments.get(state.label) ?? []
    rows.push(rowOf(state))
    compartments.set(state.label, rows)
  }
  const tombstones: Tombstone[] = []
  for await (const tombstone of listTombstones(view, home, clearance)) tombstones.push(tombstone)
  return { compartments, tombstones }
}

/** Roots of the compartments, sorted by label: equal lists mean equal sets. */
export function summarize(holdings: Holdings): CompartmentSummary[] {
  return [...holdings.compartments]
    .map(([label, rows]) => ({ label, count: rows.length, root: rootOf(rows) }))
    .sort((a, b) => (a.label < b.label ? -1 : 1))
}

/** One digest over the ids that are forgotten: the set only grows, so equal digests mean nothing to tell. */
export const tombstoneRoot = (tombstones: readonly Tombstone[]): string =>
  digestOf(
    tombstones
      .map((tombstone) => tombstone.id)
      .sort()
      .join('\n'),
  )

/** A Merkle-style digest of the rows in id order. */
export function rootOf(rows: readonly Row[]): string {
  const sorted = [...rows].sort((a, b) => (a[0] < b[0] ? -1 : 1))
  return digestOf(sorted.map((row) => digestOf(canonicalize(row))).join('\n'))
}

function rowOf({ id, hlc, actor, oid, clock }: NoteState): Row {
  return clock === undefined ? [id, hlc, actor, oid] : [id, hlc, actor, oid, clock]
}
