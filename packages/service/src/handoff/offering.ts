/**
 * What an offer of work comes to: which notes go along as they are now, which are withheld, and the lease as it will be
 * given, met with what the caller and this node may do. Computed for the card that a person looks at and again in the
 * batch that makes the grant, so that a note that was edited meanwhile makes another wish.
 * @clause L1.7, L4.4
 */
import { dominates, fail, formatLabel, fromUtf8, sha256Hex, type Clearance, type Grant, type Lease } from '@csb/core'
import { grantHash, leaseOf, leftOf, meet, type Unit } from '@csb/authority'
import { MEMORY, readBlob } from '@csb/files'
import { getNote, getState, notePath } from '@csb/memory'
import { handoffBranch, type HandoffFile } from '@csb/sync'
import type { View } from '@csb/store'
import type { Wish } from '../gate/wishes.ts'
import { checkReach, locationOf, type Context } from '../operation.ts'
import { nodeChain } from '../runs/lease.ts'
import { peerRights } from '../session/credentials.ts'

const DEFAULT_TTL_MS = 10 * 60_000
const RESULTS = '/results'
/** Withheld notes that a card tells one by one. */
const TOLD = 32

export type Offer = {
  readonly did: string
  readonly agent: string
  readonly text: string
  readonly context?: string
  readonly notes?: readonly string[]
  readonly paths?: readonly string[]
  readonly labels_max?: Lease['labels_max']
  readonly ttl_ms?: number
}

type SentNote = HandoffFile & { readonly id: string; readonly oid: string; readonly sha256: string }

export type Offering = {
  readonly home: string
  /** what the peer may see of the home */
  readonly clearance: Clearance
  readonly notes: readonly SentNote[]
  readonly withheld: readonly { readonly id: string; readonly label: string }[]
  /** grants of this node, root first */
  readonly chain: readonly Grant[]
  readonly parent: Grant
  /** for any branch of a handoff; of a budget all that may be given */
  readonly lease: Lease
  readonly ttlMs: number
}

/**
 * @throws CLEARANCE, SCOPE_EXCEEDED with the field, LEASE_REQUIRED, NOT_FOUND: what can not be is not asked for
 * @clause L4.2, L4.4
 */
export function offeringOf(context: Context, view: View, input: Offer): Offering {
  const home = context.identity.home ?? fail('NOT_FOUND', { reason: 'this node has no home' })
  const clearance = clearanceFor(context, home, input)
  const chain = nodeChain(view)
  const parent = chain.at(-1) ?? fail('LEASE_REQUIRED', { reason: 'the owner granted this node nothing' })
  const asked: Lease = {
    type: 'urn:csb:lease:1',
    locations: [locationOf(context, home)],
    actions: ['read', 'propose'],
    paths: [...(input.paths ?? [RESULTS])],
    branches: [handoffBranch('*')],
    labels_max: clearance.level,
    ...(clearance.tags.length > 0 ? { label_tags: [...clearance.tags] } : {}),
  }
  const lease = lentOf(context, parent, asked)
  const notes = notesOf(context, view, home, input.notes ?? [])
  return {
    home,
    clearance,
    notes: notes.filter(({ label }) => dominates(clearance, label)),
    withheld: notes
      .filter(({ label }) => !dominates(clearance, label))
      .map(({ id, label }) => ({ id, label: formatLabel(label) })),
    chain,
    parent,
    lease,
    ttlMs: input.ttl_ms ?? DEFAULT_TTL_MS,
  }
}

/** An offering as a card shows it: all of what goes, and nothing that changes by being asked again. */
export function wishOf({ notes, withheld, chain, parent, lease, ttlMs }: Offering, input: Offer): Wish {
  return {
    operation: 'handoff.offer',
    to: { name: `agent ${input.agent}`, did: input.did },
    from: null,
    lease,
    grant: {
      level: 'request',
      scope: [`agent-${input.agent}`],
      audience: [input.did],
      depth: 0,
      task: null,
      max_age_ms: parent.delegation.revocation.max_age_ms,
    },
    work: {
      agent: input.agent,
      text: input.text,
      context: input.context ?? null,
      withheld: withheld.slice(0, TOLD),
      more_withheld: Math.max(withheld.length - TOLD, 0),
    },
    notes: notes.map(({ id, oid, sha256 }) => ({ id, oid, sha256 })),
    ttl_ms: ttlMs,
    expires_at: null,
    token: false,
    parent: grantHash(parent),
    chain,
    document: null,
  }
}

/**
 * The lease of one handoff: for its own branch, and of a budget what is left of the caller's.
 * @throws SCOPE_EXCEEDED
 */
export function leaseFor(view: View, { principal: { leaseHash } }: Context, lease: Lease, id: string): Lease {
  const own = meet(lease, { ...lease, branches: [handoffBranch(id)] }) ?? fail('SCOPE_EXCEEDED', { field: 'branches' })
  if (own.budget === undefined || leaseHash === null) return own
  const left = Object.entries(own.budget).map(([unit, most]) => {
    const amount = Math.min(most, leftOf(view, leaseHash, unit as Unit))
    // nothing could begin with it there
    if (amount === 0) fail('SCOPE_EXCEEDED', { field: `budget.${unit}`, lease: leaseHash })
    return [unit, amount]
  })
  return { ...own, budget: Object.fromEntries(left) as NonNullable<Lease['budget']> }
}

/** What the peer may see of the home, by the owner's grant to it; the caller may ask for less. */
function clearanceFor(context: Context, home: string, input: Offer): Clearance {
  const rights = peerRights(context, input.did, home)
  const clearance = rights.clearance ?? { level: 'public' as const, tags: [] }
  if (input.labels_max === undefined) return clearance
  if (!dominates(clearance, { level: input.labels_max, integrity: 'owner', tags: [] }))
    fail('CLEARANCE', { level: input.labels_max })
  return { ...clearance, level: input.labels_max }
}

/** The notes as they lie there, byte for byte: those that the caller may read, each once. */
function notesOf(context: Context, view: View, home: string, ids: readonly string[]): SentNote[] {
  return [...new Set(ids)].map((id) => {
    const path = notePath(id)
    checkReach(context, { location: locationOf(context, home), action: 'read', branch: MEMORY, path: `/${path}` })
    const { label } = getNote(view, home, id, context.clearance)
    const { oid } = getState(view, home, id) ?? fail('NOT_FOUND', { home, id })
    const bytes = readBlob(view, home, oid)
    return { id, path, oid, sha256: sha256Hex(bytes), text: fromUtf8(bytes) ?? fail('MALFORMED', { id }), label }
  })
}

/** What of a lease the caller may lend: what the caller may not do the node does not lend it. @throws SCOPE_EXCEEDED */
function lentOf(context: Context, root: Grant, asked: Lease): Lease {
  const caller = context.principal.lease ?? fail('LEASE_REQUIRED')
  const own = leaseOf(root) ?? fail('LEASE_REQUIRED', { reason: 'the grant of this node holds no lease' })
  const both = meet(own, caller)
  const common = both === null ? null : meet(both, asked)
  return common ?? fail('SCOPE_EXCEEDED', { field: 'locations' })
}
