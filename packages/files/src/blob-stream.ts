/** Large blobs read and written piece by piece: never the whole of one in memory. */
import { createHash } from 'node:crypto'
import { Readable, pipeline } from 'node:stream'
import { createDeflate, createInflate } from 'node:zlib'
import { LIMITS, fail } from '@csb/core'
import { key, type Store, type View } from '@csb/store'
import { CODES } from './entry.ts'
import { hashOf, hashOfOid, isErased, readBlob, writeBlob, type HashName } from './objects.ts'
import { pieceAt, piecesOf, putPiece, putPiecesEntry, storedAt } from './stored.ts'

/** Rows that are written in one batch. */
const BATCH_PIECES = 16

export type BlobSource = {
  /** length; what comes must have it */
  readonly bytes: number
  /** Begin from the start; called twice: the id has to be known before anything is written. */
  readonly open: () => AsyncIterable<Uint8Array>
}

/**
 * The bytes of a blob of any size, in order. It is hashed on the way: where the last step does not throw, they were right.
 * @throws NOT_FOUND, FORGOTTEN, OBJECT_DAMAGED
 */
export async function* streamBlob(view: View, home: string, oid: string): AsyncGenerator<Uint8Array> {
  const entry = storedAt(view, home, oid)
  if (entry?.code !== CODES.pieces) {
    yield readBlob(view, home, oid)
    return
  }
  if (isErased(view, home, oid)) fail('FORGOTTEN', { home, oid })
  const hash = createHash(hashOfOid(oid)).update(`blob ${entry.size}\0`)
  const inflate = createInflate()
  pipeline(Readable.from(rowsOf(view, home, oid, piecesOf(entry, oid).count)), inflate, () => undefined)
  let left = entry.size
  try {
    for await (const chunk of inflate as AsyncIterable<Buffer>) {
      left -= chunk.byteLength
      if (left < 0) break
      hash.update(chunk)
      yield chunk
    }
  } catch (error) {
    fail('OBJECT_DAMAGED', { home, oid, reason: 'not deflated' }, error)
  }
  if (left !== 0 || hash.digest('hex') !== oid) fail('OBJECT_DAMAGED', { home, oid })
}

/**
 * Store a blob of any size up to 1 GiB. It is there when this resolves, and not at all before.
 * @returns object id, hex
 * @throws TOO_LARGE, FORGOTTEN, NOT_FOUND without the home; CONFLICT where the source is not the same both times
 */
export async function writeBlobStream(store: Store, home: string, source: BlobSource): Promise<string> {
  const { bytes, open } = source
  if (bytes > LIMITS.objectBytes) fail('TOO_LARGE', { maxBytes: LIMITS.objectBytes })
  const name = hashOf(store.view(), home)
  if (bytes <= LIMITS.pieceBlobBytes) {
    const whole = Buffer.concat(await collect(open(), bytes))
    if (whole.byteLength !== bytes) fail('CONFLICT', { reason: 'the source has another length', bytes })
    return store.transact((tx) => writeBlob(tx, home, whole))
  }
  const oid = await hashed(name, source)
  if (isErased(store.view(), home, oid)) fail('FORGOTTEN', { home, oid })
  if (store.view().has(key('object', home, oid))) return oid
  const deflate = createDeflate()
  let seen: string | undefined
  const feed = async function* () {
    const hash = createHash(name).update(`blob ${bytes}\0`)
    for await (const chunk of open()) {
      hash.update(chunk)
      yield chunk
    }
    seen = hash.digest('hex')
  }
  pipeline(Readable.from(feed()), deflate, () => undefined)
  const pieces = await writePieces(store, home, oid, deflate as AsyncIterable<Uint8Array>)
  if (seen !== oid) fail('CONFLICT', { reason: 'the source changed', oid })
  await store.transact((tx) => {
    if (isErased(tx, home, oid)) fail('FORGOTTEN', { home, oid })
    return putPiecesEntry(tx, home, oid, bytes, pieces)
  })
  return oid
}

/**
 * Write a deflated stream as the rows of a blob, in batches. Rows without their list are nothing anybody can read.
 * @param oid known to be the id of these bytes
 */
export async function writePieces(
  store: Store,
  home: string,
  oid: string,
  stream: AsyncIterable<Uint8Array>,
): Promise<{ count: number; bytes: number }> {
  let rows: Uint8Array[] = []
  let count = 0
  let bytes = 0
  const flush = async () => {
    const begin = count - rows.length
    const batch = rows
    rows = []
    await store.transact((tx) => batch.forEach((row, at) => putPiece(tx, home, oid, begin + at, row)))
  }
  for await (const row of cut(stream, LIMITS.pieceBytes)) {
    rows.push(row)
    count++
    bytes += row.byteLength
    if (rows.length >= BATCH_PIECES) await flush()
  }
  await flush()
  return { count, bytes }
}

/** The same bytes in rows of one length, the last one shorter. */
async function* cut(stream: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let heldBytes = 0
  for await (const chunk of stream) {
    if (heldBytes === 0 && chunk.byteLength === length) {
      yield chunk
      continue
    }
    held.push(chunk)
    heldBytes += chunk.byteLength
    if (heldBytes < length) continue
    const all = Buffer.concat(held)
    let at = 0
    for (; all.byteLength - at >= length; at += length) yield Buffer.from(all.subarray(at, at + length))
    held = [all.subarray(at)]
    heldBytes = all.byteLength - at
  }
  if (heldBytes > 0) yield Buffer.concat(held)
}

/** @throws CONFLICT where more or less comes than was said */
async function hashed(name: HashName, { bytes, open }: BlobSource): Promise<string> {
  const hash = createHash(name).update(`blob ${bytes}\0`)
  let total = 0
  for await (const chunk of open()) {
    total += chunk.byteLength
    hash.update(chunk)
  }
  return total === bytes ? hash.digest('hex') : fail('CONFLICT', { reason: 'the source has another length', bytes })
}

async function collect(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  let total = 0
  for await (const chunk of stream) {
    total += chunk.byteLength
    if (total > maxBytes) fail('CONFLICT', { reason: 'the source has another length', bytes: maxBytes })
    chunks.push(chunk)
  }
  return chunks
}

function* rowsOf(view: View, home: string, oid: string, count: number): Generator<Uint8Array> {
  for (let at = 0; at < count; at++) yield pieceAt(view, home, oid, at)
}
