/**
 * Garbage collection: objects that nothing leads to go, in steps between which everybody else writes.
 *
 * An object goes only in a transaction that has looked at all branches, the recycle area and the pins itself, so
 * that nothing that was written before it is missed, and nothing that comes after it relies on what has gone. What was
 * marked is kept in memory alone: after a kill it all begins anew, and nothing is half done. In a home with a damaged
 * tree or commit nothing goes, since what that led to can not be known.
 */
import { LIMITS, delay, fail } from '@csb/core'
import { key, prefix, tail, type Store, type Transaction, type View } from '@csb/store'
import { isErased } from './objects.ts'
import { expirePins, pinsOf } from './pins.ts'
import { staleProjections } from './projection-memo.ts'
import { linksOf, rootsOf, type Link } from './reach.ts'
import { expireRecycled } from './recycle.ts'
import { dropObject, storedAt } from './stored.ts'

/** How far it has come. */
export type Collected = {
  /** objects that something leads to */
  readonly kept: number
  readonly removed: number
  /** rows of the recycle area and pins whose time was over */
  readonly expired: number
  /** true where an ingest was under way: what is left goes another time */
  readonly isPaused: boolean
}

export type CollectOptions = {
  /** ms since epoch */
  readonly now: number
  readonly signal?: AbortSignal
  /** ids of objects that are being sent just now: they stay with all they lead to; asked in each step */
  readonly held?: () => readonly string[]
}

type Marks = { readonly seen: Set<string>; readonly open: Link[] }
type Step = { readonly removed: number; readonly next: string | null; readonly isPaused: boolean }

/**
 * Collect a home. Gives a report after each step; stop asking and nothing more is done.
 * @throws NOT_FOUND without the home; OBJECT_DAMAGED with the object, and then nothing goes
 * @clause L0.3
 */
export async function* collectGarbage(
  store: Store,
  home: string,
  { now, signal, held = () => [] }: CollectOptions,
): AsyncGenerator<Collected> {
  let [expired, removed] = [0, 0]
  for (let count: number = LIMITS.collectStepObjects; count === LIMITS.collectStepObjects;) {
    count = await store.transact((tx) => expireRecycled(tx, home, now, LIMITS.collectStepObjects))
    expired += count
  }
  expired += await store.transact((tx) => expirePins(tx, home, now))
  const marks: Marks = { seen: new Set(), open: [] }
  const report = (isPaused = false): Collected => ({ kept: marks.seen.size, removed, expired, isPaused })
  let after: string | null = prefix('object', home)
  while (after !== null) {
    yield* markAll(store, home, marks, { now, signal, report })
    const from: string = after
    const step: Step = await store.transact((tx) => sweep(tx, home, marks, { after: from, now, held: held() }))
    removed += step.removed
    after = step.isPaused ? null : step.next
    yield report(step.isPaused)
    if (step.isPaused) return
  }
  for (let from: string | null = prefix('piece', home); from !== null;) {
    const begin: string = from
    from = await store.transact((tx) => sweepPieces(tx, home, begin, now))
    await delay(0, signal)
  }
  yield report()
}

/** Follow everything that leads anywhere, outside of transactions; most of it the first time. */
async function* markAll(
  store: Store,
  home: string,
  marks: Marks,
  { now, signal, report }: { now: number; signal: AbortSignal | undefined; report: () => Collected },
): AsyncGenerator<Collected> {
  const view = store.view()
  for (const root of await rootsOf(view, home, now)) mark(marks, root)
  while (marks.open.length > 0) {
    for (let step = 0; step < LIMITS.collectStepObjects && marks.open.length > 0; step++) follow(view, home, marks)
    yield report()
    await delay(0, signal)
  }
}

/** One step: whatever nothing leads to, of the next objects by id. */
async function sweep(
  tx: Transaction,
  home: string,
  marks: Marks,
  { after, now, held }: { after: string; now: number; held: readonly string[] },
): Promise<Step> {
  if ((await pinsOf(tx, home, now)).some(({ kind }) => kind === 'ingest'))
    return { removed: 0, next: null, isPaused: true }
  for (const root of await rootsOf(tx, home, now)) mark(marks, root)
  // what is asked for need not be here
  for (const oid of held) if (tx.has(key('object', home, oid))) mark(marks, { oid, kind: undefined })
  while (marks.open.length > 0) follow(tx, home, marks)
  const rows: string[] = []
  for await (const [k] of tx.range({ prefix: prefix('object', home), after, limit: LIMITS.collectStepObjects }))
    rows.push(k)
  let removed = 0
  for (const row of rows) removed += await drop(tx, home, marks, tail(row, 'object', home))
  // what was worked out for other readers may have been among it
  if (removed > 0) staleProjections(tx, home)
  return { removed, next: rows.length < LIMITS.collectStepObjects ? null : (rows.at(-1) ?? null), isPaused: false }
}

/**
 * An object goes when no other is stored as a delta on it; then its own base may go too.
 * @returns how many went
 */
async function drop(tx: Transaction, home: string, marks: Marks, oid: string): Promise<number> {
  let removed = 0
  for (let at: string | undefined = oid; at !== undefined && !marks.seen.has(at);) {
    // the bytes of what was forgotten are for the erase routine, which looks that they are gone
    if (isErased(tx, home, at) || !tx.has(key('object', home, at)) || (await hasDelta(tx, home, at))) break
    const base: string | undefined = storedAt(tx, home, at)?.base
    await dropObject(tx, home, at)
    removed++
    at = base
  }
  return removed
}

async function hasDelta(tx: Transaction, home: string, oid: string): Promise<boolean> {
  for await (const _ of tx.range({ prefix: prefix('deltaChild', home, oid), limit: 1 })) return true
  return false
}

/** Pieces of blobs that were never finished. @returns where to go on, null at the end */
async function sweepPieces(tx: Transaction, home: string, after: string, now: number): Promise<string | null> {
  if ((await pinsOf(tx, home, now)).some(({ kind }) => kind === 'ingest')) return null
  const rows: string[] = []
  for await (const [k] of tx.range({ prefix: prefix('piece', home), after, limit: LIMITS.collectStepObjects }))
    rows.push(k)
  for (const row of rows) {
    const [oid = ''] = tail(row, 'piece', home).split('/')
    if (!tx.has(key('object', home, oid)) && !isErased(tx, home, oid)) tx.del(row)
  }
  return rows.length < LIMITS.collectStepObjects ? null : (rows.at(-1) ?? null)
}

function mark({ seen, open }: Marks, link: Link): void {
  if (seen.has(link.oid)) return
  seen.add(link.oid)
  if (link.kind !== 'blob') open.push(link)
}

function follow(view: View, home: string, marks: Marks): void {
  const link = marks.open.pop()
  if (link === undefined) return
  if (!view.has(key('object', home, link.oid))) fail('OBJECT_DAMAGED', { home, oid: link.oid, reason: 'missing' })
  for (const next of linksOf(view, home, link)) mark(marks, next)
}
