/**
 * Serial transactions in front of grouped, synced batches. Whatever waits is run first, then written as one group;
 * while a group is on its way to the disk, the next one is made. Each is answered when its group is durable.
 */
import { statfs } from 'node:fs/promises'
import { LIMITS, fail, toNodeError, type NodeError } from '@csb/core'
import { createView, type Db, type Staged } from './layers.ts'
import { TABLES } from './keyspace.ts'
import type { Transaction } from './view.ts'

/** A transaction that waits for its turn, then for its group. */
type Task = {
  work(tx: Transaction): unknown
  /** what the work came to */
  value: unknown
  readonly done: (value: unknown) => void
  readonly failed: (error: unknown) => void
}

/** Transactions that become durable together; later ones read through what they staged. */
type Group = {
  readonly staged: Staged
  readonly tasks: Task[]
  /** resolves when it is durable, or lost */
  readonly ended: PromiseWithResolvers<void>
}

export type Writer = {
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /** Resolves when all that was asked for is durable, or has failed. */
  drain(): Promise<void>
}

/** Groups that may be made ahead of the disk: a slow one holds up who writes, not the memory. */
const GROUPS = 3
/** A larger group is no chained batch: its native copy would live until the collector comes for it. */
const CHAINED_BYTES = 1024 * 1024
/** Heads and states: nearly every transaction reads them, and nobody writes them but in a transaction. */
const META = `${TABLES.meta}/`
const META_ROWS = 512

/** @param directory of the database, to ask for the room on its disk */
export function createWriter(db: Db, directory: string): Writer {
  let tasks: Task[] = []
  /** oldest first; the first may be on its way to the disk */
  let groups: Group[] = []
  /** the one that takes further transactions */
  let open: Group | undefined
  /** rows of meta as they are on the disk */
  const meta: Staged = new Map()
  /** counts failed writes: a transaction that saw a lost one must not commit */
  let epoch = 0
  /** why the last write failed, until the database was opened again: nobody knows before what reached the disk */
  let unwell: NodeError | undefined
  let running: Promise<void> | undefined
  let writing: Promise<void> | undefined

  const remember = (k: string, value: Uint8Array | null): void => {
    if (meta.size >= META_ROWS) meta.clear()
    meta.set(k, value)
  }

  const durable = (k: string): Uint8Array | undefined => {
    if (!k.startsWith(META)) return db.getSync(k)
    let value = meta.get(k)
    if (value === undefined) remember(k, (value = db.getSync(k) ?? null))
    return value ?? undefined
  }

  const waiting = (k: string): Uint8Array | undefined => {
    for (let at = groups.length - 1; at >= 0; at--) {
      const value = groups[at]?.staged.get(k)
      if (value !== undefined) return value ?? undefined
    }
    return durable(k)
  }

  const stage = (task: Task, seen: number, staged: Staged, value: unknown): void => {
    if (seen !== epoch) fail('CONFLICT', { reason: 'an earlier write failed' })
    if (unwell !== undefined && staged.size > 0) throw unwell
    if (staged.size === 0 && groups.length === 0) return task.done(value)
    // one that only read takes its turn as well: what it saw is on the disk, or it fails, when it is answered
    if (open === undefined || open.tasks.length >= LIMITS.recordGroup) {
      open = { staged: new Map(), tasks: [], ended: Promise.withResolvers() }
      groups.push(open)
    }
    for (const [k, v] of staged) open.staged.set(k, v)
    task.value = value
    open.tasks.push(task)
    writing ??= write()
  }

  /** @returns a promise only where the work itself is one: the others share a turn of the loop */
  const runAlone = (task: Task): Promise<void> | undefined => {
    const seen = epoch
    const staged: Staged = new Map()
    try {
      const layers = () => [staged, ...groups.map((group) => group.staged)]
      const value = task.work(createTransaction(db, staged, waiting, layers))
      if (value instanceof Promise) return value.then((late) => stage(task, seen, staged, late)).catch(task.failed)
      stage(task, seen, staged, value)
    } catch (error) {
      task.failed(error)
    }
    return undefined
  }

  const reopen = async (): Promise<void> => {
    try {
      // opening writes too: without room it would fail, and a closed database can not even be read
      await requireRoom(directory)
      await db.close()
      await db.open()
      unwell = undefined
    } catch (error) {
      unwell = toNodeError(error)
    }
    meta.clear()
  }

  const run = async (): Promise<void> => {
    // whoever asks in the same turn of the loop is in the same group
    await Promise.resolve()
    while (tasks.length > 0) {
      const due = tasks
      tasks = []
      for (const task of due) {
        if (open?.tasks.length === LIMITS.recordGroup)
          await (groups.length < GROUPS ? Promise.resolve() : groups[0]?.ended.promise)
        if (unwell !== undefined) await reopen()
        const ended = runAlone(task)
        if (ended !== undefined) await ended
      }
    }
    running = undefined
  }

  const write = async (): Promise<void> => {
    // what runs in this turn of the loop goes along
    await Promise.resolve()
    for (let group = groups[0]; group !== undefined; group = groups[0]) {
      if (open === group) open = undefined
      try {
        await writeAll(db, group.staged)
        groups.shift()
        for (const [k, v] of group.staged) if (k.startsWith(META)) remember(k, v)
        for (const { done, value } of group.tasks) done(value)
      } catch (error) {
        const lost = groups
        const reason = toNodeError(error)
        epoch++
        unwell = reason
        groups = []
        open = undefined
        for (const { tasks: behind } of lost) for (const { failed } of behind) failed(reason)
        for (const { ended } of lost) ended.resolve()
      }
      group.ended.resolve()
    }
    writing = undefined
  }

  return {
    transact: <T>(work: (tx: Transaction) => Promise<T> | T) =>
      new Promise<T>((resolve, failed) => {
        tasks.push({ work, value: undefined, done: resolve as Task['done'], failed })
        running ??= run()
      }),
    drain: async () => {
      for (let busy = running ?? writing; busy !== undefined; busy = running ?? writing) await busy
    },
  }
}

function createTransaction(
  db: Db,
  staged: Staged,
  below: (k: string) => Uint8Array | undefined,
  layers: () => readonly Staged[],
): Transaction {
  const read = (k: string): Uint8Array | undefined => {
    const value = staged.get(k)
    return value === undefined ? below(k) : (value ?? undefined)
  }
  return Object.assign(createView(read, db, layers), {
    put: (k: string, value: Uint8Array) => {
      staged.set(k, value)
    },
    putJson: (k: string, value: unknown) => {
      staged.set(k, Buffer.from(JSON.stringify(value)))
    },
    del: (k: string) => {
      staged.set(k, null)
    },
  })
}

async function writeAll(db: Db, staged: Staged): Promise<void> {
  if (staged.size === 0) return
  let bytes = 0
  for (const value of staged.values()) bytes += value?.byteLength ?? 0
  if (bytes > CHAINED_BYTES) return db.batch(operationsOf(staged), { sync: true })
  const batch = db.batch()
  try {
    for (const [k, value] of staged) {
      if (value === null) batch.del(k)
      else batch.put(k, value)
    }
    await batch.write({ sync: true })
  } finally {
    await batch.close()
  }
}

const operationsOf = (staged: Staged) =>
  [...staged].map(([k, value]) =>
    value === null ? { type: 'del' as const, key: k } : { type: 'put' as const, key: k, value },
  )

/** @throws DISK_FULL */
async function requireRoom(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < LIMITS.reopenBytes)
    fail('DISK_FULL', { freeBytes: bavail * bsize, neededBytes: LIMITS.reopenBytes })
}
