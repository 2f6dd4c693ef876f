/**
 * Two witnesses of one log compare what it showed them: a log that shows each of them another history, and always the
 * same one to the same, is found by that and by nothing else. Each side believes what the log has signed, and nothing
 * that the other witness says.
 * @clause L1.6
 */
import { isNodeError, sha256Hex } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { originOf, readCheckpoint, type SignedCheckpoint } from './checkpoint.ts'
import { keepContradiction, listWitnessed, type Contradiction, type WitnessedLog } from './witness.ts'

/** Two checkpoints of one log, the smaller first: the log can prove that the second follows, or it has two histories. */
export type Gap = { readonly known: WitnessedLog; readonly first: SignedCheckpoint; readonly second: SignedCheckpoint }

export type Compared = {
  /** they contradict each other by themselves, and that was not known yet */
  readonly found: Contradiction | null
  /** whether the one follows from the other the log has to show */
  readonly gap: Gap | null
}

const NOTHING: Compared = { found: null, gap: null }

/** Logs compared at once. */
const MOST_LOGS = 64

/** Logs by a digest of their origin: who does not stand witness for the same log learns of none. */
export async function comparable(view: View): Promise<string[]> {
  const logs = await listWitnessed(view)
  return logs.slice(-MOST_LOGS).map(({ origin }) => sha256Hex(origin))
}

/** What is known here of the logs with those digests, as they signed it. */
export async function notesOf(view: View, digests: readonly string[]): Promise<string[]> {
  const logs = await listWitnessed(view)
  return logs.filter(({ origin }) => digests.includes(sha256Hex(origin))).map(({ note }) => note)
}

/**
 * Compare what another witness was shown with what is known here.
 * @param note as the log signed it; one that it did not sign is nothing
 * @param now ms since epoch
 * @clause L1.6
 */
export function compareNote(tx: Transaction, note: string, now: number): Compared {
  const theirs = readSigned(note)
  if (theirs === undefined) return NOTHING
  const known = tx.getJson<WitnessedLog>(key('witness', theirs.log.did, theirs.log.number))
  if (known === undefined || known.origin !== originOf(theirs.log)) return NOTHING
  if (known.size === theirs.size)
    return known.root === theirs.root
      ? NOTHING
      : { found: keepContradiction(tx, 'same-size', known, theirs, now), gap: null }
  const ours = readCheckpoint(known.note)
  const [first, second] = ours.size < theirs.size ? [ours, theirs] : [theirs, ours]
  return { found: null, gap: { known, first, second } }
}

/** The log gave no proof that the second follows from the first. @returns null where that is known already */
export function keepUnproved(tx: Transaction, { known, first, second }: Gap, now: number): Contradiction | null {
  const theirs = first.note === known.note ? second : first
  return keepContradiction(tx, 'no-proof', known, theirs, now)
}

function readSigned(note: string): SignedCheckpoint | undefined {
  try {
    return readCheckpoint(note)
  } catch (error) {
    if (isNodeError(error)) return undefined
    throw error
  }
}
