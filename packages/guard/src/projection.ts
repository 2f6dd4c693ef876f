/**
 * The projection of a home with the labels that are in force: of a file what its tree says, of a note also what its
 * row and that very version say, of a forgotten note what its tombstone says. A note that is in no row is the most
 * restrictive, as at every door.
 * @clause L4.2
 */
import { MOST_RESTRICTIVE, isNodeError, joinLabels, parseLabel, type Label } from '@csb/core'
import {
  applyProjected as applyWith,
  placeBeside as placeBesideWith,
  projectCommit as projectWith,
  projectWithin as projectWithinWith,
  readBlob,
  type AppliedProjected,
  type ApplyProjected,
  type LabelRule,
  type Sight,
} from '@csb/files'
import { getState, notePath, parseNote } from '@csb/memory'
import type { Store, Transaction, View } from '@csb/store'
import { getTombstone } from './tombstones.ts'

const NOTE = /^notes\/[0-9]{4}\/[0-9]{2}\/[0-9a-f]{2}\/(mem_[0-9]{13}_[0-9A-Za-z]{1,64})\.md$/

/**
 * What a reader sees of a commit, by its clearance and the paths it reaches, as a commit of the same home. It is the commit itself where the
 * reader sees everything and nothing was forgotten.
 * @param signal breaks it off between two steps; what was done by then is kept
 * @returns object id; null where the reader sees nothing of its history
 * @throws NOT_FOUND, OBJECT_DAMAGED, CONFLICT where labels go on changing meanwhile
 * @clause L4.2
 */
export const projectCommit = (
  store: Store,
  { home, commit, clearance }: { readonly home: string; readonly commit: string; readonly clearance: Sight },
  signal?: AbortSignal,
): Promise<string | null> => projectWith(store, { home, clearance, labelOf: labelInForce }, commit, signal)

/** The same within a transaction, for a commit of which little is left to be worked out. @clause L4.2 */
export const projectWithin = (
  tx: Transaction,
  { home, commit, clearance }: { readonly home: string; readonly commit: string; readonly clearance: Sight },
): Promise<string | null> => projectWithinWith(tx, { home, clearance, labelOf: labelInForce }, commit)

/**
 * Commit changes that a reader made on a projected commit to the full tree behind it.
 * @throws CONFLICT where nothing is seen as `base` any more; PROTECTED, INVALID_INPUT, TOO_LARGE, FORGOTTEN
 * @clause L4.2
 */
export const applyProjected = (tx: Transaction, input: Omit<ApplyProjected, 'labelOf'>): Promise<AppliedProjected> =>
  applyWith(tx, { ...input, labelOf: labelInForce })

/** Where a file lands that a reader writes as it is: beside one that it does not see. @throws INVALID_INPUT @clause L4.2 */
export const placeBeside = (
  tx: Transaction,
  {
    home,
    clearance,
    ...at
  }: {
    readonly home: string
    readonly clearance: Sight
    readonly tree: string
    readonly path: string
  },
): string => placeBesideWith(tx, { home, clearance, labelOf: labelInForce }, at)

/** What the tree says, and where a note stands also what is known of it and what that version says of itself. */
export const labelInForce: LabelRule = (view, { home, path, oid, label }) => {
  const id = NOTE.exec(path)?.[1]
  if (id === undefined || notePath(id) !== path) return label
  const known = getState(view, home, id)?.label ?? getTombstone(view, home, id)?.label
  const inForce = known === undefined ? MOST_RESTRICTIVE : parseLabel(known)
  return joinLabels([label, inForce, ...(oid === null ? [] : labelsInside(view, home, oid))])
}

/** What a version says of itself: one that was secret stays so in history when a later one is not. */
function labelsInside(view: View, home: string, oid: string): Label[] {
  try {
    return [parseNote(readBlob(view, home, oid)).label]
  } catch (error) {
    if (isNodeError(error, 'FORGOTTEN')) return []
    if (isNodeError(error, 'MALFORMED')) return [MOST_RESTRICTIVE]
    throw error
  }
}
