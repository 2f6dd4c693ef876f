/**
 * Making the bytes of forgotten notes leave the disk, and saying what that did not reach.
 *
 * A plan holds names only: pieces of the forgotten text in it would themselves have to be erased.
 * @clause L3.4
 */
import { delay, fromUtf8, utf8 } from '@csb/core'
import { erasedBlobs, type ErasedBlob, type LiveCopy } from '@csb/files'
import { eraseKeys, key, prefix, type Store, type Transaction, type View } from '@csb/store'

export type ErasePlan = {
  readonly home: string
  /** id of the note */
  readonly id: string
  /** blobs whose bytes go */
  readonly oids: readonly string[]
  /** files that need the same bytes, which therefore stay */
  readonly kept: readonly LiveCopy[]
}

/** What forgetting a note here can not reach. */
export type NotCovered =
  /** another live file with the same bytes */
  | { readonly kind: 'copy'; readonly branch: string; readonly path: string }
  /** id and path of the note, in old trees, commits and the tombstone; object ids, by which a short text can be guessed */
  | { readonly kind: 'names' }
  /** texts made from it: answers, tasks, files, other notes */
  | { readonly kind: 'derivatives' }
  /** nodes that did not take the tombstone yet */
  | { readonly kind: 'peers' }
  /** what was cloned, exported or copied out before */
  | { readonly kind: 'exports' }
  /** snapshots of the file system, backups, spare blocks of the disk */
  | { readonly kind: 'backups' }

/** A row elsewhere in the store that names what was forgotten, and bytes by which it is known to be gone. */
export type Mention = { readonly key: string; readonly marker: Uint8Array }

/** Finds the rows that name one of the words: the id of the note, and the ids of its blobs. */
export type FindMentions = (view: View, words: readonly string[]) => Promise<readonly Mention[]>

export type ForgetReport = {
  readonly home: string
  readonly id: string
  /** how many versions of the note's file left the disk */
  readonly cleared: number
  /** how many entries of the record, which named it, lost what they said */
  readonly records: number
  /** names of database files in which a piece was still found, be it in another place of the store */
  readonly remains: readonly string[]
  /** false where the bytes were gone before this run, so that there was nothing to look for */
  readonly scanned: boolean
  readonly not_covered: readonly NotCovered[]
}

/** What no forgetting here reaches, whatever the note. */
export const NOT_COVERED = ['names', 'derivatives', 'peers', 'exports', 'backups'] as const

/** An open iterator keeps old values alive for as long as it lasts; so look again before giving up. */
const ATTEMPTS = 4
const PAUSE_MS = 250
/** A piece to look for: long enough not to be found by chance. In bytes. */
const PIECE_BYTES = 24
/** Below this, the middle of what is stored may be front matter, which is alike in many notes. */
const LARGE_BYTES = 1024
const END_OF_FRONT_MATTER = '\n---\n'

/** Stage a plan with the batch that forgets, so that a kill can not lose it. */
export function stagePlan(tx: Transaction, plan: ErasePlan): void {
  tx.putJson(planKey(plan), plan)
}

/**
 * Carry out every staged plan: after each forgetting, and once at start. A plan whose bytes were still found
 * stays and is tried again with the next call.
 * @param mentions what else names it and goes as well; omitted: nothing does
 * @throws OBJECT_DAMAGED, DISK_FULL
 * @clause L3.4
 */
export async function finishErasures(store: Store, mentions: FindMentions = async () => []): Promise<ForgetReport[]> {
  const reports: ForgetReport[] = []
  for (const plan of await plansOf(store)) {
    const report = await erase(store, plan, mentions)
    reports.push(report)
    if (report.remains.length === 0) await store.transact((tx) => tx.del(planKey(plan)))
  }
  return reports
}

async function plansOf(store: Store): Promise<ErasePlan[]> {
  const view = store.view()
  const plans: ErasePlan[] = []
  for await (const [row] of view.range({ prefix: prefix('meta', 'erase') })) {
    const plan = view.getJson<ErasePlan>(row)
    if (plan !== undefined) plans.push(plan)
  }
  return plans
}

async function erase(store: Store, plan: ErasePlan, mentions: FindMentions): Promise<ForgetReport> {
  const { home, id, oids, kept } = plan
  const erased = erasedBlobs(store.view(), home, oids)
  const pieces = erased.blobs.flatMap(piecesOf)
  const named = await mentions(store.view(), [id, ...oids])
  const keys = [...erased.keys, ...named.map((mention) => mention.key)]
  const markers = [...pieces, ...named.map(({ marker }) => marker)]
  let { remains } = await eraseKeys(store, keys, markers)
  for (let attempt = 1; remains.length > 0 && attempt < ATTEMPTS; attempt++) {
    await delay(PAUSE_MS)
    remains = (await eraseKeys(store, keys, markers)).remains
  }
  const copies = kept.map(({ branch, path }) => ({ kind: 'copy', branch, path }) as const)
  return {
    home,
    id,
    cleared: oids.length,
    records: named.length,
    remains,
    scanned: pieces.length > 0,
    not_covered: [...copies, ...NOT_COVERED.map((kind) => ({ kind }))],
  }
}

/**
 * The end of what is stored, which a checksum of the whole makes its own; the middle of it, where that is text;
 * and the middle of the longest line of text, as a copy elsewhere in the store would have it.
 */
function piecesOf({ stored, bytes }: ErasedBlob): Uint8Array[] {
  const text = fromUtf8(bytes) ?? ''
  const lines = text.slice(text.indexOf(END_OF_FRONT_MATTER) + END_OF_FRONT_MATTER.length).split('\n')
  const longest = utf8(lines.reduce((best, line) => (line.length > best.length ? line : best), ''))
  return [
    stored.slice(-PIECE_BYTES),
    ...(stored.byteLength < LARGE_BYTES ? [] : [middleOf(stored)]),
    ...(longest.byteLength < PIECE_BYTES ? [] : [middleOf(longest)]),
  ]
}

function middleOf(bytes: Uint8Array): Uint8Array {
  const start = (bytes.byteLength - PIECE_BYTES) >> 1
  return bytes.slice(start, start + PIECE_BYTES)
}

const planKey = ({ home, id }: ErasePlan): string => key('meta', 'erase', home, id)
