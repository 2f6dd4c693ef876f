/**
 * The gate: cards that wait for a person, and the one place where a decision becomes an act. What was approved is
 * computed again in the transaction that acts; one difference in any field and the card is void. A card is decided
 * once, so an approval acts once.
 *
 * Nothing here opens a key, moves a branch or knows what a kind of card does: the caller computes and acts.
 * @clause L1.7
 */
import { LIMITS, canonicalize, digestOf, fail, newId, type Approval } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { approvalHash, boundTo, readApproval } from './approval.ts'
import {
  drawCard,
  frameOf,
  isLogKept,
  revokedLeases,
  type Card,
  type CardFrame,
  type GateSubject,
} from './gate-card.ts'
import { standingLease, type GateAsker, type Named } from './gate-people.ts'
import type { GateChange } from './gate-risks.ts'
import { compromisesOf } from './key-line.ts'
import { refuse } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { consumeNonce, isReplayed } from './replay.ts'
import { storedChain } from './stored-grants.ts'
import { listTrust } from './trust.ts'

/** What the caller needs to compute the subject again; kept, never shown. */
export type GateRequest = Readonly<Record<string, string>> & { readonly kind: GateSubject['kind'] }

/** A card and what became of it. */
export type GateEntry = {
  readonly card: Card
  readonly frame: CardFrame
  readonly request: GateRequest
  readonly state: 'open' | 'approved' | 'rejected' | 'returned' | 'void'
  /** ms since epoch; null while open */
  readonly settled_at: number | null
  /** what differed, where it is void */
  readonly field: string | null
  readonly approval: Approval | null
}

export type OpenCard = {
  readonly subject: GateSubject
  readonly request: GateRequest
  readonly asker: GateAsker
  /** did of this node */
  readonly node: string
  /** ms since epoch */
  readonly now: number
}

export type Decide<T> = {
  readonly id: string
  /** a parsed approval */
  readonly approval: unknown
  /** `reject` ends the card without an act: rejected, or returned with what has to change */
  readonly decision: 'approve' | 'reject'
  /** did of this node */
  readonly node: string
  /** ms since epoch */
  readonly now: number
  /** did of the key that speaks for the owner of a home now */
  readonly ownerOf: (home: string) => string
  /** Compute the subject as it is now; undefined where it is not there any more. */
  readonly recompute: (request: GateRequest) => Promise<GateSubject | undefined>
  /** Do it. Staged in the same transaction; whatever it throws, nothing is decided. `until`: as long as the approval lasts */
  readonly act: (entry: GateEntry, until: number) => Promise<T>
}

export type Decided<T> =
  | { readonly outcome: 'approved'; readonly entry: GateEntry; readonly approval: string; readonly value: T }
  | { readonly outcome: 'rejected' | 'returned'; readonly entry: GateEntry; readonly approval: string }
  | { readonly outcome: 'void'; readonly entry: GateEntry; readonly field: string }

/** Changes on one page. */
const PAGE = 500
/** Cards that are looked at for quick approvals. */
const LATEST = 16

/**
 * Open a card for a subject. The same subject asked for by the same hand finds the card that is open already.
 * @throws BUSY where {@link LIMITS.gateCards} are open, TOO_LARGE; DENIED `needs_changes` with the words of the owner,
 *   where just this was returned to whoever asks and the card would still be open
 * @clause L1.7
 */
export async function openCard(tx: Transaction, init: OpenCard): Promise<{ card: Card; isNew: boolean }> {
  const { subject, request, asker, node, now } = init
  const open = await listCards(tx)
  const frame = await frameOf(tx, subject, { id: newId('gate', now), asker, node, now })
  const card = await drawCard(tx, subject, frame, await namesKnown(tx))
  const same = open.find((entry) => now < entry.card.expires_at && essenceOf(entry.card) === essenceOf(card))
  if (same !== undefined) return { card: same.card, isNew: false }
  checkChanged(tx, card, now)
  let left = open.length
  for (const entry of open) {
    const field = now >= entry.card.expires_at ? 'expires_at' : supersededField(entry.card, card)
    if (field === undefined) continue
    settle(tx, entry, { state: 'void', field }, now)
    left--
  }
  if (left >= LIMITS.gateCards) fail('BUSY', { openCards: LIMITS.gateCards })
  put(tx, { card, frame, request, state: 'open', settled_at: null, field: null, approval: null })
  tx.put(key('gateOpen', card.id), new Uint8Array())
  for (let page = 0; page * PAGE < subject.changes.length; page++) {
    tx.putJson(changesKey(card.id, page), subject.changes.slice(page * PAGE, (page + 1) * PAGE))
  }
  return { card, isNew: true }
}

export const findCard = (view: View, id: string): GateEntry | undefined => view.getJson<GateEntry>(key('gate', id))

/** @throws NOT_FOUND */
export const getCard = (view: View, id: string): GateEntry => findCard(view, id) ?? fail('NOT_FOUND', { card: id })

/** Open cards, oldest first; with `all` also those that were decided on. */
export async function listCards(view: View, { all = false }: { readonly all?: boolean } = {}): Promise<GateEntry[]> {
  const entries: GateEntry[] = []
  const table = all ? 'gate' : 'gateOpen'
  for await (const [fullKey] of view.range({ prefix: prefix(table) })) {
    entries.push(getCard(view, tail(fullKey, table)))
  }
  return entries
}

/** How many of the latest approvals in a row came within {@link LIMITS.gateQuickMs} of their card. */
export async function quickApprovals(view: View): Promise<number> {
  const latest: Approval['gate'][] = []
  for await (const [fullKey] of view.range({ prefix: prefix('gate'), reverse: true, limit: LATEST })) {
    const { state, approval } = getCard(view, tail(fullKey, 'gate'))
    if (state === 'approved' && approval !== null) latest.push(approval.gate)
  }
  const newestFirst = latest.toSorted((a, b) => b.decided_at - a.decided_at)
  const calm = newestFirst.findIndex(
    ({ shown_at: shown, decided_at: decided }) => decided - shown >= LIMITS.gateQuickMs,
  )
  return calm < 0 ? newestFirst.length : calm
}

/** One page of a card's changes, in path order. @throws NOT_FOUND where there is no such card */
export function changesOf(view: View, id: string, page: number): { items: GateChange[]; next: number | null } {
  getCard(view, id)
  const items = view.getJson<GateChange[]>(changesKey(id, page)) ?? []
  return { items, next: view.has(changesKey(id, page + 1)) ? page + 1 : null }
}

/**
 * Decide on a card: check the approval, compute what it is about again, act, remember. All of it is staged in `tx`.
 * @returns `void` where something differs from what was approved: the card is over, nothing was done
 * @throws NOT_FOUND; GRANT_INVALID `{reason, field?}` for an approval that is none, which leaves the card as it is;
 *   GATE_STALE `{field}` for one of another card, or for a card that is void already
 * @clause L1.7
 */
export async function decide<T>(tx: Transaction, deciding: Decide<T>): Promise<Decided<T>> {
  const { id, node, now, decision } = deciding
  const entry = getCard(tx, id)
  const time = effectiveNow(tx, now)
  const { did: owner } = entry.card.owner
  const approval = readApproval(deciding.approval, { node, owner, now: time, decision })
  // a key that is said to be in other hands says nothing here any more, before another one follows it too
  if (compromisesOf(tx, owner).length > 0) refuse('revoked', { field: 'approver' })
  if (entry.state === 'void') fail('GATE_STALE', { card: id, field: entry.field })
  if (entry.state !== 'open') refuse('already_used', { field: 'card', card: id, state: entry.state })
  const { approver: holder, nonce, expires_at } = approval.gate
  if (isReplayed(tx, { holder, nonce })) refuse('replayed', { field: 'nonce' })
  const other = differing(approval, entry.card)
  // signed for something else: that is no reason to take this card from whoever still looks at it
  if (other !== undefined) fail('GATE_STALE', { card: id, field: other })
  const hash = approvalHash(approval)
  const voided = (field: string): Decided<T> => {
    return { outcome: 'void', field, entry: settle(tx, entry, { state: 'void', field }, now) }
  }
  // a former key neither acts nor sends words to whoever asked
  if (deciding.ownerOf(entry.card.home) !== owner) return voided('owner')
  if (decision === 'reject') {
    await consumeNonce(tx, { holder, nonce, expires_at }, now)
    const outcome = approval.gate.decision === 'needs-changes' ? 'returned' : 'rejected'
    if (outcome === 'returned') tx.putJson(returnedKey(entry.card), { card: id } satisfies Returned)
    return { outcome, approval: hash, entry: settle(tx, entry, { state: outcome, approval }, now) }
  }
  const field = await staleField(tx, entry, deciding, time)
  if (field !== undefined) return voided(field)
  await consumeNonce(tx, { holder, nonce, expires_at }, now)
  const value = await deciding.act(entry, expires_at)
  rememberApproved(tx, entry.card)
  return { outcome: 'approved', value, approval: hash, entry: settle(tx, entry, { state: 'approved', approval }, now) }
}

/** What an approval lets a lease do: one thing, once, for as long as the approval lasts. */
type Pass = { readonly card: string; readonly until: number }

/** What a pass is for: `lease` is the hash of the grant of whoever asked, `wish` the digest of what was asked. */
export type PassFor = { readonly lease: string; readonly wish: string }

/**
 * Let what was approved be done by whoever asked, when it asks again: where only the asker can do it.
 * @param until ms since epoch
 * @clause L1.7
 */
export function givePass(tx: Transaction, { lease, wish }: PassFor, pass: Pass): void {
  tx.putJson(key('gatePass', lease, wish), pass)
}

/**
 * Use a pass up. It is gone afterwards, whether it still held or not.
 * @param recompute the subject as it is now; undefined where it is not there any more
 * @returns the approved card; undefined where there is no pass, or it does not hold any more
 * @clause L1.7
 */
export async function takePass(
  tx: Transaction,
  { lease, wish }: PassFor,
  { now, recompute }: Pick<Decide<unknown>, 'now' | 'recompute'>,
): Promise<Card | undefined> {
  const pass = tx.getJson<Pass>(key('gatePass', lease, wish))
  if (pass === undefined) return undefined
  tx.del(key('gatePass', lease, wish))
  const time = effectiveNow(tx, now)
  const entry = getCard(tx, pass.card)
  if (pass.until <= time || (await staleField(tx, entry, { recompute }, time)) !== undefined) return undefined
  return entry.card
}

/**
 * Remove what no card stands behind any more: passes that nobody used in their time, and what was given back to be changed
 * and would have expired since.
 * @returns how many rows
 */
export async function collectGate(tx: Transaction, now: number): Promise<number> {
  const time = effectiveNow(tx, now)
  const over: string[] = []
  for await (const [fullKey] of tx.range({ prefix: prefix('gatePass') }))
    if ((tx.getJson<Pass>(fullKey)?.until ?? 0) <= time) over.push(fullKey)
  for await (const [fullKey] of tx.range({ prefix: prefix('gateReturned') }))
    if (isSettledLong(tx, tx.getJson<Returned>(fullKey), time)) over.push(fullKey)
  for (const fullKey of over) tx.del(fullKey)
  return over.length
}

/** Would the card that was given back have expired by now? */
function isSettledLong(view: View, returned: Returned | undefined, time: number): boolean {
  const entry = returned === undefined ? undefined : findCard(view, returned.card)
  return entry === undefined || time >= entry.card.expires_at
}

/** The first thing in which the world is not what the card says, or undefined. */
async function staleField(
  view: View,
  { card, frame, request }: GateEntry,
  { recompute }: Pick<Decide<unknown>, 'recompute'>,
  time: number,
): Promise<string | undefined> {
  if (time >= card.expires_at) return 'expires_at'
  const now = await recompute(request)
  if (now === undefined) return 'head'
  if (now.owner !== card.owner.did) return 'owner'
  if (leaseEnd(view, card) <= time) return 'lease'
  if (!isLogKept(view, card.log)) return 'log'
  const redrawn = await drawCard(view, now, frame, await namesKnown(view))
  if (canonicalize(revokedLeases(redrawn)) !== canonicalize(revokedLeases(card))) return 'lease'
  return differingMember(boundTo(redrawn), boundTo(card))
}

/**
 * Until when the lease of whoever asked bears the card. What was made out for one task ends with the task: it was
 * entitled when it asked, and that is what counts; a person needs longer than a run lasts. The grants above it must
 * hold still, and one that was revoked bears nothing.
 * @returns ms since epoch
 */
function leaseEnd(view: View, { asked_by: { lease } }: Card): number {
  if (lease === null) return Number.POSITIVE_INFINITY
  const chain = storedChain(view, lease.hash) ?? []
  const isTask = chain.at(-1)?.delegation.task !== null && chain.length > 1
  const ends = isTask ? chain.slice(0, -1).map(({ delegation }) => delegation.expires_at) : [lease.expires_at]
  return Math.min(...ends.map((end) => end ?? Number.POSITIVE_INFINITY))
}

/** The first member of the approval that does not repeat the card, or undefined. */
const differing = (approval: Approval, card: Card): string | undefined => differingMember(approval.gate, boundTo(card))

function differingMember(
  given: Readonly<Record<string, unknown>>,
  wanted: ReturnType<typeof boundTo>,
): string | undefined {
  return Object.entries(wanted).find(([name, value]) => canonicalize(given[name]) !== canonicalize(value))?.[0]
}

/** Everything of a card but when it was drawn and which run asked. */
function essenceOf(card: Card): string {
  const { id: _, opened_at: _at, expires_at: _until, log: _log, witnessed: _by, exec: _exec, ...essence } = card
  return canonicalize(essence)
}

/** Just this was given back to whoever asks, to be changed. */
type Returned = { readonly card: string }

const returnedKey = (card: Card): string => key('gateReturned', digestOf(essenceOf(card)).slice('sha256:'.length))

/** What was given back to be changed is not asked for again as it is. @throws DENIED */
function checkChanged(view: View, card: Card, now: number): void {
  const returned = view.getJson<Returned>(returnedKey(card))
  if (returned === undefined || isSettledLong(view, returned, now)) return
  const entry = getCard(view, returned.card)
  const { words = '' } = entry.approval?.gate ?? {}
  fail('DENIED', { reason: 'needs_changes', card: entry.card.id, words })
}

/** The same wish of the same hand, drawn anew: the older card is over. */
function supersededField(older: Card, newer: Card): string | undefined {
  const wish = ({ kind, home, target, source, asked_by }: Card) =>
    canonicalize([kind, home, target, source, asked_by.did, asked_by.lease?.hash ?? null])
  return wish(older) === wish(newer) ? differingMember(boundTo(newer), boundTo(older)) : undefined
}

/** Those whose runs stand behind something that was approved, and the lease under which it was asked for. */
function rememberApproved(tx: Transaction, { made_by: makers, asked_by: { lease } }: Card): void {
  const dids = makers.flatMap(({ actor }) => (actor === null ? [] : [actor.did]))
  const leases = lease === null ? [] : [standingLease(tx, lease.hash)]
  for (const known of [...dids, ...leases]) tx.put(key('gateActor', known), new Uint8Array())
}

/** The owner's own names for keys. */
const namesKnown = async (view: View): Promise<Named[]> =>
  (await listTrust(view)).map(({ name, did }) => ({ name, did }))

type Settlement = Pick<GateEntry, 'state'> & Partial<Pick<GateEntry, 'field' | 'approval'>>

function settle(tx: Transaction, entry: GateEntry, how: Settlement, now: number): GateEntry {
  const settled: GateEntry = { ...entry, field: null, approval: null, ...how, settled_at: now }
  put(tx, settled)
  tx.del(key('gateOpen', entry.card.id))
  return settled
}

function put(tx: Transaction, entry: GateEntry): void {
  tx.putJson(key('gate', entry.card.id), entry)
}

const changesKey = (id: string, page: number): string => key('gateChanges', id, page)
