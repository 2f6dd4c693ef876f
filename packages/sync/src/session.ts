/**
 * One sync session of the memory branch, the same code at both ends. It takes and gives messages; the door
 * pumps them. Tombstones go first, always; every note leaves through one function that looks at the label again.
 * @clause L4.1, L4.2, L4.3
 */
import {
  LIMITS,
  dominates,
  fail,
  formatLabel,
  fromUtf8,
  isNodeError,
  parseLabel,
  utf8,
  type Clearance,
} from '@csb/core'
import { readBlob } from '@csb/files'
import { isForgotten } from '@csb/guard'
import { getState, oidOf, parseNote, renderNote, spellClock, type Note } from '@csb/memory'
import type { Store } from '@csb/store'
import { standingOf, type Arrival } from './arrival.ts'
import { differing, exchangeSummaries } from './comparing.ts'
import { expectMessage } from './messages.ts'
import { both, pagesOf, receivePages, sendPages, type Port } from './pages.ts'
import { createPlanner, type Listed, type Plan } from './plan.ts'
import { holdingsFor, summarize, tombstoneRoot, type Holdings } from './summary.ts'

export type SyncSide = {
  readonly store: Store
  readonly home: string
  /** What the other side may see. Asked again before every note, since it can be revoked meanwhile. */
  clearanceOfPeer(): Clearance | undefined
  /** May the other side change this home here? Asked again before everything that is stored. */
  mayPeerWrite(): boolean
  /** Is this a node of the home's owner? */
  readonly ofOwner: boolean
  /** Store what came, record it, and answer how many of them were new. */
  apply(arrival: Arrival): Promise<number>
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
 * Run one session to its end. When it throws, what was being stored is stored and nothing more will be.
 * @throws PEER_MISBEHAVED, CLEARANCE where the peer may see nothing of this home any more
 */
export async function syncSession(port: Port, side: SyncSide): Promise<SyncReport> {
  let storing: Promise<unknown> = Promise.resolve()
  let isOver = false
  const apply: SyncSide['apply'] = (arrival) => {
    if (isOver) fail('PEER_UNREACHABLE', { reason: 'the session is over' })
    const stored = side.apply(arrival)
    storing = stored
    return stored
  }
  try {
    return await converse(port, { ...side, apply })
  } catch (error) {
    isOver = true
    await storing.catch(() => undefined)
    throw error
  }
}

async function converse(port: Port, side: SyncSide): Promise<SyncReport> {
  const { home, store } = side
  let mine = await holdingsFor(store.view(), home, clearance(side))
  let theirs = await exchangeSummaries(port, 'hello', mine)

  let tombstones: Tombstones = { sent: 0, received: 0 }
  if (theirs.tombstones !== tombstoneRoot(mine.tombstones)) {
    tombstones = await exchangeTombstones(port, side, mine)
    mine = await holdingsFor(store.view(), home, clearance(side))
    theirs = await exchangeSummaries(port, 'hello', mine)
  }

  const labels = differing(summarize(mine), theirs.compartments)
  const seen = clearance(side)
  const standing = standingOf(seen, side.ofOwner)
  const planner = createPlanner({ home, clearance: seen, accepts: side.mayPeerWrite(), standing })
  const { plan } = planner
  await both(
    sendLists(port, mine, labels),
    receiveLists(port, labels, (label, rows) => planner.add(store.view(), label, rows)),
  )
  const listed = offered(mine, labels)
  const asked = new Set<string>()
  await both(
    sendPages(port, [...plan.wanted.keys()], (ids, last) => ({ type: 'want', ids, last })),
    receivePages(
      port,
      'want',
      ({ ids }) => ids,
      ({ ids }) => {
        for (const id of ids) {
          if (!listed.has(id) || asked.has(id)) fail('PEER_MISBEHAVED', { reason: 'not what was listed', id })
          asked.add(id)
        }
      },
    ),
  )
  const [sent, arrived] = await both(
    sendNotes(port, side, { asked, listed, withdraw: plan.withdraw }),
    receiveNotes(port, side, plan, new Set(listed.keys())),
  )

  const after = await holdingsFor(store.view(), home, clearance(side))
  const done = await exchangeSummaries(port, 'done', after)
  return {
    sent,
    received: arrived.received,
    tombstonesSent: tombstones.sent,
    tombstonesReceived: tombstones.received,
    withdrawn: plan.withdraw.length + arrived.dropped,
    equal: differing(summarize(after), done.compartments).length === 0,
  }
}

function clearance(side: SyncSide): Clearance {
  return side.clearanceOfPeer() ?? fail('CLEARANCE', { home: side.home })
}

/** The one way in. The right to write may have ended since the session began. */
async function takeIn(side: SyncSide, arrival: Partial<Arrival>): Promise<number> {
  return side.mayPeerWrite() ? side.apply({ ...NOTHING, ...arrival }) : 0
}

type Tombstones = { readonly sent: number; readonly received: number }

/** @clause L4.3 */
async function exchangeTombstones(port: Port, side: SyncSide, mine: Holdings): Promise<Tombstones> {
  let received = 0
  const [sent] = await both(
    sendPages(port, mine.tombstones, (items, last) => ({ type: 'tombstones', items, last })),
    receivePages(
      port,
      'tombstones',
      ({ items }) => items,
      async ({ items }) => {
        if (items.length > 0) received += await takeIn(side, { tombstones: items })
      },
    ),
  )
  return { sent, received }
}

/** What this side lists: id to the version's object id. Nothing else can be asked for or let go of. */
function offered(mine: Holdings, labels: readonly string[]): ReadonlyMap<string, string> {
  return new Map(labels.flatMap((label) => (mine.compartments.get(label) ?? []).map(([id, , , oid]) => [id, oid])))
}

async function sendLists(port: Port, mine: Holdings, labels: readonly string[]): Promise<void> {
  for (const label of labels) {
    await sendPages(port, mine.compartments.get(label) ?? [], (rows, last) => ({ type: 'list', label, rows, last }))
  }
}

async function receiveLists(
  port: Port,
  labels: readonly string[],
  take: (label: string, rows: readonly Listed['row'][]) => void,
): Promise<void> {
  for (const label of labels) {
    await receivePages(
      port,
      'list',
      ({ rows }) => rows,
      (message) => {
        if (message.label !== label) fail('PEER_MISBEHAVED', { expected: label })
        take(label, message.rows)
      },
    )
  }
}

type Sending = {
  readonly asked: ReadonlySet<string>
  readonly listed: ReadonlyMap<string, string>
  readonly withdraw: readonly string[]
}

/** Withdrawals first, then the notes; each version is the one that was listed. @returns how many notes went */
async function sendNotes(port: Port, side: SyncSide, { asked, listed, withdraw }: Sending): Promise<number> {
  const send = (items: readonly string[], gone: readonly string[], last: boolean) =>
    port.send({ type: 'notes', items, gone, last })
  for (const { items } of pagesOf(withdraw)) if (items.length > 0) await send([], items, false)
  let sent = 0
  let page: string[] = []
  let bytes = 0
  for (const id of asked) {
    const text = emitNote(side, id, listed.get(id))
    if (text === undefined) continue
    const size = Buffer.byteLength(JSON.stringify(text))
    if (page.length > 0 && (page.length === LIMITS.syncPageRows || bytes + size > LIMITS.syncPageBytes)) {
      await send(page, [], false)
      page = []
      bytes = 0
    }
    page.push(text)
    bytes += size
    sent++
  }
  await send(page, [], true)
  return sent
}

/**
 * The one place where notes leave: the label is looked at again for each, and a forgotten one never goes. One that
 * changed since it was listed waits for the next session.
 * @clause L4.2
 */
function emitNote(side: SyncSide, id: string, listedOid: string | undefined): string | undefined {
  const view = side.store.view()
  const state = getState(view, side.home, id)
  const allowed = side.clearanceOfPeer()
  if (state === undefined || allowed === undefined || isForgotten(view, side.home, id)) return undefined
  if (state.oid !== listedOid) return undefined
  const bytes = readBlob(view, side.home, state.oid)
  const note = parseNote(bytes)
  // fail closed: both the index and the note itself must allow it
  if (!dominates(allowed, note.label) || !dominates(allowed, parseLabel(state.label))) return undefined
  return fromUtf8(bytes)
}

type Arrived = { readonly received: number; readonly dropped: number }

/** @param droppable ids that this side listed, so that a withdrawal can only touch what it told of */
async function receiveNotes(port: Port, side: SyncSide, { wanted }: Plan, droppable: Set<string>): Promise<Arrived> {
  let received = 0
  let dropped = 0
  for (;;) {
    const message = expectMessage('notes', await port.receive())
    // all of a page is checked before any of it is stored
    const notes = message.items.map((text) => checkNote(text, side, wanted))
    for (const id of message.gone) {
      if (!droppable.delete(id)) fail('PEER_MISBEHAVED', { reason: 'not what was listed', id })
    }
    if (notes.length > 0) received += await takeIn(side, { notes })
    if (message.gone.length > 0) dropped += await takeIn(side, { gone: message.gone })
    if (message.last) return { received, dropped }
  }
}

/** A note that came must be the version that was asked for, once, in its one spelling, under the label it was listed with. */
function checkNote(text: string, { store, home }: SyncSide, wanted: Map<string, Listed>): Note {
  const note = readNote(text)
  const { id } = note.entry
  const asked = wanted.get(id) ?? fail('PEER_MISBEHAVED', { reason: 'not what was asked for', id })
  wanted.delete(id)
  const { row, label } = asked
  if (fromUtf8(renderNote(note)) !== text) fail('PEER_MISBEHAVED', { reason: 'not the canonical form of a note', id })
  const [, hlc, actor, oid, clock] = row
  const isListed =
    note.hlc === hlc &&
    note.actor === actor &&
    spellClock(note) === clock &&
    oidOf(store.view(), home, utf8(text)) === oid
  if (!isListed || label !== formatLabel(note.label)) fail('PEER_MISBEHAVED', { reason: 'not what was listed', id })
  return note
}

/** @throws PEER_MISBEHAVED */
function readNote(text: string): Note {
  try {
    return parseNote(utf8(text))
  } catch (error) {
    if (isNodeError(error, 'MALFORMED')) fail('PEER_MISBEHAVED', { reason: 'not a note' }, error)
    throw error
  }
}
