/**
 * Reading and writing: a view reads, a transaction also writes. What files and notes were read is noted
 * by the reader functions themselves, so nobody writes a read list by hand.
 * @clause L1.5
 */
import type { Label } from '@csb/core'

/** One thing that was read: a path of a home at an object id, with the label it bears. */
export type ReadEntry = { readonly home: string; readonly path: string; readonly oid: string; readonly label: Label }

export type RangeOptions = {
  /** whole prefix, see `prefix()` of the key space */
  readonly prefix: string
  /** start behind this full key (before it when `reverse`) */
  readonly after?: string
  readonly limit?: number
  readonly reverse?: boolean
}

export type View = {
  get(key: string): Uint8Array | undefined
  /** @throws OBJECT_DAMAGED where the value is not JSON */
  getJson<T>(key: string): T | undefined
  has(key: string): boolean
  /** Those of the keys behind which there is nothing. No value is read, so it may be asked for many large ones. */
  missing(keys: readonly string[]): Promise<readonly string[]>
  /** Pairs in key order. */
  range(options: RangeOptions): AsyncIterable<readonly [string, Uint8Array]>
  /** The same, some at a time as they come from the disk: for those who go through all of a large table. */
  pages(options: RangeOptions): AsyncIterable<readonly (readonly [string, Uint8Array])[]>
  noteRead(entry: ReadEntry): void
  /** What was noted so far, each path and object once. */
  readonly reads: readonly ReadEntry[]
}

export type Transaction = View & {
  put(key: string, value: Uint8Array): void
  putJson(key: string, value: unknown): void
  del(key: string): void
}

/** Collects reads, each path and object once. */
export function createReadList(): { noteRead(entry: ReadEntry): void; readonly reads: readonly ReadEntry[] } {
  const seen = new Map<string, ReadEntry>()
  return {
    noteRead: (entry) => {
      seen.set(`${entry.home}\0${entry.path}\0${entry.oid}`, entry)
    },
    get reads() {
      return [...seen.values()]
    },
  }
}
