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
    range: (options) => rangeOf(pagesOf(read, db, layers, options)),
    pages: (options) => pagesOf(read, db, layers, options),
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

/** The rows of a range one after another. */
async function* rangeOf(pages: AsyncIterable<Rows>): AsyncGenerator<Row> {
  for await (const page of pages) yield* page
}

/** Merge what is on disk with what is staged above it, in key order. */
async function* pagesOf(
  read: (k: string) => Uint8Array | undefined,
  db: Db,
  layers: () => readonly Staged[],
  { prefix, after, limit = Number.POSITIVE_INFINITY, reverse = false }: RangeOptions,
): AsyncGenerator<Rows> {
  const end = `${prefix}\u{10ffff}`
  const precedes = (a: string, b: string) => (reverse ? compareKeys(b, a) : compareKeys(a, b)) < 0
  const inRange = (k: string) => k.startsWith(prefix) && (after === undefined || precedes(after, k))
  const sorted = [...new Set(layers().flatMap((layer) => [...layer.keys()].filter(inRange)))].sort(compareKeys)
  const keys = reverse ? sorted.toReversed() : sorted
  const staged: Waiting = { keys, next: 0 }
  const begin = after === undefined ? { gte: prefix } : { gt: after }
  const bounds = reverse ? { gte: prefix, lt: after ?? end } : { ...begin, lt: end }
  let left = limit
  const within = (rows: Rows): Rows => {
    const taken = rows.length > left ? rows.slice(0, left) : rows
    left -= taken.length
    return taken
  }
  for await (const page of diskPages(db, { ...bounds, reverse }, limit + keys.length)) {
    const rows = within(keys.length === 0 ? page : merged(page, staged, precedes, read))
    if (rows.length > 0) yield rows
    if (left <= 0) return
  }
  const rest = within(valuesOf(keys.slice(staged.next), read))
  if (rest.length > 0) yield rest
}

/** Staged keys in the order of the range, and which of them comes next. */
type Waiting = { readonly keys: readonly string[]; next: number }

/** A page with what is staged up to its end. */
function merged(
  page: Rows,
  staged: Waiting,
  precedes: (a: string, b: string) => boolean,
  read: (k: string) => Uint8Array | undefined,
): Rows {
  const { keys } = staged
  return page.flatMap((row) => {
    const [k] = row
    const from = staged.next
    for (let at = keys[from]; at !== undefined && precedes(at, k); at = keys[staged.next]) staged.next++
    const isStaged = keys[staged.next] === k
    if (isStaged) staged.next++
    const above = valuesOf(keys.slice(from, staged.next), read)
    return isStaged ? above : [...above, row]
  })
}

/** What stands at these keys; where something was taken away there is no row. */
const valuesOf = (keys: readonly string[], read: (k: string) => Uint8Array | undefined): Row[] =>
  keys.flatMap((k) => {
    const value = read(k)
    return value === undefined ? [] : [[k, value] as const]
  })

type Row = readonly [string, Uint8Array]
type Rows = readonly Row[]
type Bounds = {
  readonly gte?: string
  readonly gt?: string
  readonly lt: string
  readonly reverse: boolean
}

/** Rows of the database as they are when this begins; fetched in few trips, of which the first is small. */
async function* diskPages(db: Db, bounds: Bounds, most: number): AsyncGenerator<Rows> {
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
      yield page
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
