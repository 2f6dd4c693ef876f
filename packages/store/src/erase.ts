/**
 * The one routine that makes bytes go away. LevelDB keeps deleted values in its files until compaction, and
 * not even one compaction does it while they are still in memory: flush, delete, compact, then look.
 * @clause L3.4
 */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Store } from './store.ts'

const EMPTY = Buffer.alloc(0)
/** From so many markers on one pass over the bytes is quicker than a search for each. */
const MANY = 8
const HEAD_BYTES = 4

/** LevelDB's lock. It holds nothing, and whoever closes a descriptor of it lets go of the lock of the whole process. */
const LOCK_FILE = 'LOCK'

export type EraseReport = {
  readonly keys: number
  /** names of database files in which a marker was still found; empty when all is gone */
  readonly remains: readonly string[]
}

/**
 * Erase values for good.
 * @param keys full keys; deleted in one transaction with whatever else the caller staged before
 * @param markers byte strings that must not be found in the data folder afterwards (stored and plain forms)
 * @returns what was done and what a scan of the files still found
 */
export async function eraseKeys(
  store: Store,
  keys: readonly string[],
  markers: readonly Uint8Array[],
): Promise<EraseReport> {
  const sorted = [...keys].sort()
  const first = sorted[0]
  const last = sorted.at(-1)
  if (first === undefined || last === undefined) return { keys: 0, remains: [] }
  const ranges = groupByTable(sorted)
  for (const [from, to] of ranges) await store.db.compactRange(from, to)
  await store.transact((tx) => {
    for (const k of sorted) tx.del(k)
  })
  for (const [from, to] of ranges) await store.db.compactRange(from, to)
  return { keys: sorted.length, remains: await scanFiles(store.directory, markers) }
}

/** One compaction per table, so that a range never spans the whole database. */
function groupByTable(sorted: readonly string[]): (readonly [string, string])[] {
  const groups = new Map<string, string[]>()
  for (const k of sorted) {
    const table = k.slice(0, k.indexOf('/'))
    groups.set(table, [...(groups.get(table) ?? []), k])
  }
  return [...groups.values()].map((keys) => [keys[0] ?? '', `${keys.at(-1) ?? ''}\0`] as const)
}

/**
 * Names of the files below `directory` that hold one of the markers, or could not be read: what was not looked at is
 * not called clean. A file that compaction took away meanwhile holds nothing any more.
 */
export async function scanFiles(directory: string, markers: readonly Uint8Array[]): Promise<string[]> {
  const found: string[] = []
  const holds = createSearch(markers)
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === LOCK_FILE) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = await readFile(path).catch((error: unknown) =>
      (error as { code?: string }).code === 'ENOENT' ? EMPTY : undefined,
    )
    if (bytes === undefined || holds(bytes)) found.push(entry.name)
  }
  return found
}

/** Asks whether bytes hold one of the markers. For many of them the bytes are gone through once. */
function createSearch(markers: readonly Uint8Array[]): (bytes: Buffer) => boolean {
  const wanted = markers.filter(({ byteLength }) => byteLength > 0).map((marker) => Buffer.from(marker))
  const long = wanted.filter(({ byteLength }) => byteLength >= HEAD_BYTES)
  if (long.length < MANY) return (bytes) => wanted.some((marker) => bytes.includes(marker))
  const short = wanted.filter(({ byteLength }) => byteLength < HEAD_BYTES)
  const byHead = Map.groupBy(long, (marker) => marker.readUInt32LE(0))
  const begins = new Uint8Array(65_536)
  for (const marker of long) begins[marker.readUInt16LE(0)] = 1
  const isAt = (bytes: Buffer, at: number): boolean =>
    byHead
      .get(bytes.readUInt32LE(at))
      ?.some((marker) => bytes.compare(marker, 0, marker.byteLength, at, at + marker.byteLength) === 0) === true
  return (bytes) => {
    for (let at = 0; at + HEAD_BYTES <= bytes.byteLength; at++) {
      const pair = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)
      if (begins[pair] === 1 && isAt(bytes, at)) return true
    }
    return short.some((marker) => bytes.includes(marker))
  }
}
