/**
 * Taking in what a session brought, within the right of who brought it: tombstones first, then notes, then what is
 * to be let go of. The right to write at all is the session's to ask; here each single note is looked at. Only a node of
 * the owner is believed in what takes a card of the owner: what anybody else brings is from outside, makes no label less
 * strict, and makes nothing forgotten or let go of on a node of the owner.
 * @clause L1.7, L3.4, L4.2, L4.3
 */
import { EVERY_TAG, type Clearance } from '@csb/core'
import { applyTombstones, isVisible, putRemembered } from '@csb/guard'
import { getState, removeNotes, type Note, type Standing, type WriteWords } from '@csb/memory'
import type { Transaction, View } from '@csb/store'

export type Arrival = {
  readonly tombstones: readonly unknown[]
  readonly notes: readonly Note[]
  /** ids of notes the sender no longer shows to this node */
  readonly gone: readonly string[]
}

export type TakeIn = Omit<WriteWords, 'message'> & {
  /** what the sender may see of this home here */
  readonly seen: Clearance | undefined
  /** did of this node */
  readonly node: string
  /** whether it is a node of the home's owner */
  readonly ofOwner: boolean
}

/** Who may see everything and write is a node of the owner: there is nothing that it could not do to the home itself. */
export const standingOf = (seen: Clearance | undefined, ofOwner: boolean): Standing => ({
  from: seesEverything(seen) ? 'owner' : 'other',
  here: ofOwner ? 'owner' : 'other',
})

/**
 * Stage one page of what came.
 * @returns how many of them were new here, and the head of the branch `memory` where it moved
 * @throws MALFORMED, DENIED for a tombstone that is none or is not of this home
 * @clause L1.7, L3.2, L3.4, L4.2, L4.3
 */
export async function takeArrival(
  tx: Transaction,
  { seen, node, ofOwner, ...words }: TakeIn,
  arrival: Arrival,
): Promise<{ readonly count: number; readonly commit?: string }> {
  const { home } = words
  let count = 0
  let commit: string | undefined
  const standing = standingOf(seen, ofOwner)
  const isDoubted = standing.from === 'other' && ofOwner
  const tombstones = isDoubted ? [] : arrival.tombstones.filter((one) => mayForget(tx, home, seen, one))
  if (tombstones.length > 0) {
    const done = await applyTombstones(tx, { ...words, tombstones })
    count += done.applied.length
    commit = done.commit
  }
  const notes = arrival.notes.filter(({ entry }) => mayChange(tx, home, seen, entry.id))
  if (notes.length > 0) {
    const receiving = { ...standing, node }
    const done = putRemembered(tx, { ...words, notes, standing: receiving, message: `take in ${notes.length} notes` })
    count += done.applied.length
    if (done.applied.length > 0) commit = done.commit
  }
  const gone = isDoubted ? [] : arrival.gone.filter((id) => mayChange(tx, home, seen, id))
  if (gone.length > 0) {
    const done = removeNotes(tx, { ...words, ids: gone, message: `drop ${gone.length} notes` })
    count += done.removed.length
    if (done.removed.length > 0) commit = done.commit
  }
  return { count, ...(commit === undefined ? {} : { commit }) }
}

/** A peer changes only what it may see, also where the label was raised since the session began. */
function mayChange(view: View, home: string, seen: Clearance | undefined, id: string): boolean {
  const state = getState(view, home, id)
  return state === undefined || (seen !== undefined && isVisible(seen, state.label))
}

/**
 * To know an id is not enough to forget its note. The note must be here and visible to who brings the tombstone; for
 * one that is not here only who sees everything is believed, since it may be one that this peer must not touch.
 */
function mayForget(view: View, home: string, seen: Clearance | undefined, tombstone: unknown): boolean {
  const id = String((tombstone as { id?: unknown } | null)?.id)
  if (getState(view, home, id) !== undefined) return mayChange(view, home, seen, id)
  return seesEverything(seen)
}

const seesEverything = (seen: Clearance | undefined): boolean =>
  seen?.level === 'sealed' && seen.tags.includes(EVERY_TAG)
