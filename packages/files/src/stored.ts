/**
 * The rows of an object: the entry under its id, the pieces of a large blob, and for a delta the line that leads from
 * its base back to it, so that a base never goes while a delta needs it.
 *
 * Knows nothing of what may be read or written; `objects.ts` does.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import { LIMITS, fail } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { applyDelta, deltaSizes } from './delta.ts'
import { CODES, decodeHeader, encodeHeader, kindOfCode, type EntryHeader, type ObjectKind } from './entry.ts'

/** Id, kind and length of a stored object, and where its bytes are. */
export type StoredEntry = EntryHeader & {
  readonly value: Uint8Array
  /** id of the base, of a delta */
  readonly base: string | undefined
}

export type Body = { readonly kind: ObjectKind; readonly body: Buffer }

/** Stream of a blob in pieces: how many rows, how many bytes in all of them. */
export type Pieces = { readonly count: number; readonly bytes: number }

const PIECES_BYTES = 12
/** zlib takes no buffer that is smaller. */
const LEAST_CHUNK_BYTES = 64

/** Undefined where there is none. @throws OBJECT_DAMAGED */
export function storedAt(view: View, home: string, oid: string): StoredEntry | undefined {
  const value = view.get(key('object', home, oid))
  return value === undefined ? undefined : orDamaged(oid, () => parseEntry(value, oid.length / 2))
}

/** An entry as it lies in the store. @throws MALFORMED */
export function parseEntry(value: Uint8Array, oidBytes: number): StoredEntry {
  const header = decodeHeader(value)
  if (header.code !== CODES.delta) return { ...header, value, base: undefined }
  const start = header.start + oidBytes
  if (start > value.byteLength) fail('MALFORMED', { reason: 'base of a delta' })
  return { ...header, start, value, base: bufferOf(value).toString('hex', header.start, start) }
}

/**
 * The whole body of an object, through the deltas it stands on; not hashed.
 * @throws OBJECT_DAMAGED, NOT_FOUND where a base is missing, TOO_LARGE
 */
export function bodyOf(view: View, home: string, oid: string): Body | undefined {
  const deltas: StoredEntry[] = []
  let at = oid
  let entry = storedAt(view, home, at)
  for (; entry?.base !== undefined; entry = storedAt(view, home, at)) {
    if (deltas.length > LIMITS.packChain) return fail('OBJECT_DAMAGED', { home, oid, reason: 'chain of deltas' })
    deltas.push(entry)
    at = entry.base
  }
  if (entry === undefined) return deltas.length === 0 ? undefined : fail('OBJECT_DAMAGED', { home, oid, missing: at })
  const { kind, body } = wholeBody(view, home, at, entry)
  const made = deltas.reduceRight(
    (base, delta) => orDamaged(oid, () => applyDelta(base, inflated(delta), LIMITS.blobBytes)),
    body,
  )
  return { kind, body: made }
}

/** Kind and length without the body where that can be had. @throws OBJECT_DAMAGED */
export function shapeOf(view: View, home: string, oid: string): { kind: ObjectKind; bytes: number } | undefined {
  const entry = storedAt(view, home, oid)
  const kind = entry === undefined ? undefined : kindAt(view, home, oid)
  if (entry === undefined || kind === undefined) return undefined
  if (entry.base !== undefined) return { kind, bytes: orDamaged(oid, () => deltaSizes(inflated(entry)).after) }
  return { kind, bytes: entry.code === CODES.plain ? entry.size - 1 : entry.size }
}

/** Kind alone, from headers. @throws OBJECT_DAMAGED */
export function kindAt(view: View, home: string, oid: string): ObjectKind | undefined {
  let entry = storedAt(view, home, oid)
  if (entry === undefined) return undefined
  for (let depth = 0; entry?.base !== undefined && depth <= LIMITS.packChain; depth++) {
    entry = storedAt(view, home, entry.base)
  }
  if (entry?.code === CODES.plain) return plainKind(entry)
  const kind = entry?.code === CODES.pieces ? 'blob' : kindOfCode(entry?.code ?? -1)
  return kind ?? fail('OBJECT_DAMAGED', { home, oid, reason: 'type' })
}

/** How many deltas an object stands on. */
export function depthOf(view: View, home: string, oid: string): number {
  let depth = 0
  for (let at = storedAt(view, home, oid); at?.base !== undefined; at = storedAt(view, home, at.base)) depth++
  return depth
}

/** A body as an entry that is not deflated: for readers that keep it in memory. */
export function plainEntry({ kind, body }: Body): Uint8Array {
  return Buffer.concat([encodeHeader(CODES.plain, body.byteLength + 1), Buffer.from([CODES[kind]]), body])
}

/** A body as an entry of its own. */
export const wholeEntry = (kind: ObjectKind, body: Uint8Array): Uint8Array =>
  Buffer.concat([encodeHeader(CODES[kind], body.byteLength), deflateSync(body)])

/** Stage an object; where it is here already nothing changes. */
export function putWhole(tx: Transaction, home: string, oid: string, kind: ObjectKind, body: Uint8Array): void {
  if (tx.has(key('object', home, oid))) return
  if (kind === 'blob' && body.byteLength > LIMITS.pieceBlobBytes)
    putPieces(tx, home, oid, body.byteLength, deflateSync(body))
  else tx.put(key('object', home, oid), wholeEntry(kind, body))
}

/** Stage an entry as it came. A delta's base must be here or be staged. */
export function putEntry(tx: Transaction, home: string, oid: string, value: Uint8Array): void {
  if (tx.has(key('object', home, oid))) return
  const { base } = parseEntry(value, oid.length / 2)
  if (base !== undefined) {
    if (!tx.has(key('object', home, base))) fail('NOT_FOUND', { home, oid: base })
    tx.put(key('deltaChild', home, base, oid), new Uint8Array())
  }
  tx.put(key('object', home, oid), value)
}

/** Stage a blob whose deflated stream is cut into rows that were staged before: see {@link putPiece}. @throws CONFLICT where a row is missing */
export async function putPiecesEntry(
  tx: Transaction,
  home: string,
  oid: string,
  size: number,
  pieces: Pieces,
): Promise<void> {
  // rows without their list are garbage: a collection may have taken one since it was written
  const rows = Array.from({ length: pieces.count }, (_, at) => key('piece', home, oid, at))
  const [absent] = await tx.missing(rows)
  if (absent !== undefined) fail('CONFLICT', { home, oid, reason: 'piece missing', piece: rows.indexOf(absent) })
  putList(tx, home, oid, size, pieces)
}

function putList(tx: Transaction, home: string, oid: string, size: number, { count, bytes }: Pieces): void {
  const list = Buffer.alloc(PIECES_BYTES)
  list.writeUInt32BE(count, 0)
  list.writeBigUInt64BE(BigInt(bytes), 4)
  tx.put(key('object', home, oid), Buffer.concat([encodeHeader(CODES.pieces, size), list]))
}

export const putPiece = (tx: Transaction, home: string, oid: string, at: number, piece: Uint8Array): void =>
  tx.put(key('piece', home, oid, at), piece)

/** @throws OBJECT_DAMAGED */
export function piecesOf({ value, start }: StoredEntry, oid: string): Pieces {
  if (value.byteLength !== start + PIECES_BYTES) fail('OBJECT_DAMAGED', { oid, reason: 'list of pieces' })
  const list = bufferOf(value)
  return { count: list.readUInt32BE(start), bytes: Number(list.readBigUInt64BE(start + 4)) }
}

/** One row of a blob in pieces. @throws OBJECT_DAMAGED where it is missing */
export const pieceAt = (view: View, home: string, oid: string, at: number): Uint8Array =>
  view.get(key('piece', home, oid, at)) ?? fail('OBJECT_DAMAGED', { home, oid, reason: 'piece missing', piece: at })

/** The full keys of all rows of an object. */
export function keysOf(view: View, home: string, oid: string): string[] {
  const entry = storedAt(view, home, oid)
  const own = [key('object', home, oid)]
  if (entry?.base !== undefined) return [...own, key('deltaChild', home, entry.base, oid)]
  if (entry?.code !== CODES.pieces) return own
  const { count } = piecesOf(entry, oid)
  return [...own, ...Array.from({ length: count }, (_, at) => key('piece', home, oid, at))]
}

/**
 * Make every object that stands on this one as a delta stand by itself.
 * @param except children that go along with it
 * @throws OBJECT_DAMAGED
 * @clause L3.4
 */
export async function freeChildren(
  tx: Transaction,
  home: string,
  oid: string,
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  const children: string[] = []
  for await (const [row] of tx.range({ prefix: prefix('deltaChild', home, oid) }))
    children.push(tail(row, 'deltaChild', home, oid))
  for (const child of children) {
    if (except.has(child)) continue
    tx.del(key('deltaChild', home, oid, child))
    if (storedAt(tx, home, child)?.base !== oid) continue
    const whole = bodyOf(tx, home, child)
    if (whole === undefined) continue
    tx.del(key('object', home, child))
    putWhole(tx, home, child, whole.kind, whole.body)
  }
}

/** Stage the end of an object with all its rows; what stood on it stands by itself from then on. @throws OBJECT_DAMAGED */
export async function dropObject(tx: Transaction, home: string, oid: string): Promise<void> {
  await freeChildren(tx, home, oid)
  for (const row of keysOf(tx, home, oid)) tx.del(row)
}

/** The body of an entry that stands by itself. @throws OBJECT_DAMAGED, TOO_LARGE */
export const wholeIn = (view: View, home: string, oid: string, value: Uint8Array): Body =>
  wholeBody(
    view,
    home,
    oid,
    orDamaged(oid, () => parseEntry(value, oid.length / 2)),
  )

/** What the delta in an entry makes of its base. @throws OBJECT_DAMAGED */
export const deltaApplied = (base: Uint8Array, value: Uint8Array, oid: string): Buffer =>
  orDamaged(oid, () => applyDelta(base, inflated(parseEntry(value, oid.length / 2)), LIMITS.blobBytes))

/** Length of the one buffer into which so many bytes are inflated: where it is full to the end zlib takes a second one. */
export const roomFor = (bytes: number): number => Math.max(bytes + 1, LEAST_CHUNK_BYTES)

/** What is deflated in an entry. @throws MALFORMED */
export function inflated({ value, start, size }: StoredEntry): Buffer {
  const body = inflateSync(value.subarray(start), {
    maxOutputLength: Math.max(size, 1),
    chunkSize: roomFor(size),
  })
  return body.byteLength === size ? body : fail('MALFORMED', { reason: 'length of what is deflated' })
}

/** The whole deflated stream of a blob in pieces. */
function wholeBody(view: View, home: string, oid: string, entry: StoredEntry): Body {
  if (entry.code === CODES.plain)
    return { kind: plainKind(entry), body: bufferOf(entry.value.subarray(entry.start + 1)) }
  if (entry.size > LIMITS.blobBytes) fail('TOO_LARGE', { oid, maxBytes: LIMITS.blobBytes, bytes: entry.size })
  if (entry.code === CODES.pieces) {
    const { count } = piecesOf(entry, oid)
    const stream = Buffer.concat(Array.from({ length: count }, (_, at) => pieceAt(view, home, oid, at)))
    return { kind: 'blob', body: orDamaged(oid, () => inflated({ ...entry, value: stream, start: 0 })) }
  }
  const kind = kindOfCode(entry.code) ?? fail('OBJECT_DAMAGED', { oid, reason: 'type' })
  return { kind, body: orDamaged(oid, () => inflated(entry)) }
}

function putPieces(tx: Transaction, home: string, oid: string, size: number, stream: Uint8Array): void {
  const count = Math.ceil(stream.byteLength / LIMITS.pieceBytes)
  for (let at = 0; at < count; at++) {
    const begin = at * LIMITS.pieceBytes
    putPiece(tx, home, oid, at, stream.subarray(begin, begin + LIMITS.pieceBytes))
  }
  putList(tx, home, oid, size, { count, bytes: stream.byteLength })
}

const plainKind = ({ value, start }: StoredEntry): ObjectKind => kindOfCode(value[start] ?? 0) ?? 'blob'

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** What can not be read was stored by something that is not this code, or changed since. */
function orDamaged<T>(oid: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    return fail('OBJECT_DAMAGED', { oid, reason: 'can not be read' }, error)
  }
}
