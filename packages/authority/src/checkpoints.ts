/**
 * This node's own checkpoints: made when the record grew, kept with the cosignatures that came, settled when enough
 * have. And the state in which nothing is written: when a witness knows more of this record than the node itself.
 * @clause L1.6
 */
import { fail, toHex, type KeyPair } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import {
  originOf,
  readCheckpoint,
  signCheckpoint,
  withCosignatures,
  type Checkpoint,
  type Cosignature,
  type SignedCheckpoint,
} from './checkpoint.ts'
import { rootOf } from './merkle.ts'
import { parseNoteLines } from './note.ts'
import { takeMeanwhile, type Meanwhile } from './meanwhile.ts'
import { beginLog, headOf, heldOf, logNumber, nodesOf, type Held } from './record.ts'

/** One that was made, and what came of it. */
export type KnownCheckpoint = {
  readonly size: number
  /** 64 hex digits */
  readonly root: string
  /** ms since epoch when it was made */
  readonly at: number
  readonly cosigners: readonly Cosignature[]
  readonly note: string
}

/** What others can hold this node to. */
export type WitnessState = {
  /** number of the log; 0 until a backup was restored */
  readonly log: number
  /** entries now */
  readonly size: number
  readonly latest: KnownCheckpoint | null
  /** the newest one with enough cosignatures; null: nobody but this node vouches for the record */
  readonly settled: KnownCheckpoint | null
  readonly held: Held | null
}

export type Resumed = {
  /** number of the log from now on */
  readonly log: number
  /** entries that were there when it went on */
  readonly from: number
  readonly reason: Held['reason']
  /** the checkpoint of the log before, which this one does not bear out */
  readonly after: { readonly origin: string; readonly size: number; readonly root: string; readonly witness: string }
  /** what ended rights before it went on; absent where nothing did */
  readonly meanwhile?: readonly Meanwhile[]
}

type Row = { readonly at: number; readonly note: string }
type Place = { readonly number: number; readonly size: number }

const LATEST = key('meta', 'checkpoint')
const SETTLED = key('meta', 'checkpoint-settled')
const DAY_MS = 86_400_000

/**
 * Make a checkpoint of the record as it stands, or give the one that covers it already.
 * @param now ms since epoch
 * @returns undefined where the record is empty, or held
 */
export function makeCheckpoint(tx: Transaction, nodeKey: KeyPair, now: number): SignedCheckpoint | undefined {
  const { size } = headOf(tx)
  if (size === 0 || heldOf(tx) !== undefined) return undefined
  const number = logNumber(tx)
  const last = tx.getJson<Place>(LATEST)
  if (last?.number === number && last.size === size) {
    const row = tx.getJson<Row>(rowKey(last))
    if (row !== undefined) return readCheckpoint(row.note)
  }
  const note = signedHead(tx, nodeKey, size)
  // one that nobody cosigned binds nobody and proves nothing that the next one does not
  if (last !== undefined && readRow(tx, last)?.cosigners.length === 0) tx.del(rowKey(last))
  tx.putJson(rowKey({ number, size }), { at: now, note } satisfies Row)
  tx.putJson(LATEST, { number, size } satisfies Place)
  return readCheckpoint(note)
}

/** The root of the first `size` entries, signed. @returns the note */
export function signedHead(view: View, nodeKey: KeyPair, size: number): string {
  return signCheckpoint(logNumber(view), { size, root: rootAt(view, size) }, nodeKey)
}

/** Root of the first `size` entries, 64 hex digits. @throws RECORD_DAMAGED where a node is missing */
export const rootAt = (view: View, size: number): string => toHex(rootOf(size, nodesOf(view)))

/**
 * Keep what a witness answered.
 * @param lines note lines; those of others than `witness` and those that do not verify are passed over
 * @param quorum cosignatures that settle a checkpoint
 * @returns how many witnesses have cosigned it now
 * @throws MALFORMED
 */
export function addCosignatures(
  tx: Transaction,
  { log, size }: Checkpoint,
  lines: string,
  witness: string,
  quorum: number,
): number {
  const place: Place = { number: log.number, size }
  const row = tx.getJson<Row>(rowKey(place))
  if (row === undefined) return 0
  const note = withCosignatures(row.note, parseNoteLines(lines), (did) => did === witness)
  tx.putJson(rowKey(place), { ...row, note } satisfies Row)
  const { cosignatures } = readCheckpoint(note)
  if (cosignatures.some(({ did }) => did === witness)) tx.putJson(key('cosigner', witness), place)
  if (cosignatures.length >= quorum) settle(tx, place, row.at)
  return cosignatures.length
}

/**
 * Write again after a backup was restored: as another log, begun where this one stands, linked to what was signed
 * before. The caller records what is returned.
 * @throws CONFLICT where nothing is held
 */
export async function resumeRecord(tx: Transaction): Promise<Resumed> {
  const held = heldOf(tx) ?? fail('CONFLICT', { reason: 'the record is not held' })
  const { log, size, root } = readCheckpoint(held.checkpoint)
  const number = Math.max(log.number, logNumber(tx)) + 1
  beginLog(tx, number)
  const after = { origin: originOf(log), size, root, witness: held.witness }
  const meanwhile = await takeMeanwhile(tx)
  return {
    log: number,
    from: headOf(tx).size,
    reason: held.reason,
    after,
    ...(meanwhile.length === 0 ? {} : { meanwhile }),
  }
}

/** What that witness cosigned last, as far as is known here: where the next consistency proof begins. */
export const cosignedBy = (view: View, witness: string): Place | undefined =>
  view.getJson<Place>(key('cosigner', witness))

/** What is known of checkpoints of this log now. */
export function witnessState(view: View): WitnessState {
  const number = logNumber(view)
  const known = (at: string) => {
    const place = view.getJson<Place>(at)
    return place?.number === number ? (readRow(view, place) ?? null) : null
  }
  return {
    log: number,
    size: headOf(view).size,
    latest: known(LATEST),
    settled: known(SETTLED),
    held: heldOf(view) ?? null,
  }
}

/**
 * Do the kept checkpoints of this log agree with the tree that is there?
 * @throws RECORD_DAMAGED `{seq, reason: 'checkpoint'}`
 */
export function checkCheckpoints(view: View): void {
  const { latest, settled, size } = witnessState(view)
  for (const known of [latest, settled]) {
    if (known === null) continue
    const isThere = known.size <= size && known.root === rootAt(view, known.size)
    if (!isThere) fail('RECORD_DAMAGED', { seq: known.size - 1, reason: 'checkpoint' })
  }
}

/** One settled checkpoint a day stays for good; those between go when the next is settled. */
function settle(tx: Transaction, place: Place, at: number): void {
  const before = tx.getJson<Place>(SETTLED)
  if (before?.number === place.number && before.size >= place.size) return
  const row = before === undefined ? undefined : tx.getJson<Row>(rowKey(before))
  if (before?.number === place.number && row !== undefined && dayOf(row.at) === dayOf(at)) tx.del(rowKey(before))
  tx.putJson(SETTLED, place)
}

function readRow(view: View, place: Place): KnownCheckpoint | undefined {
  const row = view.getJson<Row>(rowKey(place))
  if (row === undefined) return undefined
  const { size, root, cosignatures } = readCheckpoint(row.note)
  return { size, root, at: row.at, cosigners: cosignatures, note: row.note }
}

const rowKey = ({ number, size }: Place): string => key('checkpoint', number, size)
const dayOf = (at: number): number => Math.floor(at / DAY_MS)
