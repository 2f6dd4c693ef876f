/**
 * What waits for a person: for each kind of card, how its subject is computed and what happens when it is approved.
 * An operation that needs an approval asks here and is refused with the card; the approval acts in `gate.approve`.
 * @clause L1.7
 */
import { LIMITS, fail, formatLabel, isNodeError, parseLabel, sha256Hex } from '@csb/core'
import {
  allows,
  cardDigest,
  currentKey,
  decide,
  openCard,
  policyDigest,
  type Card,
  type Decided,
  type GateChange,
  type GateEntry,
  type GateKind,
  type GateRequest,
  type GateSubject,
} from '@csb/authority'
import {
  applyMerge,
  applyRelabel,
  commitsBetween,
  getHome,
  listRefs,
  previewMerge,
  previewRelabel,
  readBlob,
  type MergeBranches,
  type MergePreview,
} from '@csb/files'
import { getState, relabelNote } from '@csb/memory'
import type { Transaction, View } from '@csb/store'
import { authorOf, trailersOf } from './authorship.ts'
import { locationOf, type Context } from './operation.ts'

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

type Own = Pick<GateSubject, 'home' | 'owner' | 'policy'>

/** One kind of act. */
type Effect = {
  /** @throws NOT_FOUND where what it is about is not there */
  subjectOf(view: View, request: GateRequest, own: Own): GateSubject
  /** Do what the card says. Checks again that it is that and nothing else. */
  act(tx: Transaction, context: Context, entry: GateEntry): { readonly commit: string }
}

/** A note or a file may have gone meanwhile: then there is nothing left to approve. */
const GONE = ['NOT_FOUND', 'FORGOTTEN', 'PROTECTED'] as const

const EFFECTS: Readonly<Record<GateKind, Effect>> = {
  merge: {
    subjectOf: (view, request, own) => mergeSubject(view, branchesOf(request), own),
    act: (tx, context, { card, request }) => {
      const branches = branchesOf(request)
      const preview = previewMerge(tx, branches)
      // the same was compared a moment ago, in this transaction; what moves a protected branch looks for itself
      if (!isApproved(preview, card)) fail('GATE_STALE', { card: card.id, field: 'diff' })
      const words = wordsOf(context, card.id, `merge ${branches.from} into ${branches.into}`)
      return { commit: applyMerge(tx, { ...branches, ...words, preview }).commit }
    },
  },
  'lower-label': {
    subjectOf: (view, request, own) =>
      request['note'] === undefined ? relabelSubject(view, request, own) : noteSubject(view, request, own),
    act: (tx, context, { card, request }) => {
      const { home = '', branch = '', path = '', note, label } = request
      const words = wordsOf(context, card.id, `lower the label of ${note ?? path}`)
      const to = parseLabel(label)
      if (note === undefined) return applyRelabel(tx, { ...words, home, branch, path, label: to, expect: card.base })
      const { key, clearance } = context
      const { commit } = relabelNote(tx, { ...words, home, id: note, label: to, actor: key.did, clearance })
      return { commit }
    },
  },
}

/**
 * Ask for an approval: the node computes what would be done, and keeps it as a card for the owner to decide on.
 * @throws GATE_REQUIRED with the card, always unless something is refused before; SCOPE_EXCEEDED where the lease can
 *   not propose; NOT_FOUND, BUSY, TOO_LARGE
 * @clause L1.7
 */
export async function askGate(context: Context, ask: GateAsk): Promise<never> {
  const { principal, run, key, clock } = context
  const location = locationOf(context, ask.home)
  const verdict = principal.lease === null ? undefined : allows(principal.lease, { location, action: 'propose' })
  if (verdict === undefined) fail('LEASE_REQUIRED', { action: 'propose' })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, action: 'propose' })
  const request: GateRequest = ask
  const { card } = await context.write(
    async (tx) => {
      const subject = await subjectNow(tx, request)
      if (subject.changes.length === 0 && subject.commits.length === 0)
        fail('INVALID_INPUT', { reason: 'there is nothing to approve' })
      const asker = { did: principal.did, name: principal.name, run, lease: principal.leaseHash }
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

/**
 * Decide on a card and, where it is approved, act: in one transaction, with its record.
 * @throws GATE_STALE with the field that differs, after the card was voided; GRANT_INVALID; NOT_FOUND
 * @clause L1.7
 */
export async function decideGate(
  context: Context,
  input: { readonly card: string; readonly approval: unknown },
  decision: 'approve' | 'reject',
): Promise<{ readonly card: string; readonly outcome: 'approved' | 'rejected'; readonly commit?: string }> {
  const decided = await context.write(
    (tx) =>
      decide(tx, {
        id: input.card,
        approval: input.approval,
        decision,
        node: context.key.did,
        now: context.clock.now(),
        recompute: (request) => subjectIfThere(tx, request),
        act: async (entry) => effectOf(entry.card.kind).act(tx, context, entry),
      }),
    toldOf,
  )
  const card = decided.entry.card.id
  if (decided.outcome === 'void') fail('GATE_STALE', { card, field: decided.field })
  return decided.outcome === 'approved'
    ? { card, outcome: 'approved', commit: decided.value.commit }
    : { card, outcome: 'rejected' }
}

function toldOf(decided: Decided<{ readonly commit: string }>) {
  const { card } = decided.entry
  const told = { home: card.home, kind: card.kind, card: card.id, digest: cardDigest(card), outcome: decided.outcome }
  if (decided.outcome === 'void') return { ...told, field: decided.field }
  const { approval } = decided
  return decided.outcome === 'approved' ? { ...told, approval, commit: decided.value.commit } : { ...told, approval }
}

async function subjectNow(view: View, request: GateRequest): Promise<GateSubject> {
  const { home = '' } = request
  // who decides is who speaks for the owner now: an old key approves nothing any more
  const owner = currentKey(view, getHome(view, home).owner)
  const refs = await listRefs(view, home)
  const guarded = refs.filter((ref) => ref.protected).map(({ branch }) => branch)
  const policy = policyDigest({ home, owner, protected: guarded })
  return effectOf(request.kind).subjectOf(view, request, { home, owner, policy })
}

async function subjectIfThere(view: View, request: GateRequest): Promise<GateSubject | undefined> {
  try {
    return await subjectNow(view, request)
  } catch (error) {
    if (GONE.some((code) => isNodeError(error, code))) return undefined
    throw error
  }
}

const effectOf = (kind: GateKind): Effect => EFFECTS[kind]

/** What the commit says: fixed words, and the card that leads to everything else. */
const wordsOf = (context: Context, card: string, message: string) => ({
  author: authorOf(context),
  message,
  trailers: { ...trailersOf(context), 'Csb-Gate': card },
  now: context.clock.now(),
})

const branchesOf = ({ home = '', from = '', into = '' }: GateRequest): MergeBranches => ({ home, from, into })

const isApproved = ({ ours, theirs, tree, digest }: MergePreview, card: Card): boolean =>
  ours === card.base && theirs === card.head && tree === card.result_tree && digest === card.diff

function mergeSubject(view: View, branches: MergeBranches, own: Own): GateSubject {
  const { ours, theirs, tree, manifest, conflicts } = previewMerge(view, branches)
  const { home, from, into } = branches
  return {
    ...own,
    kind: 'merge',
    target: into,
    source: from,
    base: ours,
    head: theirs,
    resultTree: tree,
    changes: manifest,
    conflicts: conflicts.length,
    commits: commitsBetween(view, home, { from: theirs, without: ours, limit: LIMITS.gateCommits }),
  }
}

function relabelSubject(view: View, request: GateRequest, own: Own): GateSubject {
  const { home } = own
  const { branch = '', path = '', label = '' } = request
  const { base, oid, files } = previewRelabel(view, { home, branch, path, label: parseLabel(label) })
  if (files.length > LIMITS.gateChanges) fail('TOO_LARGE', { maxChanges: LIMITS.gateChanges })
  return {
    ...own,
    kind: 'lower-label',
    target: `${branch}:${path}`,
    source: label,
    base,
    head: oid,
    resultTree: null,
    changes: files.map((file) => relabelled(file.path, file.mode, file.bytes, file.before, file.after)),
    conflicts: 0,
    commits: [],
  }
}

function noteSubject(view: View, request: GateRequest, own: Own): GateSubject {
  const { home } = own
  const { note = '', label = '' } = request
  const state = getState(view, home, note) ?? fail('NOT_FOUND', { home, note })
  const bytes = readBlob(view, home, state.oid)
  return {
    ...own,
    kind: 'lower-label',
    target: note,
    source: label,
    base: state.oid,
    head: state.oid,
    resultTree: null,
    changes: [relabelled(state.path, null, bytes, state.label, formatLabel(parseLabel(label)))],
    conflicts: 0,
    commits: [],
  }
}

/** The words stay, the label does not. */
function relabelled(path: string, mode: string | null, bytes: Uint8Array, before: string, after: string): GateChange {
  const sha256 = sha256Hex(bytes)
  const size = bytes.byteLength
  return {
    op: 'label',
    path,
    mode_old: mode,
    mode_new: mode,
    sha256_old: sha256,
    sha256_new: sha256,
    size_old: size,
    size_new: size,
    label_old: before,
    label_new: after,
  }
}
