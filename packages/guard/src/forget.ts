/**
 * Forgetting a note: tombstone, removal from tree and index, every version of its file out of reach, and the
 * plan of what has to leave the disk, all in one batch. {@link finishErasures} carries the plan out, also at
 * the next start when the node was killed in between.
 *
 * Trees and commits stay, so no id changes. Holds that stop forgetting are not known here.
 * @clause L3.4 L4.3
 */
import { fail, type KeyPair, type Tombstone } from '@csb/core'
import { eraseVersions, staleProjections } from '@csb/files'
import {
  getState,
  nextHlc,
  notePath,
  putNotes,
  removeNotes,
  type Put,
  type PutNotes,
  type WriteWords,
} from '@csb/memory'
import type { Transaction } from '@csb/store'
import { stagePlan, type ErasePlan } from './erasures.ts'
import { checkTombstone, isForgotten, putTombstone, signTombstone } from './tombstones.ts'

type Words = Omit<WriteWords, 'message'>

export type ForgetNote = Words & {
  readonly id: string
  /** at most 256 characters; stands in the tombstone and goes to peers with it */
  readonly reason: string
  /** key of this node */
  readonly key: KeyPair
}

export type Forgotten = {
  readonly tombstone: Tombstone
  /** head of the branch `memory` afterwards */
  readonly commit: string
  readonly erase: ErasePlan
}

export type ApplyTombstone = Words & {
  readonly tombstone: unknown
  /** who may forget in this home; omitted: whoever signed, where the caller answers for the peer that brought it */
  readonly signers?: (did: string) => boolean
}

/** `commit` and `erase` are there where something was here to forget. */
export type Applied = { readonly applied: boolean; readonly commit?: string; readonly erase?: ErasePlan }

/**
 * Forget a note of this home for good.
 * @throws NOT_FOUND; FORGOTTEN where it was already; INVALID_INPUT, OBJECT_DAMAGED
 * @clause L3.4 L4.3
 */
export async function forgetNote(tx: Transaction, { id, reason, key, ...words }: ForgetNote): Promise<Forgotten> {
  const { home, now } = words
  if (isForgotten(tx, home, id)) fail('FORGOTTEN', { home, id })
  const state = getState(tx, home, id) ?? fail('NOT_FOUND', { home, id })
  const tombstone = signTombstone(
    { v: 1, home, id, label: state.label, hlc: nextHlc(tx, now), reason, by: key.did, forgotten_at: now },
    key,
  )
  const { commit, erase } = await bury(tx, words, tombstone)
  return { tombstone, commit, erase }
}

/**
 * Take in a tombstone from a peer; it works for notes never seen here, which then never come.
 * @returns applied false where the note was forgotten here before
 * @throws MALFORMED; DENIED for another home, a bad signature or a signer that may not forget here
 * @clause L4.3
 */
export async function applyTombstone(tx: Transaction, input: ApplyTombstone): Promise<Applied> {
  const { tombstone: value, signers, ...words } = input
  const tombstone = checkTombstone(value, words.home)
  if (signers?.(tombstone.by) === false) fail('DENIED', { reason: 'that key may not forget here', by: tombstone.by })
  if (isForgotten(tx, words.home, tombstone.id)) return { applied: false }
  const { removed, commit, erase } = await bury(tx, words, tombstone)
  return { applied: true, ...(removed ? { commit } : {}), ...(erase.oids.length > 0 ? { erase } : {}) }
}

/**
 * Take notes in as memory does, but none that was forgotten: those are among the ignored.
 * @throws as putNotes of memory
 * @clause L4.3
 */
export function putRemembered(tx: Transaction, { notes, ...words }: PutNotes): Put {
  const { true: forgotten = [], false: welcome = [] } = Object.groupBy(
    notes,
    ({ entry }) => `${isForgotten(tx, words.home, entry.id)}`,
  )
  const put = putNotes(tx, { ...words, notes: welcome })
  return { ...put, ignored: [...put.ignored, ...forgotten.map(({ entry }) => entry.id)] }
}

async function bury(
  tx: Transaction,
  words: Words,
  tombstone: Tombstone,
): Promise<{ removed: boolean; commit: string; erase: ErasePlan }> {
  const { home, id } = tombstone
  putTombstone(tx, tombstone)
  staleProjections(tx, home)
  const { commit, removed } = removeNotes(tx, { ...words, message: `forget ${id}`, ids: [id] })
  const erase = { home, id, ...(await eraseVersions(tx, home, notePath(id))) }
  if (erase.oids.length > 0 || erase.kept.length > 0) stagePlan(tx, erase)
  return { removed: removed.length > 0, commit, erase }
}
