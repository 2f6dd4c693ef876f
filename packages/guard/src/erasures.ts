/**
 * Making the bytes of forgotten notes leave the disk, and saying what that did not reach.
 *
 * A plan holds names only: pieces of the forgotten text in it would themselves have to be erased.
 * @clause L3.4
 */
import { delay, fromUtf8, utf8 } from '@csb/core'
import { erasedBlobs, type ErasedBlob, type LiveCopy } from '@csb/files'
import { eraseKeys, key, prefix, scanFiles, type Store, type Transaction, type View } from '@csb/store'

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
export type Mention = {
  readonly key: string
  readonly marker: Uint8Array
  /** those of the asked words that it names */
  readonly words: readonly string[]
}

/** Finds the rows that name one of the words: ids of notes, and ids of their blobs. */
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
/** Plans that are carried out together, and blobs of theirs: all of these are held and looked for at once. */
const BATCH_PLANS = 100
const BATCH_BLOBS = 500
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
  for (const plans of batchesOf(await plansOf(store))) {
    const done = await erase(store, plans, mentions)
    reports.push(...done)
    const finished = plans.filter((_, at) => done[at]?.remains.length === 0)
    await store.transact((tx) => finished.forEach((plan) => tx.del(planKey(plan))))
  }
  return reports
}

function* batchesOf(plans: readonly ErasePlan[]): Generator<ErasePlan[]> {
  let batch: ErasePlan[] = []
  let blobs = 0
  for (const plan of plans) {
    if (batch.length > 0 && (batch.length === BATCH_PLANS || blobs + plan.oids.length > BATCH_BLOBS)) {
      yield batch
      batch = []
      blobs = 0
    }
    batch.push(plan)
    blobs += plan.oids.length
  }
  if (batch.length > 0) yield batch
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

/** What one plan takes away, and the bytes by which that is known to be gone. */
type Job = {
  readonly plan: ErasePlan
  readonly keys: readonly string[]
  readonly pieces: readonly Uint8Array[]
  readonly named: readonly Mention[]
}

/** Several plans at once: one compaction and one look through the files for all. @returns in their order */
async function erase(store: Store, plans: readonly ErasePlan[], mentions: FindMentions): Promise<ForgetReport[]> {
  const jobs = await jobsOf(store.view(), plans, mentions)
  const keys = [...new Set(jobs.flatMap((job) => [...job.keys, ...job.named.map((mention) => mention.key)]))]
  const markers = jobs.flatMap(markersOf)
  let { remains } = await eraseKeys(store, keys, markers)
  for (let attempt = 1; remains.length > 0 && attempt < ATTEMPTS; attempt++) {
    await delay(PAUSE_MS)
    remains = (await eraseKeys(store, keys, markers)).remains
  }
  const reports: ForgetReport[] = []
  for (const job of jobs) {
    // whose they are has to be asked only where something was found
    const own = remains.length === 0 || jobs.length === 1 ? remains : await scanFiles(store.directory, markersOf(job))
    reports.push(reportOf(job, own))
  }
  return reports
}

async function jobsOf(view: View, plans: readonly ErasePlan[], mentions: FindMentions): Promise<Job[]> {
  const named = await mentions(
    view,
    plans.flatMap(({ id, oids }) => [id, ...oids]),
  )
  return plans.map((plan) => {
    const { keys, blobs } = erasedBlobs(view, plan.home, plan.oids)
    const words = new Set([plan.id, ...plan.oids])
    return {
      plan,
      keys,
      pieces: blobs.flatMap(piecesOf),
      named: named.filter((row) => row.words.some((w) => words.has(w))),
    }
  })
}

const markersOf = ({ pieces, named }: Job): Uint8Array[] => [...pieces, ...named.map(({ marker }) => marker)]

function reportOf({ plan: { home, id, oids, kept }, pieces, named }: Job, remains: readonly string[]): ForgetReport {
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
