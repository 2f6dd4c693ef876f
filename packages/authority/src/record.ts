/**
 * The flight recorder: one entry for everything that was done or refused, in an order nobody can change unseen.
 *
 * An entry is a header, which stays for ever and says nothing about content, and a payload, which can be erased:
 * the header holds only a salted commitment to it. Headers are the leaves of a Merkle tree and each names the one
 * before it. Staged in the caller's transaction, so that an act and its entry are durable together or not at all.
 * @clause L1.1, L1.5, L1.6
 */
import { digestOf, fail, formatLabel, joinLabels, salt, sha256, toBase64Url, toHex } from '@csb/core'
import { createObjectView } from '@csb/files'
import { createReadList, key, prefix, tail, type ReadEntry, type Transaction, type View } from '@csb/store'
import { completedBy, leafHash } from './merkle.ts'
import { groupsOf, readsIn, type ReadGroup } from './read-list.ts'
import {
  headerRow,
  holderOfNode,
  leafBytes,
  leafOfRow,
  nodeIn,
  payloadRow,
  payloadText,
  readHeader,
  readStored,
  splitRow,
  type RecordHeader,
  type RecordPayload,
} from './record-row.ts'

/** What is told of one act. */
export type RecordEntry = {
  /** name of the operation */
  readonly operation: string
  readonly outcome: 'done' | 'refused' | 'failed'
  /** error code, where it was refused or failed */
  readonly code?: string
  /** did, or how the door saw somebody without one; null for nobody */
  readonly actor: string | null
  readonly door: string
  readonly run: string | null
  /** hash of the grant whose lease was used */
  readonly lease: string | null
  /** hash of a foreign grant that was the reason, where another one was used */
  readonly basis?: string
  /** each thing once is noted */
  readonly reads: readonly ReadEntry[]
  /** the same as the run's own list has it, where a run keeps its list */
  readonly readGroups?: readonly ReadGroup[]
  /** label of the run; default: the join of what was read */
  readonly label?: string
  /** ids, digests and codes; goes to the erasable payload */
  readonly effect: Readonly<Record<string, unknown>>
  /** oid of the commit it made; found again by {@link recordOfCommit} */
  readonly commit?: string
  /** oids of commits that came along with it; each is found as well */
  readonly commits?: readonly string[]
}

export type RecordItem = {
  readonly header: RecordHeader
  /** leaf hash, hex */
  readonly leaf: string
  /** null where it was erased */
  readonly payload: RecordPayload | null
  /** of the payload, base64url; null where it was erased */
  readonly salt: string | null
}

type Head = { readonly size: number; readonly ts: number }

/** Why nothing is written: somebody showed a checkpoint, signed by this node, that its record does not bear out. */
export type Held = {
  /** it is shorter than what was signed, it differs from it, or it was begun anew elsewhere */
  readonly reason: 'shorter' | 'differs' | 'resumed-elsewhere'
  /** what this node once signed, as the witness showed it */
  readonly checkpoint: string
  /** did */
  readonly witness: string
  /** entries when it was found */
  readonly size: number
  /** ms since epoch */
  readonly at: number
}

const NOTHING = new Uint8Array()
const HEAD = key('meta', 'record')
const HELD = key('meta', 'record-held')
const LOG = key('meta', 'record-log')

/**
 * Stage one entry.
 * @param now ms since epoch
 * @returns its number, from 0, and its leaf hash in hex
 * @throws RECORD_HELD `{reason, witness}` where a witness knows more of this record than this node
 * @clause L1.1, L1.5
 */
export function appendRecord(tx: Transaction, entry: RecordEntry, now: number): { seq: number; leaf: string } {
  checkNotHeld(tx)
  const { size: seq, ts: before } = headOf(tx)
  const ts = Math.max(now, before)
  const reads = entry.readGroups === undefined ? onceEach(entry.reads) : entry.reads
  const groups = entry.readGroups ?? (reads.length === 0 ? [] : groupsOf(tx, reads))
  const payload = payloadRow(salt(), { reads: groups, effect: entry.effect, commit: entry.commit ?? null })
  const nodeAt = nodesOf(tx)
  const bytes = leafBytes(seq === 0 ? undefined : nodeAt(0, seq - 1), sha256(payload), {
    actor: entry.actor,
    basis: entry.basis ?? null,
    code: entry.code ?? null,
    door: entry.door,
    label: entry.label ?? formatLabel(joinLabels(reads.map((read) => read.label))),
    lease: entry.lease,
    operation: entry.operation,
    outcome: entry.outcome,
    reads: reads.length,
    run: entry.run,
    ts,
  })
  const leaf = leafHash(bytes)
  const nodes = completedBy(seq, leaf, nodeAt)
  tx.put(
    key('header', seq),
    headerRow(
      nodes.map(({ hash }) => hash),
      bytes,
    ),
  )
  tx.put(key('payload', seq), payload)
  if (entry.run !== null) tx.put(key('recordByRun', entry.run, seq), NOTHING)
  if (entry.lease !== null && reads.length > 0) tx.put(key('recordByLease', entry.lease, seq), NOTHING)
  for (const commit of [entry.commit, ...(entry.commits ?? [])]) {
    if (commit !== undefined && !tx.has(key('recordByCommit', commit))) tx.putJson(key('recordByCommit', commit), seq)
  }
  tx.putJson(HEAD, { size: seq + 1, ts } satisfies Head)
  return { seq, leaf: toHex(leaf) }
}

/** Why nothing is written, or undefined where all is well. */
export const heldOf = (view: View): Held | undefined => view.getJson<Held>(HELD)

/** @throws RECORD_HELD */
export function checkNotHeld(view: View): void {
  const held = heldOf(view)
  if (held !== undefined) fail('RECORD_HELD', { reason: held.reason, witness: held.witness, since: held.at })
}

/** Write nothing from now on, until {@link beginLog}. The first reason stands. */
export function holdRecord(tx: Transaction, held: Held): void {
  if (heldOf(tx) === undefined) tx.putJson(HELD, held)
}

/** Number of this node's log: it counts the backups that were restored. */
export const logNumber = (view: View): number => view.getJson<number>(LOG) ?? 0

/** Go on as the log of that number, and write again. What was signed for the others stays signed. */
export function beginLog(tx: Transaction, number: number): void {
  tx.putJson(LOG, number)
  tx.del(HELD)
}

/** How many entries there are. */
export const recordSize = (view: View): number => headOf(view).size

/**
 * The time by which authority is judged: the clock, but never before the last entry. A clock that was set back
 * brings nothing that has expired to life again.
 * @param now ms since epoch
 */
export const effectiveNow = (view: View, now: number): number => Math.max(now, headOf(view).ts)

export type ReadRecordsOptions = {
  /** begin behind this number (before it when `reverse`) */
  readonly after?: number
  readonly limit: number
  /** newest first */
  readonly reverse?: boolean
  /** only entries of that run */
  readonly run?: string
}

/** Entries in order. @throws RECORD_DAMAGED where one can not be read */
export async function readRecords(view: View, options: ReadRecordsOptions): Promise<RecordItem[]> {
  const { run, after, limit, reverse = false } = options
  const keyOf = (seq: number) => (run === undefined ? key('header', seq) : key('recordByRun', run, seq))
  const items: RecordItem[] = []
  const range = {
    prefix: run === undefined ? prefix('header') : prefix('recordByRun', run),
    limit,
    reverse,
    ...(after === undefined ? {} : { after: keyOf(after) }),
  }
  for await (const [fullKey] of view.range(range)) {
    items.push(recordAt(view, Number(run === undefined ? tail(fullKey, 'header') : tail(fullKey, 'recordByRun', run))))
  }
  return items
}

/** @throws NOT_FOUND, RECORD_DAMAGED */
export function recordAt(view: View, seq: number): RecordItem {
  const stored = view.get(key('header', seq)) ?? fail('NOT_FOUND', { seq })
  const bytes = leafOfRow(seq === 0 ? undefined : nodesOf(view)(0, seq - 1), splitRow(stored, seq).said)
  const header = readHeader(bytes, seq)
  const leaf = toHex(leafHash(bytes))
  const row = view.get(key('payload', seq))
  if (row === undefined) return { header, leaf, payload: null, salt: null }
  const { salt: salted, stored: said } = readStored(row, seq)
  const payload: RecordPayload = {
    // worked out when it is asked for: most who look at entries do not
    get reads() {
      return readsIn(() => view, said.reads ?? [])
    },
    effect: said.effect,
    commit: said.commit ?? null,
  }
  return { header, leaf, payload, salt: toBase64Url(salted) }
}

/** Number of the entry that made a commit, or undefined. */
export const recordOfCommit = (view: View, oid: string): number | undefined =>
  view.getJson<number>(key('recordByCommit', oid))

/** A payload as it is stored, and which of the words that were asked for it names. */
export type Mentioning = {
  readonly seq: number
  readonly key: string
  readonly bytes: Uint8Array
  readonly words: readonly string[]
}

/**
 * Payloads that mention one of the given words (ids, paths, object ids), spelled out or by a place in a snapshot, for
 * the erase routine: the header keeps proving that an entry stood there, and tells nothing about what it said.
 * @returns numbers of the entries, full keys and stored bytes of their payloads
 * @clause L3.4
 */
export async function payloadsThatMention(view: View, words: readonly string[]): Promise<Mentioning[]> {
  const found: Mentioning[] = []
  const trees = new Map<string, View>()
  const treesOf = (home: string): View => {
    const known = trees.get(home) ?? createObjectView(view, home)
    trees.set(home, known)
    return known
  }
  for await (const [fullKey, bytes] of view.range({ prefix: prefix('payload') })) {
    const said = payloadText(bytes) ?? ''
    // what is spelled needs no reading
    const groups = said.includes('"set":"') ? groupsStored(bytes) : []
    const text = [said, ...readsIn(treesOf, groups).map(({ path, oid }) => `${path} ${oid}`)].join('\n')
    const named = words.filter((word) => text.includes(word))
    if (named.length > 0) found.push({ seq: Number(tail(fullKey, 'payload')), key: fullKey, bytes, words: named })
  }
  return found
}

/** Node source over what is stored. @throws RECORD_DAMAGED where one is missing */
export const nodesOf =
  (view: View) =>
  (level: number, index: number): Uint8Array => {
    const row = view.get(key('header', holderOfNode(level, index)))
    return (row && nodeIn(row, level)) ?? fail('RECORD_DAMAGED', { reason: 'node missing', level, index })
  }

/** Size, and time of the last entry. */
export const headOf = (view: View): Head => view.getJson<Head>(HEAD) ?? { size: 0, ts: 0 }

/** True where the payload's bytes are those its header commits to. */
export const isCommitted = (header: RecordHeader, row: Uint8Array): boolean => digestOf(row) === header.payload

/** Each thing once. */
function onceEach(reads: readonly ReadEntry[]): readonly ReadEntry[] {
  if (reads.length < 2) return reads
  const list = createReadList()
  for (const read of reads) list.noteRead(read)
  return list.reads
}

/** Of a payload that can not be read, none. */
function groupsStored(bytes: Uint8Array): readonly ReadGroup[] {
  try {
    return readStored(bytes, 0).stored.reads ?? []
  } catch {
    return []
  }
}
