/**
 * One sync session of the memory branch, the same code at both ends. It takes and gives messages; the door
 * pumps them. Tombstones go first, always; every note leaves through one function that looks at the label again.
 * @clause L4.1, L4.2, L4.3
 */
import { LIMITS, dominates, fail, formatLabel, fromUtf8, parseLabel, utf8, type Clearance } from '@csb/core'
import { readBlob } from '@csb/files'
import { isForgotten } from '@csb/guard'
import { parseNote, renderNote, type Note, type NoteState } from '@csb/memory'
import { key, type Store, type View } from '@csb/store'
import { expectMessage, type CompartmentSummary, type Row, type SyncMessage } from './messages.ts'
import { holdingsFor, rootOf, summarize, tombstoneRoot, type Holdings } from './summary.ts'

/** Messages in order; undefined from `receive` means that the other side has ended. */
export type Port = { send(message: unknown): Promise<void>; receive(): Promise<unknown> }

export type SyncSide = {
  readonly store: Store
  readonly home: string
  /** What the other side may see. Asked again before every note, since it can be revoked meanwhile. */
  clearanceOfPeer(): Clearance | undefined
  /** May the other side change this home here? */
  mayPeerWrite(): boolean
  /** Store what came, record it, and answer how many of them were new. */
  apply(arrival: Arrival): Promise<number>
}

export type Arrival = {
  readonly tombstones: readonly unknown[]
  readonly notes: readonly Note[]
  /** ids of notes the sender no longer shows to this node */
  readonly gone: readonly string[]
}

export type SyncReport = {
  readonly sent: number
  readonly received: number
  readonly tombstonesSent: number
  readonly tombstonesReceived: number
  /** notes of the other side that it was told to drop, and of this side that were dropped */
  readonly withdrawn: number
  /** true where both ended with the same roots for all compartments both may see */
  readonly equal: boolean
}

const NOTHING: Arrival = { tombstones: [], notes: [], gone: [] }

/**
 * Run one session to its end.
 * @throws PEER_MISBEHAVED, CLEARANCE where the peer may see nothing of this home any more
 */
export async function syncSession(port: Port, side: SyncSide): Promise<SyncReport> {
  const { home, store } = side
  const accepts = side.mayPeerWrite()
  let mine = await holdingsFor(store.view(), home, clearance(side))
  let theirs = await exchangeSummaries(port, 'hello', mine)

  let tombstonesSent = 0
  let tombstonesReceived = 0
  if (theirs.tombstones !== tombstoneRoot(mine.tombstones)) {
    const [told, heard] = await both(
      sendPages(port, mine.tombstones, (items, last) => ({ type: 'tombstones', items, last })),
      receivePages(port, 'tombstones', (message) => message.items),
    )
    tombstonesSent = told
    if (accepts && heard.length > 0) tombstonesReceived = await side.apply({ ...NOTHING, tombstones: heard })
    mine = await holdingsFor(store.view(), home, clearance(side))
    theirs = await exchangeSummaries(port, 'hello', mine)
  }

  const labels = differing(summarize(mine), theirs.compartments)
  const [, theirRows] = await both(sendLists(port, mine, labels), receiveLists(port, labels))
  const plan = planOf(side, mine, theirRows, accepts)
  const [, theirWants] = await both(
    sendPages(port, plan.want, (ids, last) => ({ type: 'want', ids, last })),
    receivePages(port, 'want', (message) => message.ids),
  )
  const [sent, arrived] = await both(
    sendNotes(port, side, theirWants, plan.withdraw),
    receiveNotes(port, side, plan, accepts),
  )

  const after = await holdingsFor(store.view(), home, clearance(side))
  const done = await exchangeSummaries(port, 'done', after)
  const equal = differing(summarize(after), done.compartments).length === 0
  return {
    sent,
    received: arrived.received,
    tombstonesSent,
    tombstonesReceived,
    withdrawn: plan.withdraw.length + arrived.dropped,
    equal,
  }
}

function clearance(side: SyncSide): Clearance {
  return side.clearanceOfPeer() ?? fail('CLEARANCE', { home: side.home })
}

async function exchangeSummaries<K extends 'hello' | 'done'>(port: Port, type: K, holdings: Holdings) {
  const mine = { type, compartments: summarize(holdings), tombstones: tombstoneRoot(holdings.tombstones) }
  const [, theirs] = await both(
    port.send(mine),
    port.receive().then((message) => expectMessage(type, message)),
  )
  return theirs
}

/** Labels whose sets differ, sorted, each once; both sides compute the same list. */
function differing(a: readonly CompartmentSummary[], b: readonly CompartmentSummary[]): string[] {
  const empty = rootOf([])
  const roots = (list: readonly CompartmentSummary[]) => new Map(list.map(({ label, root }) => [label, root]))
  const left = roots(a)
  const right = roots(b)
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((label) => (left.get(label) ?? empty) !== (right.get(label) ?? empty))
    .sort()
}

type Plan = {
  /** ids this side asks for, with the label they were listed under */
  readonly want: readonly string[]
  readonly wanted: ReadonlyMap<string, string>
  /** ids the other side holds in a version that it may no longer see a successor of */
  readonly withdraw: readonly string[]
  /** ids listed by the other side, so that a withdrawal can only touch what it knew of */
  readonly listed: ReadonlySet<string>
}

function planOf(side: SyncSide, mine: Holdings, theirs: ReadonlyMap<string, readonly Row[]>, accepts: boolean): Plan {
  const view = side.store.view()
  const seen = clearance(side)
  const wanted = new Map<string, string>()
  const withdraw: string[] = []
  const listed = new Set([...mine.compartments.values()].flat().map(([id]) => id))
  for (const [label, rows] of theirs) {
    for (const row of rows) {
      const own = stateOf(view, side.home, row[0])
      if (isForgotten(view, side.home, row[0])) continue
      // a note the peer may not see is none of its business: it can not change it, and drops what it holds of it
      if (own !== undefined && !dominates(seen, parseLabel(own.label))) withdraw.push(row[0])
      else if (accepts && (own === undefined || isNewer(row, own))) wanted.set(row[0], label)
    }
  }
  return { want: [...wanted.keys()], wanted, withdraw, listed }
}

const stateOf = (view: View, home: string, id: string): NoteState | undefined =>
  view.getJson<NoteState>(key('note', home, id))

/** Last writer wins by (hlc, actor, oid), as in the memory room. */
function isNewer([, hlc, actor, oid]: Row, than: { hlc: string; actor: string; oid: string }): boolean {
  const a = [hlc, actor, oid].join(' ')
  const b = [than.hlc, than.actor, than.oid].join(' ')
  return a > b
}

async function sendLists(port: Port, mine: Holdings, labels: readonly string[]): Promise<void> {
  for (const label of labels) {
    await sendPages(port, mine.compartments.get(label) ?? [], (rows, last) => ({ type: 'list', label, rows, last }))
  }
}

async function receiveLists(port: Port, labels: readonly string[]): Promise<Map<string, Row[]>> {
  const lists = new Map<string, Row[]>()
  for (const label of labels) {
    const rows = await receivePages(port, 'list', (message) => {
      if (message.label !== label) fail('PEER_MISBEHAVED', { expected: label })
      return message.rows
    })
    lists.set(label, rows)
  }
  return lists
}

/** The one place where notes leave: the label is looked at again for each, and a forgotten one never goes. */
async function sendNotes(
  port: Port,
  side: SyncSide,
  ids: readonly string[],
  withdraw: readonly string[],
): Promise<number> {
  let sent = 0
  let items: string[] = []
  let bytes = 0
  let gone: readonly string[] = withdraw.slice(0, LIMITS.syncPageRows)
  const flush = async (last: boolean) => {
    await port.send({ type: 'notes', items, gone, last })
    items = []
    gone = []
    bytes = 0
  }
  for (const id of ids) {
    const text = emitNote(side, id)
    if (text === undefined) continue
    sent++
    items.push(text)
    bytes += text.length
    if (bytes > LIMITS.bulkChunkBytes || items.length >= LIMITS.listMax) await flush(false)
  }
  await flush(true)
  return sent
}

/** @clause L4.2 */
function emitNote(side: SyncSide, id: string): string | undefined {
  const view = side.store.view()
  const state = stateOf(view, side.home, id)
  const allowed = side.clearanceOfPeer()
  if (state === undefined || allowed === undefined || isForgotten(view, side.home, id)) return undefined
  const bytes = readBlob(view, side.home, state.oid)
  const note = parseNote(bytes)
  // fail closed: both the index and the note itself must allow it
  if (!dominates(allowed, note.label) || !dominates(allowed, parseLabel(state.label))) return undefined
  return fromUtf8(bytes)
}

type Arrived = { readonly received: number; readonly dropped: number }

async function receiveNotes(port: Port, side: SyncSide, plan: Plan, accepts: boolean): Promise<Arrived> {
  let received = 0
  let dropped = 0
  for (let burst = 0; ; burst++) {
    if (burst > LIMITS.syncBursts) fail('PEER_MISBEHAVED', { reason: 'no end' })
    const message = expectMessage('notes', await port.receive())
    const notes = message.items.map((text) => checkNote(text, plan))
    const gone = accepts ? message.gone.filter((id) => plan.listed.has(id)) : []
    if (notes.length > 0) received += await side.apply({ ...NOTHING, notes })
    if (gone.length > 0) dropped += await side.apply({ ...NOTHING, gone })
    if (message.last) return { received, dropped }
  }
}

/** A note that came must be one that was asked for, in its one spelling, under the label it was listed with. */
function checkNote(text: string, plan: Plan): Note {
  const note = parseNote(utf8(text))
  const label = plan.wanted.get(note.entry.id)
  if (label === undefined || label !== formatLabel(note.label))
    fail('PEER_MISBEHAVED', { reason: 'not what was listed' })
  if (fromUtf8(renderNote(note)) !== text) fail('PEER_MISBEHAVED', { reason: 'not the canonical form of a note' })
  return note
}

type Page<T> = (items: readonly T[], last: boolean) => SyncMessage

async function sendPages<T>(port: Port, items: readonly T[], page: Page<T>): Promise<number> {
  for (let at = 0; ; at += LIMITS.syncPageRows) {
    const last = at + LIMITS.syncPageRows >= items.length
    await port.send(page(items.slice(at, at + LIMITS.syncPageRows), last))
    if (last) return items.length
  }
}

type Paged = Extract<SyncMessage, { type: 'tombstones' | 'list' | 'want' }>

async function receivePages<K extends Paged['type'], T>(
  port: Port,
  kind: K,
  itemsOf: (message: Extract<Paged, { type: K }>) => readonly T[],
): Promise<T[]> {
  const all: T[] = []
  for (let burst = 0; ; burst++) {
    if (burst > LIMITS.syncBursts) fail('PEER_MISBEHAVED', { reason: 'no end' })
    const message: Paged = expectMessage<Paged['type']>(kind, await port.receive())
    all.push(...itemsOf(message as Extract<Paged, { type: K }>))
    if (message.last) return all
  }
}

/** Both at once: each side sends while it reads, so that neither waits for the other to stop talking. */
async function both<A, B>(a: Promise<A>, b: Promise<B>): Promise<readonly [A, B]> {
  return Promise.all([a, b])
}
