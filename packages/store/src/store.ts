/**
 * One LevelDB per node, opened once. Transactions run one after another; what they staged becomes durable
 * in groups, each group one synced batch. A caller is answered when its batch is on the disk.
 */
import { mkdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Level } from 'level'
import { LIMITS, type NodeError, fail, fromUtf8, toNodeError, utf8 } from '@csb/core'
import { key } from './keyspace.ts'
import { createReadList, type RangeOptions, type Transaction, type View } from './view.ts'

/** The data format written by this version. A folder with a higher one is refused. */
export const FORMAT = 1

/** LevelDB on disk; compactRange is what the erase routine needs beyond the common interface. */
export type Db = Level<string, Uint8Array> & { compactRange(start: string, end: string): Promise<void> }

export type Store = {
  /** folder of the database files */
  readonly directory: string
  /** A fresh view on what is durable. */
  view(): View
  /**
   * Run `work` alone, then make what it staged durable. Resolves when it is on the disk.
   * When `work` throws, nothing is written.
   * @throws DISK_FULL where the disk took nothing of it; CONFLICT where an earlier write, that this one saw, failed
   */
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /** The raw database: for the erase routine and for the datastore of the libp2p door. */
  readonly db: Db
  close(): Promise<void>
}

type Staged = Map<string, Uint8Array | null>
type Group = { readonly staged: Staged; done(): void; failed(error: NodeError): void }

/**
 * @param directory is made when missing, mode 0700
 * @throws HOME_LOCKED with the holder's pid, DATA_TOO_NEW, OBJECT_DAMAGED
 */
export async function openStore(directory: string): Promise<Store> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const pidFile = join(directory, '..', 'node.pid')
  // not compressed: the erase routine looks for plain bytes in the files, and objects are deflated already
  const db = new Level<string, Uint8Array>(directory, {
    keyEncoding: 'utf8',
    valueEncoding: 'view',
    compression: false,
  }) as Db
  await openDb(db, pidFile)
  await writeFile(pidFile, `${process.pid}\n`, { mode: 0o600 })
  await checkFormat(db)
  const writer = createWriter(db, directory)

  return {
    directory,
    db,
    view: () => createView((k) => db.getSync(k), db, []),
    transact: writer.transact,
    close: async () => {
      await writer.drain()
      await db.close()
      await rm(pidFile, { force: true })
    },
  }
}

async function openDb(db: Db, pidFile: string): Promise<void> {
  try {
    await db.open()
  } catch (error) {
    const cause = (error as { cause?: { code?: string; message?: string } }).cause
    if (cause?.code === 'LEVEL_LOCKED') {
      const pid = await readFile(pidFile, 'utf8').then(
        (text) => Number(text.trim()),
        () => undefined,
      )
      fail('HOME_LOCKED', { pid }, error)
    }
    const isIncomplete = cause?.code === 'LEVEL_IO_ERROR' && /No such file/.test(cause.message ?? '')
    if (cause?.code === 'LEVEL_CORRUPTION' || isIncomplete)
      fail('OBJECT_DAMAGED', { reason: 'the database files are damaged' }, error)
    throw toNodeError(error)
  }
}

async function checkFormat(db: Db): Promise<void> {
  const found = db.getSync(key('meta', 'format'))
  if (found === undefined) {
    await db.batch([{ type: 'put', key: key('meta', 'format'), value: utf8(String(FORMAT)) }], { sync: true })
    return
  }
  const format = Number(fromUtf8(found))
  if (format === FORMAT) return
  await db.close()
  fail('DATA_TOO_NEW', { format, understood: FORMAT })
}

/** Serial transactions in front of grouped, synced batches. */
function createWriter(db: Db, directory: string) {
  /** staged by transactions that are done but not yet durable; later transactions read through them */
  let overlay: Staged = new Map()
  let queue: Group[] = []
  /** counts failed writes: a transaction that saw a lost one must not commit */
  let epoch = 0
  let needsReopen = false
  let writing: Promise<void> | undefined
  let turn: Promise<unknown> = Promise.resolve()

  const write = async (): Promise<void> => {
    while (queue.length > 0) {
      const groups = queue.slice(0, LIMITS.recordGroup)
      try {
        if (needsReopen) {
          // opening writes too: without room it would fail, and a closed database can not even be read
          await requireRoom(directory)
          await db.close()
          await db.open()
          needsReopen = false
        }
        const operations = operationsOf(groups)
        if (operations.length > 0) await db.batch(operations, { sync: true })
        queue = queue.slice(groups.length)
        // what is durable need not be read through any more, unless it was staged again since
        for (const { staged } of groups) for (const [k, v] of staged) if (overlay.get(k) === v) overlay.delete(k)
        for (const group of groups) group.done()
      } catch (error) {
        epoch++
        needsReopen = true
        const lost = queue
        queue = []
        overlay = new Map()
        const reason = toNodeError(error)
        for (const group of lost) group.failed(reason)
      }
    }
    writing = undefined
  }

  const runAlone = async <T>(
    work: (tx: Transaction) => Promise<T> | T,
  ): Promise<{ value: T; durable: Promise<void> }> => {
    const seen = epoch
    const staged: Staged = new Map()
    const value = await work(createTransaction(db, overlay, staged))
    if (seen !== epoch) fail('CONFLICT', { reason: 'an earlier write failed' })
    if (staged.size === 0 && writing === undefined) return { value, durable: Promise.resolve() }
    // one that only read takes its turn in the queue: what it saw is on the disk, or it fails, when it is answered
    for (const [k, v] of staged) overlay.set(k, v)
    const durable = new Promise<void>((done, failed) => queue.push({ staged, done, failed }))
    writing ??= write()
    return { value, durable }
  }

  return {
    transact: async <T>(work: (tx: Transaction) => Promise<T> | T): Promise<T> => {
      const mine = turn.then(() => runAlone(work))
      turn = mine.catch(() => undefined)
      const { value, durable } = await mine
      await durable
      return value
    },
    drain: async (): Promise<void> => {
      await turn
      await writing
    },
  }
}

/** @throws DISK_FULL */
async function requireRoom(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < LIMITS.reopenBytes)
    fail('DISK_FULL', { freeBytes: bavail * bsize, neededBytes: LIMITS.reopenBytes })
}

function operationsOf(groups: readonly Group[]) {
  const merged: Staged = new Map()
  for (const group of groups) for (const [k, v] of group.staged) merged.set(k, v)
  return [...merged].map(([k, value]) =>
    value === null ? { type: 'del' as const, key: k } : { type: 'put' as const, key: k, value },
  )
}

function createTransaction(db: Db, overlay: Staged, staged: Staged): Transaction {
  const read = (k: string): Uint8Array | undefined => {
    for (const layer of [staged, overlay]) if (layer.has(k)) return layer.get(k) ?? undefined
    return db.getSync(k)
  }
  const put = (k: string, value: Uint8Array) => {
    staged.set(k, value)
  }
  return Object.assign(createView(read, db, [overlay, staged]), {
    put,
    putJson: (k: string, value: unknown) => put(k, utf8(JSON.stringify(value))),
    del: (k: string) => {
      staged.set(k, null)
    },
  })
}

function createView(read: (k: string) => Uint8Array | undefined, db: Db, layers: readonly Staged[]): View {
  const list = createReadList()
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
    range: (options) => rangeOf(read, db, layers, options),
    noteRead: (entry) => list.noteRead(entry),
    get reads() {
      return list.reads
    },
  }
}

/** Merge what is on disk with what is staged above it, in key order. */
async function* rangeOf(
  read: (k: string) => Uint8Array | undefined,
  db: Db,
  layers: readonly Staged[],
  { prefix, after, limit = Number.POSITIVE_INFINITY, reverse = false }: RangeOptions,
): AsyncGenerator<readonly [string, Uint8Array]> {
  const end = `${prefix}\u{10ffff}`
  const precedes = (a: string, b: string) => (reverse ? compareKeys(b, a) : compareKeys(a, b)) < 0
  const inRange = (k: string) => k.startsWith(prefix) && (after === undefined || precedes(after, k))
  const staged = [...new Set(layers.flatMap((layer) => [...layer.keys()].filter(inRange)))].sort(compareKeys)
  if (reverse) staged.reverse()
  const begin = after === undefined ? { gte: prefix } : { gt: after }
  const bounds = reverse ? { gte: prefix, lt: after ?? end } : { ...begin, lt: end }
  let left = limit
  let next = 0
  for await (const [k, v] of db.iterator({ ...bounds, reverse })) {
    for (; next < staged.length && precedes(staged[next] ?? '', k); next++) {
      const value = read(staged[next] ?? '')
      if (value === undefined) continue
      if (left-- <= 0) return
      yield [staged[next] ?? '', value]
    }
    const isStaged = staged[next] === k
    if (isStaged) next++
    const value = isStaged ? read(k) : v
    if (value === undefined) continue
    if (left-- <= 0) return
    yield [k, value]
  }
  for (; next < staged.length; next++) {
    const value = read(staged[next] ?? '')
    if (value === undefined) continue
    if (left-- <= 0) return
    yield [staged[next] ?? '', value]
  }
}

/** The order on the disk is that of UTF-8 bytes; that of JavaScript strings differs beyond U+FFFF. */
function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
