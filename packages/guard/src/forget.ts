/**
 * Forgetting notes: tombstones, removal from tree and index, every version of their files out of reach, and the
 * plan of what has to leave the disk, all in one batch. {@link finishErasures} carries the plan out, also at
 * the next start when the node was killed in between. Whether they may be forgotten is asked and answered elsewhere.
 *
 * Trees and commits stay, so no id changes. Holds that stop forgetting are not known here.
 * @clause L3.4 L4.3
 */
import { fail, type KeyPair, type Tombstone } from '@csb/core'
import { eraseVersions, staleProjections, type Looked } from '@csb/files'
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

export type ForgetNotes = Words & {
  readonly ids: readonly string[]
  /** at most 256 characters; stands in the tombstone and goes to peers with it */
  readonly reason: string
  /** key of this node */
  readonly key: KeyPair
  /** from `lookForNotes`, of the same ids */
  readonly looked?: Looked
}

/** `commit`: head of the branch `memory` afterwards. */
type Buried = { readonly commit: string; readonly removed: readonly string[]; readonly erase: readonly ErasePlan[] }

export type Forgotten = Omit<Buried, 'removed'> & {
  /** in the order of the ids */
  readonly tombstones: readonly Tombstone[]
}

export type ApplyTombstones = Words & {
  /** a page of them: all are taken in with one walk through history */
  readonly tombstones: readonly unknown[]
  /** who may forget in this home; omitted: whoever signed, where the caller answers for the peer that brought it */
  readonly signers?: (did: string) => boolean
}

/** `applied`: ids that were not forgotten here before. `commit` is there where something was here to forget. */
export type Applied = {
  readonly applied: readonly string[]
  readonly commit?: string
  readonly erase: readonly ErasePlan[]
}

/**
 * Forget notes of this home for good: all of them or none, in one commit.
 * @throws NOT_FOUND; FORGOTTEN where one was already; INVALID_INPUT, OBJECT_DAMAGED
 * @clause L3.4 L4.3
 */
export async function forgetNotes(
  tx: Transaction,
  { ids, reason, key, looked, ...words }: ForgetNotes,
): Promise<Forgotten> {
  const { home, now } = words
  const tombstones = ids.map((id) => {
    if (isForgotten(tx, home, id)) fail('FORGOTTEN', { home, id })
    const { label } = getState(tx, home, id) ?? fail('NOT_FOUND', { home, id })
    return signTombstone({ v: 1, home, id, label, hlc: nextHlc(tx, now), reason, by: key.did, forgotten_at: now }, key)
  })
  const { commit, erase } = await bury(tx, words, tombstones, looked)
  return { tombstones, commit, erase }
}

/**
 * Take in tombstones from a peer; they work for notes never seen here, which then never come. All of them or none.
 * @throws MALFORMED; DENIED for another home, a bad signature or a signer that may not forget here
 * @clause L4.3
 */
export async function applyTombstones(tx: Transaction, input: ApplyTombstones): Promise<Applied> {
  const { tombstones, signers, ...words } = input
  const checked = tombstones.map((value) => {
    const tombstone = checkTombstone(value, words.home)
    if (signers?.(tombstone.by) === false) fail('DENIED', { reason: 'that key may not forget here', by: tombstone.by })
    return tombstone
  })
  const fresh = checked.filter(({ id }) => !isForgotten(tx, words.home, id))
  // of two for one note the first counts
  const once = [...new Map(fresh.toReversed().map((tombstone) => [tombstone.id, tombstone])).values()].toReversed()
  if (once.length === 0) return { applied: [], erase: [] }
  const { removed, commit, erase } = await bury(tx, words, once)
  return {
    applied: once.map(({ id }) => id),
    ...(removed.length > 0 ? { commit } : {}),
    erase: erase.filter(({ oids }) => oids.length > 0),
  }
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

async function bury(tx: Transaction, words: Words, tombstones: readonly Tombstone[], looked?: Looked): Promise<Buried> {
  const { home } = words
  const ids = tombstones.map(({ id }) => id)
  for (const tombstone of tombstones) putTombstone(tx, tombstone)
  staleProjections(tx, home)
  const message = ids.length === 1 ? `forget ${ids[0]}` : `forget ${ids.length} notes`
  const { commit, removed } = removeNotes(tx, { ...words, message, ids })
  const erased = await eraseVersions(tx, home, ids.map(notePath), looked)
  const erase = ids.map((id, at): ErasePlan => ({ home, id, oids: [], kept: [], ...erased[at] }))
  for (const plan of erase) if (plan.oids.length > 0 || plan.kept.length > 0) stagePlan(tx, plan)
  return { commit, removed, erase }
}
