/**
 * What waits for a person: for each kind of card, what happens when it is approved. An operation that needs an approval
 * asks here and is refused with the card; the approval acts in `gate.approve`.
 * @clause L1.7
 */
import { fail, isNodeError, parseLabel } from '@csb/core'
import {
  allows,
  cardDigest,
  decide,
  givePass,
  openCard,
  taintLease,
  type Card,
  type Decided,
  type DerivedFacts,
  type GateEntry,
  type GateKind,
  type GateRequest,
  type GateSubject,
} from '@csb/authority'
import { applyMerge, applyRelabel, previewMerge, type MergePreview } from '@csb/files'
import { forgetNotes, type ForgetReport } from '@csb/guard'
import { relabelNote } from '@csb/memory'
import type { Transaction, View } from '@csb/store'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { finishForgetting } from './forgetting.ts'
import { branchesOf, idsOf, ownerNow, subjectNow } from './subjects.ts'
import { keptSurvey, lookedAt, surveyNotes, type Survey } from './survey.ts'
import type { Wish } from './wishes.ts'
import { locationOf, type Context, type Parts } from '../operation.ts'

/** What somebody wants done. */
export type GateAsk =
  | { readonly kind: 'merge'; readonly home: string; readonly from: string; readonly into: string }
  | {
      readonly kind: 'lower-label'
      readonly home: string
      readonly branch: string
      readonly path: string
      readonly label: string
    }
  | { readonly kind: 'lower-label'; readonly home: string; readonly note: string; readonly label: string }
  /** ids sorted, each once */
  | { readonly kind: 'forget'; readonly home: string; readonly ids: readonly string[]; readonly reason: string }
  /** `lease`: hash of the grant of the session that asks */
  | { readonly kind: 'mint'; readonly home: string; readonly lease: string; readonly wish: Wish }

/** What came of an approval. */
type Acted = {
  readonly commit?: string
  readonly forgotten?: readonly string[]
  /** ms since epoch */
  readonly forgotten_at?: number
  /** ms since epoch: whoever asked may do it once until then */
  readonly until?: number
}

/** What the owner is told of a decision. */
export type Decision = Acted & {
  readonly card: string
  readonly outcome: 'approved' | 'rejected' | 'returned'
  readonly report?: readonly ForgetReport[]
  /** what may hold words made from the notes that went, as it stood on the card */
  readonly derived?: DerivedFacts
}

/** Do what the card says. Checks again that it is that and nothing else. */
type Effect = (tx: Transaction, context: Context, entry: GateEntry, until: number) => Acted | Promise<Acted>

/** What it is about may have gone meanwhile: then there is nothing left to approve. */
const GONE = ['NOT_FOUND', 'FORGOTTEN', 'PROTECTED'] as const

const EFFECTS: Readonly<Record<GateKind, Effect>> = {
  merge: (tx, context, { card, request }) => {
    const branches = branchesOf(request)
    const preview = previewMerge(tx, branches)
    // the same was compared a moment ago, in this transaction; what moves a protected branch looks for itself
    if (!isApproved(preview, card)) fail('GATE_STALE', { card: card.id, field: 'diff' })
    const words = wordsOf(context, card.id, `merge ${branches.from} into ${branches.into}`)
    return { commit: applyMerge(tx, { ...branches, ...words, preview }).commit }
  },
  'lower-label': (tx, context, { card, request }) => {
    const { home = '', branch = '', path = '', note, label } = request
    const words = wordsOf(context, card.id, `lower the label of ${note ?? path}`)
    const to = parseLabel(label)
    if (note === undefined) return applyRelabel(tx, { ...words, home, branch, path, label: to, expect: card.base })
    const { key, clearance } = context
    const { commit } = relabelNote(tx, { ...words, home, id: note, label: to, actor: key.did, clearance })
    return { commit }
  },
  forget: async (tx, context, { card, request }) => {
    const { home = '', reason = '' } = request
    const { message: _, ...words } = wordsOf(context, card.id, '')
    const ids = idsOf(request)
    const looked = lookedAt(request)
    const seen = looked === undefined ? {} : { looked }
    const { commit } = await forgetNotes(tx, { ...words, ...seen, home, ids, reason, key: context.key })
    return { commit, forgotten: ids, forgotten_at: words.now }
  },
  mint: (tx, _context, { card, request }, until) => {
    const { lease = '' } = request
    if (card.facts?.kind !== 'mint') fail('GATE_STALE', { card: card.id, field: 'kind' })
    givePass(tx, { lease, wish: card.facts.wish }, { card: card.id, until })
    return { until }
  },
}

/**
 * Ask for an approval: the node computes what would be done, and keeps it as a card for the owner to decide on.
 * @throws GATE_REQUIRED with the card, always unless something is refused before; SCOPE_EXCEEDED where the lease can
 *   not propose; NOT_FOUND, BUSY, TOO_LARGE
 * @clause L1.7
 */
export async function askGate(context: Context, ask: GateAsk): Promise<never> {
  const { principal, run, key, clock, caller } = context
  // who may make authority for others may ask for it; whatever else is asked for takes the word
  if (ask.kind !== 'mint') mayPropose(context, ask.home)
  // history and record are long: they are looked through where nobody else waits for it
  const survey = ask.kind === 'forget' ? await surveyNotes(context, context.view, ask.home, ask.ids) : undefined
  const { card } = await context.write(
    async (tx) => {
      if (ask.kind === 'mint') taintLease(tx, ask.lease, context.outside)
      const request = requestOf(ask, survey)
      const subject = await subjectNow(context, tx, request)
      if (subject.changes.length === 0 && subject.commits.length === 0 && subject.facts === undefined)
        fail('INVALID_INPUT', { reason: 'there is nothing to approve' })
      const asker = { did: principal.did, name: principal.name, run, lease: principal.leaseHash, door: caller.door }
      return openCard(tx, { subject, request, asker, node: key.did, now: clock.now() })
    },
    (opened) => ({
      home: ask.home,
      kind: ask.kind,
      card: opened.card.id,
      digest: cardDigest(opened.card),
      new: opened.isNew,
    }),
  )
  return fail('GATE_REQUIRED', { card: card.id, meaning: card.meaning, expires_at: card.expires_at })
}

/** @throws LEASE_REQUIRED, SCOPE_EXCEEDED */
function mayPropose(context: Context, home: string): void {
  const { lease } = context.principal
  if (lease === null) fail('LEASE_REQUIRED', { action: 'propose' })
  const verdict = allows(lease, { location: locationOf(context, home), action: 'propose' })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, action: 'propose' })
}

/** What is kept of a wish, so that its subject can be computed again. */
function requestOf(ask: GateAsk, survey?: Survey): GateRequest {
  switch (ask.kind) {
    case 'forget':
      return { ...ask, ids: ask.ids.join(' '), ...(survey === undefined ? {} : keptSurvey(survey)) }
    case 'mint':
      return { ...ask, wish: JSON.stringify(ask.wish) }
    default:
      return ask
  }
}

/**
 * Decide on a card and, where it is approved, act: in one transaction, with its record.
 * @throws GATE_STALE with the field that differs, after the card was voided; GRANT_INVALID; NOT_FOUND
 * @clause L1.7
 */
export async function decideGate(
  context: Context,
  input: { readonly card: string; readonly approval: unknown },
  decision: 'approve' | 'reject',
): Promise<Decision> {
  const decided = await context.write(
    (tx) =>
      decide(tx, {
        id: input.card,
        approval: input.approval,
        decision,
        node: context.key.did,
        now: context.clock.now(),
        ownerOf: (home) => ownerNow(tx, home),
        recompute: (request) => subjectIfThere(context, tx, request),
        act: async (entry, until) => EFFECTS[entry.card.kind](tx, context, entry, until),
      }),
    toldOf,
  )
  const card = decided.entry.card.id
  if (decided.outcome === 'void') fail('GATE_STALE', { card, field: decided.field })
  if (decided.outcome !== 'approved') return { card, outcome: decided.outcome }
  const { forgotten } = decided.value
  const { facts } = decided.entry.card
  const report = forgotten === undefined ? {} : { report: await finishForgetting(context.store, forgotten) }
  const derived = facts?.kind === 'forget' ? { derived: facts.derived } : {}
  return { card, outcome: 'approved', ...decided.value, ...report, ...derived }
}

/** What the record tells; of what was forgotten no more than how much it was. */
function toldOf(decided: Decided<Acted>) {
  const { card } = decided.entry
  const told = { home: card.home, kind: card.kind, card: card.id, digest: cardDigest(card), outcome: decided.outcome }
  if (decided.outcome === 'void') return { ...told, field: decided.field }
  const { approval } = decided
  if (decided.outcome !== 'approved') return { ...told, approval }
  const { forgotten, forgotten_at: _, ...acted } = decided.value
  return { ...told, approval, ...acted, ...(forgotten === undefined ? {} : { forgotten: forgotten.length }) }
}

/** The subject of a request as it is now; undefined where it is not there any more. */
export async function subjectIfThere(parts: Parts, view: View, request: GateRequest): Promise<GateSubject | undefined> {
  try {
    return await subjectNow(parts, view, request)
  } catch (error) {
    if (GONE.some((code) => isNodeError(error, code))) return undefined
    throw error
  }
}

/** What the commit says: fixed words, and the card that leads to everything else. */
const wordsOf = (context: Context, card: string, message: string) => ({
  author: authorOf(context),
  message,
  trailers: { ...trailersOf(context), 'Csb-Gate': card },
  now: context.clock.now(),
})

const isApproved = ({ ours, theirs, tree, digest }: MergePreview, card: Card): boolean =>
  ours === card.base && theirs === card.head && tree === card.result_tree && digest === card.diff
