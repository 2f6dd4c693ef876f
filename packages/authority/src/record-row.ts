/**
 * How an entry of the record lies on the disk. Its leaf is the hash of three things one after another: the hash of the
 * entry before (32 bytes, zeros for the first), the commitment to its payload (32 bytes), and its words, a JSON array.
 * Its row holds the hashes of the subtrees that it completes, the leaf first, then commitment and words: so what is
 * hashed are the very bytes that are stored, and neither the tree nor the chain needs rows of its own.
 * A payload is 32 bytes of salt and its canonical JSON, and the commitment is the hash of just those bytes.
 * @clause L1.6
 */
import { canonicalize, fail, fromBase64Url, fromHex, fromUtf8, toBase64Url, toHex } from '@csb/core'
import type { ReadEntry } from '@csb/store'
import type { ReadGroup } from './read-list.ts'

/** What stays for ever. */
export type RecordHeader = {
  readonly actor: string | null
  readonly basis: string | null
  readonly code: string | null
  readonly door: string
  readonly label: string
  readonly lease: string | null
  readonly operation: string
  readonly outcome: 'done' | 'refused' | 'failed'
  /** `sha256:` of salt and payload */
  readonly payload: string
  /** leaf hash of the entry before, hex; null for the first */
  readonly prev: string | null
  /** how many things were read */
  readonly reads: number
  readonly run: string | null
  readonly seq: number
  /** ms since epoch, never less than the entry before */
  readonly ts: number
  readonly v: 1
}

/** What can be erased. */
export type RecordPayload = {
  readonly reads: readonly ReadEntry[]
  readonly effect: Readonly<Record<string, unknown>>
  readonly commit: string | null
}

/** The members of a payload that say something. */
export type StoredPayload = {
  readonly commit?: string
  readonly effect: RecordPayload['effect']
  readonly reads?: readonly ReadGroup[]
}

/** What an entry says of itself, without its place and its commitment. */
export type HeaderWords = Omit<RecordHeader, 'payload' | 'prev' | 'seq' | 'v'>

/** An entry as it is stored. */
export type HeaderRow = {
  /** of the subtrees that it completes, lowest first, 32 bytes each */
  readonly nodes: Uint8Array
  /** commitment and words: what follows the hash of the entry before in the bytes of the leaf */
  readonly said: Uint8Array
}

type Words = readonly [
  ts: number,
  operation: string,
  outcome: number,
  code: string | 0,
  actor: string | 0,
  door: string,
  run: string | 0,
  lease: Short,
  basis: Short,
  reads: number,
  label: string,
]
/** A digest by its 32 bytes, anything else as it is, nothing as 0. */
type Short = string | readonly [string] | 0

const OUTCOMES = ['done', 'refused', 'failed'] as const
const DIGEST = /^sha256:[0-9a-f]{64}$/
const DIGEST_PREFIX = 'sha256:'
const DID = 'did:key:'
const SALT_BYTES = 32
const HASH_BYTES = 32
/** Stands where the entry before the first would. */
const NOTHING_BEFORE = new Uint8Array(HASH_BYTES)

/**
 * The bytes whose hash is the leaf.
 * @param prev leaf hash of the entry before, 32 bytes; undefined for the first
 * @param commitment 32 bytes
 */
export function leafBytes(prev: Uint8Array | undefined, commitment: Uint8Array, words: HeaderWords): Uint8Array {
  const text = JSON.stringify(shortWords(words))
  const bytes = Buffer.allocUnsafe(2 * HASH_BYTES + Buffer.byteLength(text))
  bytes.set(prev ?? NOTHING_BEFORE)
  bytes.set(commitment, HASH_BYTES)
  bytes.write(text, 2 * HASH_BYTES)
  return bytes
}

/** The same of a header as it is shown. */
export const headerBytes = (header: RecordHeader): Uint8Array =>
  leafBytes(
    header.prev === null ? undefined : fromHex(header.prev),
    fromHex(header.payload.slice(DIGEST_PREFIX.length)) ?? NOTHING_BEFORE,
    header,
  )

/**
 * The row of an entry.
 * @param nodes hashes of the subtrees that it completes, lowest first
 * @param bytes of its leaf
 */
export function headerRow(nodes: readonly Uint8Array[], bytes: Uint8Array): Uint8Array {
  const start = nodes.length * HASH_BYTES
  const row = Buffer.allocUnsafe(start + bytes.byteLength - HASH_BYTES)
  nodes.forEach((node, level) => row.set(node, level * HASH_BYTES))
  row.set(bytes.subarray(HASH_BYTES), start)
  return row
}

/** @throws RECORD_DAMAGED `{seq, reason: 'header'}` where it is too short for its place */
export function splitRow(row: Uint8Array, seq: number): HeaderRow {
  const start = nodesIn(seq) * HASH_BYTES
  if (row.byteLength < start + HASH_BYTES) fail('RECORD_DAMAGED', { seq, reason: 'header' })
  return { nodes: row.subarray(0, start), said: row.subarray(start) }
}

/** The bytes of a leaf from the entry's row. @param prev as for {@link leafBytes} */
export function leafOfRow(prev: Uint8Array | undefined, said: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(HASH_BYTES + said.byteLength)
  bytes.set(prev ?? NOTHING_BEFORE)
  bytes.set(said, HASH_BYTES)
  return bytes
}

/** The commitment to the payload, 32 bytes. */
export const commitmentIn = ({ said }: Pick<HeaderRow, 'said'>): Uint8Array => said.subarray(0, HASH_BYTES)

/** Number of the entry whose row holds a node of the tree. */
export const holderOfNode = (level: number, index: number): number => (index + 1) * 2 ** level - 1

/** One node of those in a row. @returns undefined where the row is too short */
export function nodeIn(row: Uint8Array, level: number): Uint8Array | undefined {
  const node = row.subarray(level * HASH_BYTES, (level + 1) * HASH_BYTES)
  return node.byteLength === HASH_BYTES ? node : undefined
}

/**
 * The header from the bytes of its leaf.
 * @throws RECORD_DAMAGED `{seq, reason: 'header'}`
 */
export function readHeader(bytes: Uint8Array, seq: number): RecordHeader {
  const [ts, operation, outcome, code, actor, door, run, lease, basis, reads, label] = readWords(
    bytes.subarray(HASH_BYTES),
    seq,
  )
  const prev = bytes.subarray(0, HASH_BYTES)
  return {
    actor: actor === 0 ? null : longDid(actor),
    basis: long(basis),
    code: code === 0 ? null : code,
    door,
    label,
    lease: long(lease),
    operation,
    outcome: OUTCOMES[outcome] ?? 'failed',
    payload: `${DIGEST_PREFIX}${toHex(bytes.subarray(HASH_BYTES, 2 * HASH_BYTES))}`,
    prev: seq === 0 ? null : toHex(prev),
    reads,
    run: run === 0 ? null : run,
    seq,
    ts,
    v: 1,
  }
}

/**
 * When an entry was made, in ms since epoch, with all its words looked at: one value, one spelling, so that another
 * one is a change as well.
 * @throws RECORD_DAMAGED `{seq, reason: 'header'}`
 */
export const timeOf = ({ said }: Pick<HeaderRow, 'said'>, seq: number): number => readWords(said, seq)[0]

/** @param salt 32 random bytes: nobody can guess an erased payload from the header that stays */
export function payloadRow(
  salt: Uint8Array,
  { reads, effect, commit }: Omit<RecordPayload, 'reads'> & { readonly reads: readonly ReadGroup[] },
): Uint8Array {
  const stored: StoredPayload = {
    ...(commit === null ? {} : { commit }),
    effect,
    ...(reads.length === 0 ? {} : { reads }),
  }
  return storedRow(salt, stored)
}

/** The same of members as they were stored. */
export const storedRow = (salt: Uint8Array, stored: StoredPayload): Uint8Array => saltedRow(salt, canonicalize(stored))

/** @throws RECORD_DAMAGED `{seq, reason: 'payload'}` */
export function readStored(
  bytes: Uint8Array,
  seq: number,
): { readonly salt: Uint8Array; readonly stored: StoredPayload } {
  try {
    return {
      salt: bytes.subarray(0, SALT_BYTES),
      stored: JSON.parse(payloadText(bytes) ?? '') as StoredPayload,
    }
  } catch (error) {
    return fail('RECORD_DAMAGED', { seq, reason: 'payload' }, error)
  }
}

/** The text of a payload; undefined where it is none. */
export const payloadText = (bytes: Uint8Array): string | undefined => fromUtf8(bytes.subarray(SALT_BYTES))

/** A row with 32 random bytes before its text. */
export function saltedRow(salt: Uint8Array, text: string): Uint8Array {
  const row = Buffer.allocUnsafe(SALT_BYTES + Buffer.byteLength(text))
  row.set(salt)
  row.write(text, SALT_BYTES)
  return row
}

function shortWords(words: HeaderWords): Words {
  const { ts, operation, outcome, code, actor, door, run, lease, basis, reads, label } = words
  return [
    ts,
    operation,
    OUTCOMES.indexOf(outcome),
    code ?? 0,
    actor === null ? 0 : shortDid(actor),
    door,
    run ?? 0,
    short(lease),
    short(basis),
    reads,
    label,
  ]
}

function readWords(said: Uint8Array, seq: number): Words {
  try {
    const text = fromUtf8(said.subarray(HASH_BYTES)) ?? ''
    const words = JSON.parse(text) as Words
    const [, , outcome, , actor, , , lease, basis] = words
    const isOne = OUTCOMES[outcome] !== undefined && isOneDid(actor) && isOneDigest(lease) && isOneDigest(basis)
    if (isOne && JSON.stringify(words) === text) return words
  } catch (error) {
    return fail('RECORD_DAMAGED', { seq, reason: 'header' }, error)
  }
  return fail('RECORD_DAMAGED', { seq, reason: 'header' })
}

/** 1 for the leaf, and one for each 1 at the end of its number. */
function nodesIn(seq: number): number {
  let count = 1
  for (let at = seq; at % 2 === 1; at = (at - 1) / 2) count++
  return count
}

const shortDid = (actor: string): string =>
  actor.startsWith(DID) && actor[DID.length] !== ':' ? actor.slice(DID.length) : `:${actor}`
const longDid = (actor: string): string => (actor.startsWith(':') ? actor.slice(1) : `${DID}${actor}`)
const isOneDid = (actor: Words[4]): boolean => actor === 0 || shortDid(longDid(actor)) === actor

function short(text: string | null): Short {
  if (text === null) return 0
  return DIGEST.test(text) ? toBase64Url(Buffer.from(text.slice(DIGEST_PREFIX.length), 'hex')) : [text]
}

function long(value: Short): string | null {
  if (value === 0) return null
  if (typeof value !== 'string') return value[0]
  return `${DIGEST_PREFIX}${toHex(fromBase64Url(value) ?? fail('MALFORMED', { reason: 'digest' }))}`
}

const isOneDigest = (value: Short): boolean =>
  value === 0 || (typeof value === 'string' ? fromBase64Url(value)?.byteLength === HASH_BYTES : !DIGEST.test(value[0]))
