/**
 * First pass over a pack: where each object begins and ends, what it is, and the id of each that stands by itself.
 * What is inflated is hashed and dropped; a large one is never held.
 */
import { createHash } from 'node:crypto'
import { Readable, pipeline } from 'node:stream'
import { createInflate, inflateSync } from 'node:zlib'
import { LIMITS, fail, isNodeError } from '@csb/core'
import { CODES, HEADER_BYTES, decodeHeader, decodeOffset, kindOfCode, type ObjectKind } from './entry.ts'
import { oidOf, type HashName } from './objects.ts'
import { createOidList, type OidList } from './oid-list.ts'
import type { PackSpool } from './pack-spool.ts'
import { roomFor } from './stored.ts'

/** What is known of the objects of a pack, by their place in it. */
export type PackIndex = {
  readonly spool: PackSpool
  readonly hash: HashName
  readonly count: number
  /** where the entry begins, its deflated stream, and the next entry */
  readonly start: Float64Array
  readonly stream: Float64Array
  readonly end: Float64Array
  /** length of what is deflated: of a delta, its own */
  readonly size: Float64Array
  /** as the pack has it: a kind, or a sort of delta */
  readonly code: Uint8Array
  /** kind of the object, 0 while it is not known */
  readonly kind: Uint8Array
  /** place of the base in the pack; {@link WHOLE}, or {@link OUTSIDE} */
  readonly base: Int32Array
  /** number of its id in `oids`, -1 while it is not known */
  readonly oid: Int32Array
  readonly oids: OidList
  /** the place of the first object with that number */
  readonly placeOf: Int32Array
  /** deltas that name their base by id */
  readonly byBase: Map<string, number[]>
  /** bytes that were made from the pack so far */
  made: number
}

export const WHOLE = -1
export const OUTSIDE = -2

const HEAD_BYTES = 12
const WINDOW_BYTES = 1024 * 1024
/** What is announced larger than this is inflated as a stream. */
const HELD_BYTES = 256 * 1024
const STREAM_STEP_BYTES = 64 * 1024

/**
 * @throws MALFORMED; TOO_LARGE with a hint where only the way it was packed is at fault
 */
export async function indexPack(spool: PackSpool, hash: HashName): Promise<PackIndex> {
  const index = emptyIndex(spool, hash)
  const oidBytes = hash === 'sha1' ? 20 : 32
  let window: Buffer = Buffer.alloc(0)
  let windowAt = 0
  /** the bytes from `at` on, at least `length` of them where the pack has so many */
  const from = async (at: number, length: number): Promise<Buffer> => {
    const needed = Math.min(length, spool.end - at)
    if (at < windowAt || at + needed > windowAt + window.byteLength) {
      window = await spool.read(at, Math.min(Math.max(WINDOW_BYTES, needed), spool.end - at))
      windowAt = at
    }
    return window.subarray(at - windowAt)
  }
  let at = HEAD_BYTES
  for (let place = 0; place < index.count; place++) {
    if (at >= spool.end) fail('MALFORMED', { reason: 'pack cut short' })
    index.start[place] = at
    const head = await from(at, 2 * HEADER_BYTES + oidBytes)
    const { code, size, start } = decodeHeader(head)
    const stream = readBase(index, place, code, head, start)
    index.code[place] = code
    index.size[place] = size
    index.stream[place] = at + stream
    checkSize(code, size)
    countMade(index, size)
    at += stream
    const most = size + (size >> 8) + 1024
    at += size > HELD_BYTES ? await streamed(index, place, at) : held(index, place, await from(at, most))
    index.end[place] = at
  }
  if (at !== spool.end) fail('MALFORMED', { reason: 'bytes behind the last object' })
  return index
}

/** Note the id of an object. */
export function identify(index: PackIndex, place: number, kind: ObjectKind, oid: string): void {
  const number = index.oids.add(Buffer.from(oid, 'hex'))
  index.kind[place] = CODES[kind]
  index.oid[place] = number
  if ((index.placeOf[number] ?? -1) < 0) index.placeOf[number] = place
}

/** @throws TOO_LARGE where a pack makes more than all packs may */
export function countMade(index: PackIndex, bytes: number): void {
  index.made += bytes
  if (index.made > LIMITS.packInflatedBytes) fail('TOO_LARGE', { maxInflatedBytes: LIMITS.packInflatedBytes })
}

/** @throws TOO_LARGE, MALFORMED where there is no such kind */
export function checkSize(code: number, bytes: number): void {
  const isDelta = code === CODES.offsetDelta || code === CODES.delta
  if (!isDelta && kindOfCode(code) === undefined) fail('MALFORMED', { reason: 'kind of a pack entry', code })
  const maxBytes = isDelta ? LIMITS.deltaBytes : maxOf(code)
  if (bytes > maxBytes) fail('TOO_LARGE', { maxBytes, bytes, kind: kindOfCode(code) ?? 'delta' })
}

/** What is deflated in the entry at a place. For objects that may be held. @throws MALFORMED */
export function inflateAt(index: PackIndex, place: number): Buffer {
  const [from, to, size] = [index.stream[place] ?? 0, index.end[place] ?? 0, index.size[place] ?? 0]
  const options = { maxOutputLength: Math.max(size, 1), chunkSize: roomFor(size) }
  return inflateSync(index.spool.readNow(from, to - from), options)
}

function maxOf(code: number): number {
  if (code === CODES.blob) return LIMITS.objectBytes
  return code === CODES.tree ? LIMITS.treeBytes : LIMITS.commitBytes
}

function emptyIndex(spool: PackSpool, hash: HashName): PackIndex {
  const { count } = spool
  const floats = () => new Float64Array(count)
  return {
    spool,
    hash,
    count,
    start: floats(),
    stream: floats(),
    end: floats(),
    size: floats(),
    code: new Uint8Array(count),
    kind: new Uint8Array(count),
    base: new Int32Array(count).fill(WHOLE),
    oid: new Int32Array(count).fill(-1),
    oids: createOidList(hash === 'sha1' ? 20 : 32),
    placeOf: new Int32Array(count).fill(-1),
    byBase: new Map(),
    made: 0,
  }
}

/** Read what a delta says of its base. @returns where the deflated stream begins, from the start of the entry */
function readBase(index: PackIndex, place: number, code: number, head: Buffer, at: number): number {
  if (code === CODES.offsetDelta) {
    const { value, end } = decodeOffset(head, at)
    index.base[place] = placeAt(index, place, (index.start[place] ?? 0) - value)
    return end
  }
  if (code !== CODES.delta) return at
  const end = at + (index.hash === 'sha1' ? 20 : 32)
  if (end > head.byteLength) fail('MALFORMED', { reason: 'base of a delta' })
  const base = head.toString('hex', at, end)
  const others = index.byBase.get(base)
  if (others === undefined) index.byBase.set(base, [place])
  else others.push(place)
  index.base[place] = OUTSIDE
  return end
}

/** The object that begins there, by halving. @throws MALFORMED */
function placeAt({ start }: PackIndex, below: number, at: number): number {
  let [low, high] = [0, below - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    const found = start[middle] ?? 0
    if (found === at) return middle
    if (found < at) low = middle + 1
    else high = middle - 1
  }
  return fail('MALFORMED', { reason: 'base of a delta' })
}

/** @returns length of the deflated stream */
function held(index: PackIndex, place: number, bytes: Buffer): number {
  const size = index.size[place] ?? 0
  try {
    const { buffer, engine } = inflateSync(bytes, {
      info: true,
      maxOutputLength: Math.max(size, 1),
      chunkSize: roomFor(size),
    }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } }
    if (buffer.byteLength !== size) fail('MALFORMED', { reason: 'size of a pack entry' })
    const kind = kindOfCode(index.code[place] ?? 0)
    if (kind !== undefined) identify(index, place, kind, oidOf(index.hash, kind, buffer))
    return engine.bytesWritten
  } catch (error) {
    return fail('MALFORMED', { reason: 'deflated stream of a pack entry' }, error)
  }
}

async function streamed(index: PackIndex, place: number, at: number): Promise<number> {
  const { spool } = index
  const size = index.size[place] ?? 0
  const kind = kindOfCode(index.code[place] ?? 0)
  const hash = createHash(index.hash).update(`${kind} ${size}\0`)
  const inflate = createInflate({ chunkSize: STREAM_STEP_BYTES })
  pipeline(Readable.from(bytesOf(spool, at)), inflate, () => undefined)
  let total = 0
  try {
    for await (const chunk of inflate as AsyncIterable<Buffer>) {
      total += chunk.byteLength
      if (total > size) break
      hash.update(chunk)
    }
  } catch (error) {
    if (isNodeError(error)) throw error
    fail('MALFORMED', { reason: 'deflated stream of a pack entry' }, error)
  }
  if (total !== size) fail('MALFORMED', { reason: 'size of a pack entry' })
  if (kind !== undefined) identify(index, place, kind, hash.digest('hex'))
  return inflate.bytesWritten
}

async function* bytesOf(spool: PackSpool, from: number): AsyncGenerator<Buffer> {
  for (let at = from; at < spool.end; at += STREAM_STEP_BYTES)
    yield await spool.read(at, Math.min(STREAM_STEP_BYTES, spool.end - at))
}
