/** Views: the database, and above it what is staged but not durable yet, in layers. */
import type { Level } from 'level'
import { fail, fromUtf8 } from '@csb/core'
import { createReadList, type RangeOptions, type View } from './view.ts'

/** LevelDB on disk; compactRange is what the erase routine needs beyond the common interface. */
export type Db = Level<string, Uint8Array> & { compactRange(start: string, end: string): Promise<void> }

/** What is put, by key; null is taken away. */
export type Staged = Map<string, Uint8Array | null>

/** One trip to the database brings this much of a range. */
const PAGE_BYTES = 256 * 1024
const PAGE_ROWS = 4096
/** Most ranges are left after a few rows. */
const FIRST_ROWS = 16

/**
 * @param read one value through all layers
 * @param layers those above the database, as they are when a range begins
 */
export function createView(
  read: (k: string) => Uint8Array | undefined,
  db: Db,
  layers: () => readonly Staged[] = () => [],
): View {
  let list: ReturnType<typeof createReadList> | undefined
  return {
    get: read,
    getJson: <T>(k: string): T | undefined => {
      const value = read(k)
      if (value === undefined) return undefined
      try {
        return JSON.parse(fromUtf8(value) ?? '') as T
      } catch (error) {
        return fail('OBJECT_DAMAGED', { key: k }, error)
      }
    },
    has: (k) => read(k) !== undefined,
    missing: (keys) => missingOf(db, layers(), keys),
    range: (options) => rangeOf(read, db, layers, options),
    noteRead: (entry) => (list ??= createReadList()).noteRead(entry),
    get reads() {
      return list?.reads ?? []
    },
  }
}

/** @param layers the own one first, then the others, oldest first */
async function missingOf(db: Db, layers: readonly Staged[], keys: readonly string[]): Promise<readonly string[]> {
  const [own, ...others] = layers
  const above = own === undefined ? [] : [own, ...others.toReversed()]
  const stagedAt = (k: string) => above.find((layer) => layer.has(k))?.get(k)
  const onDisk = keys.filter((k) => stagedAt(k) === undefined)
  const isThere = await db.hasMany([...onDisk])
  const absent = new Set(onDisk.filter((_, at) => isThere[at] !== true))
  return keys.filter((k) => absent.has(k) || stagedAt(k) === null)
}

/** Merge what is on disk with what is staged above it, in key order. */
async function* rangeOf(
  read: (k: string) => Uint8Array | undefined,
  db: Db,
  layers: () => readonly Staged[],
  { prefix, after, limit = Number.POSITIVE_INFINITY, reverse = false }: RangeOptions,
): AsyncGenerator<readonly [string, Uint8Array]> {
  const end = `${prefix}\u{10ffff}`
  const precedes = (a: string, b: string) => (reverse ? compareKeys(b, a) : compareKeys(a, b)) < 0
  const inRange = (k: string) => k.startsWith(prefix) && (after === undefined || precedes(after, k))
  const staged = [...new Set(layers().flatMap((layer) => [...layer.keys()].filter(inRange)))].sort(compareKeys)
  if (reverse) staged.reverse()
  const begin = after === undefined ? { gte: prefix } : { gt: after }
  const bounds = reverse ? { gte: prefix, lt: after ?? end } : { ...begin, lt: end }
  let left = limit
  let next = 0
  for await (const [k, v] of rowsOf(db, { ...bounds, reverse }, limit + staged.length)) {
    for (let at = staged[next]; at !== undefined && precedes(at, k); at = staged[++next]) {
      const value = read(at)
      if (value === undefined) continue
      if (left-- <= 0) return
      yield [at, value]
    }
    const isStaged = staged[next] === k
    if (isStaged) next++
    const value = isStaged ? read(k) : v
    if (value === undefined) continue
    if (left-- <= 0) return
    yield [k, value]
  }
  for (const at of staged.slice(next)) {
    const value = read(at)
    if (value === undefined) continue
    if (left-- <= 0) return
    yield [at, value]
  }
}

type Rows = readonly [string, Uint8Array][]
type Bounds = {
  readonly gte?: string
  readonly gt?: string
  readonly lt: string
  readonly reverse: boolean
}

/** Rows of the database as they are when this begins; fetched in few trips, of which the first is small. */
async function* rowsOf(db: Db, bounds: Bounds, most: number): AsyncGenerator<readonly [string, Uint8Array]> {
  const iterator = db.iterator({ ...bounds, highWaterMarkBytes: PAGE_BYTES })
  let coming: Promise<Rows> | undefined
  try {
    let rows = Math.min(most, FIRST_ROWS)
    for (let left = most; left > 0; rows = PAGE_ROWS) {
      const page = await (coming ?? iterator.nextv(Math.min(rows, left)))
      coming = undefined
      if (page.length === 0) return
      left -= page.length
      // who went on behind the first page most often wants it all: the next comes while this one is looked at
      if (rows === PAGE_ROWS && left > 0) coming = iterator.nextv(Math.min(rows, left))
      coming?.catch(() => undefined)
      yield* page
    }
  } finally {
    await coming?.catch(() => undefined)
    await iterator.close()
  }
}

/** The order on the disk is that of UTF-8 bytes; that of JavaScript strings differs beyond U+FFFF. */
function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
