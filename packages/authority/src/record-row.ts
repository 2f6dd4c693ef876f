/**
 * How an entry of the record lies on the disk. A header is hashed and shown as canonical JSON; stored is only what does
 * not follow from its place: no names of members, no number, no hash of the entry before. A payload is 32 bytes of salt
 * and its canonical JSON, and the commitment in the header is the digest of just those bytes.
 * @clause L1.6
 */
import { canonicalize, fail, fromBase64Url, fromUtf8, toBase64Url, toHex, utf8 } from '@csb/core'
import type { ReadEntry } from '@csb/store'

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
  readonly reads?: readonly ReadEntry[]
}

type Row = readonly [
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
  payload: Short,
]
/** A digest by its 32 bytes, anything else as it is, nothing as 0. */
type Short = string | readonly [string] | 0

const OUTCOMES = ['done', 'refused', 'failed'] as const
const DIGEST = /^sha256:[0-9a-f]{64}$/
const DID = 'did:key:'
const SALT_BYTES = 32

/** The bytes whose hash is the leaf. */
export const headerText = (header: RecordHeader): string => canonicalize(header)

/** The row of a header. */
export function headerRow(header: RecordHeader): Uint8Array {
  const { ts, operation, outcome, code, actor, door, run, lease, basis, reads, label, payload } = header
  const row: Row = [
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
    short(payload),
  ]
  return utf8(JSON.stringify(row))
}

/**
 * Read a row back.
 * @param prev leaf hash of the entry before, hex; null for the first
 * @throws RECORD_DAMAGED `{seq, reason: 'header'}`
 */
export function readHeaderRow(bytes: Uint8Array, seq: number, prev: string | null): RecordHeader {
  try {
    const row = JSON.parse(fromUtf8(bytes) ?? '') as Row
    const [ts, operation, outcome, code, actor, door, run, lease, basis, reads, label, payload] = row
    return {
      actor: actor === 0 ? null : longDid(actor),
      basis: long(basis),
      code: code === 0 ? null : code,
      door,
      label,
      lease: long(lease),
      operation,
      outcome: OUTCOMES[outcome] ?? fail('RECORD_DAMAGED', { seq, reason: 'header' }),
      payload: long(payload) ?? '',
      prev,
      reads,
      run: run === 0 ? null : run,
      seq,
      ts,
      v: 1,
    }
  } catch (error) {
    return fail('RECORD_DAMAGED', { seq, reason: 'header' }, error)
  }
}

/** @param salt 32 random bytes: nobody can guess an erased payload from the header that stays */
export function payloadRow(salt: Uint8Array, { reads, effect, commit }: RecordPayload): Uint8Array {
  const stored: StoredPayload = {
    ...(commit === null ? {} : { commit }),
    effect,
    ...(reads.length === 0 ? {} : { reads }),
  }
  return storedRow(salt, stored)
}

/** The same of members as they were stored. */
export const storedRow = (salt: Uint8Array, stored: StoredPayload): Uint8Array =>
  Buffer.concat([salt, utf8(canonicalize(stored))])

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

const shortDid = (actor: string): string => (actor.startsWith(DID) ? actor.slice(DID.length) : `:${actor}`)
const longDid = (actor: string): string => (actor.startsWith(':') ? actor.slice(1) : `${DID}${actor}`)

function short(text: string | null): Short {
  if (text === null) return 0
  return DIGEST.test(text) ? toBase64Url(Buffer.from(text.slice('sha256:'.length), 'hex')) : [text]
}

function long(value: Short): string | null {
  if (value === 0) return null
  if (typeof value !== 'string') return value[0]
  return `sha256:${toHex(fromBase64Url(value) ?? fail('MALFORMED', { reason: 'digest' }))}`
}
