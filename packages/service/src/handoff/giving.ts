/**
 * Handing work to a peer: a grant that names it and holds a lease for one branch, a package with what it may see, and
 * a result that is checked against the same lease before it becomes that branch.
 * @clause L4.4
 */
import {
  dominates,
  fail,
  fromUtf8,
  parseLabel,
  utf8,
  type Clearance,
  type Grant,
  type Handoff,
  type Lease,
  type Status,
} from '@csb/core'
import {
  charge,
  checkHeld,
  draftGrant,
  grantHash,
  hexOf,
  leaseOf,
  leftOf,
  meet,
  signGrant,
  storeGrant,
  trusted,
  type Unit,
} from '@csb/authority'
import { commitFiles, getRef } from '@csb/files'
import { getNote, notePath, renderNote } from '@csb/memory'
import { createHandoff, handoffBranch, newHandoffId, openResult, type HandoffFile } from '@csb/sync'
import { key, type Transaction, type View } from '@csb/store'
import { trailersOf } from '../session/authorship.ts'
import { peerRights } from '../session/credentials.ts'
import { refreshStatuses, statusesFor } from '../revocation/freshness.ts'
import type { Wish } from '../gate/subjects.ts'
import { labelOfSession } from '../session/taint.ts'
import { mintThroughGate } from '../session/minting.ts'
import { checkReach, locationOf, type Context } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { nodeChain } from '../runs/lease.ts'
import { showing } from '../revocation/spreading.ts'

const MEMORY = 'memory'
const DEFAULT_TTL_MS = 10 * 60_000
const RESULTS = '/results'

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

/** Mint, send, check what comes back, and make it a branch. */
export async function giveHandoff(context: Context, input: Offer) {
  const home = context.identity.home ?? fail('NOT_FOUND', { reason: 'this node has no home' })
  const clearance = clearanceFor(context, home, input)
  const base = getRef(context.view, home, 'main')?.commit ?? null
  const files = notesOf(context, home, input.notes ?? [], clearance)
  await refreshStatuses(context, nodeChain(context.view))
  const status = await statusesFor(context, nodeChain(context.view))
  const handoff = await mintThroughGate(
    context,
    () => wishOf(context, home, clearance, input),
    (tx) => mint(tx, context, { home, base, files, clearance, status }, input),
    (made) => ({
      handoff: made.id,
      to: input.did,
      agent: input.agent,
      files: made.files.length,
      withheld: files.withheld,
    }),
  )
  await showing(context, input.did, handoff.chain as unknown as Grant[])
  const result = await exchange(context, input.did, handoff)
  const leaf = handoff.chain.at(-1) as unknown as Grant
  const lease = leaseOf(leaf) ?? fail('GRANT_INVALID', { reason: 'chain_shape' })
  const checked = openResult(result, handoff, lease, grantHash(leaf))
  // done by the caller, on the word of the peer that held this lease
  const acting = context.become(context.principal, context.run, grantHash(leaf))
  return acting.write(
    (tx) => {
      // what was lent may have ended while the peer was at work: then nothing of it comes in
      checkHeld(tx, { chain: handoff.chain as unknown as Grant[], leaseHash: grantHash(leaf) }, context.clock.now())
      const commit = checked.outcome === 'completed' ? commitResult(tx, context, handoff, checked) : undefined
      const summary = {
        id: handoff.id,
        outcome: checked.outcome,
        code: checked.code,
        text: checked.text,
        withheld: files.withheld,
      }
      const done = {
        ...summary,
        ...(commit === undefined ? {} : { branch: handoffBranch(handoff.id), commit: commit.commit }),
      }
      tx.putJson(key('handoff', handoff.id), done)
      return done
    },
    (done) => ({
      handoff: handoff.id,
      from: input.did,
      agent: input.agent,
      outcome: done.outcome,
      ...('commit' in done ? { commit: done.commit } : {}),
    }),
  )
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

type Notes = { readonly shown: readonly HandoffFile[]; readonly withheld: readonly string[] }

/** The notes as files: those the caller may read and the peer may see; the rest is named, to the caller only. */
function notesOf(context: Context, home: string, ids: readonly string[], clearance: Clearance): Notes {
  const shown: HandoffFile[] = []
  const withheld: string[] = []
  for (const id of ids) {
    checkReach(context, {
      location: locationOf(context, home),
      action: 'read',
      branch: MEMORY,
      path: `/${notePath(id)}`,
    })
    const note = getNote(context.view, home, id, context.clearance)
    if (!dominates(clearance, note.label)) {
      withheld.push(id)
      continue
    }
    shown.push({ path: notePath(id), text: fromUtf8(renderNote(note)) ?? '', label: note.label })
  }
  return { shown, withheld }
}

type Minting = {
  readonly home: string
  readonly base: string | null
  readonly files: Notes
  readonly clearance: Clearance
  readonly status: readonly Status[]
}

/** The lease of a handoff, as wide as it was asked for; what the caller or the node may not do is taken off it. */
const leaseAsked = (context: Context, home: string, branch: string, clearance: Clearance, input: Offer): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [locationOf(context, home)],
  actions: ['read', 'propose'],
  paths: [...(input.paths ?? [RESULTS])],
  branches: [branch],
  labels_max: clearance.level,
  ...(clearance.tags.length > 0 ? { label_tags: [...clearance.tags] } : {}),
})

/** A handoff as a card shows it: who gets it, how far it reaches at most, and a digest of all that goes along. */
function wishOf(context: Context, home: string, clearance: Clearance, input: Offer): Wish {
  const parent =
    nodeChain(context.view).at(-1) ?? fail('LEASE_REQUIRED', { reason: 'the owner granted this node nothing' })
  const lease = leaseAsked(context, home, handoffBranch('*'), clearance, input)
  // what can not be is not asked for
  lentOf(context.view, context, parent, lease)
  return {
    operation: 'handoff.offer',
    to: { name: trusted(context.view, input.did)?.name ?? `agent ${input.agent}`, did: input.did },
    lease,
    ttl_ms: input.ttl_ms ?? DEFAULT_TTL_MS,
    parent: grantHash(parent),
    content: `sha256:${hexOf(input)}`,
  }
}

function mint(
  tx: Transaction,
  context: Context,
  { home, base, files, clearance, status }: Minting,
  input: Offer,
): Handoff {
  const now = context.clock.now()
  const ttlMs = input.ttl_ms ?? DEFAULT_TTL_MS
  const id = newHandoffId(now)
  const parent = nodeChain(tx)
  const root = parent.at(-1) ?? fail('LEASE_REQUIRED', { reason: 'the owner granted this node nothing' })
  const asked = leaseAsked(context, home, handoffBranch(id), clearance, input)
  const lease = lentOf(tx, context, root, asked)
  const grant = signGrant(
    draftGrant({
      type: 'single',
      from: { name: context.identity.name, did: context.key.did },
      to: { name: `handoff ${id}`, did: input.did },
      audience: [input.did],
      scope: [`agent-${input.agent}`],
      level: 'request',
      now,
      ttlMs,
      parent: root,
      task: id,
      lease,
    }),
    context.key,
  )
  const chain = [...parent, grant]
  storeGrant(tx, { chain })
  // nobody here sees what is used there: all of it is counted as used now
  if (lease.budget !== undefined && context.principal.leaseHash !== null)
    charge(tx, context.principal.leaseHash, lease.budget)
  return createHandoff(
    {
      id,
      key: context.key,
      to: input.did,
      agent: input.agent,
      home,
      base,
      text: input.text,
      context: input.context ?? null,
      files: files.shown,
      chain,
      taint: labelOfSession(context, tx),
      expiresAt: now + ttlMs,
      status,
    },
    clearance,
    now,
  )
}

/** What of a lease the caller may lend: what the caller may not do the node does not lend it. @throws SCOPE_EXCEEDED */
function lentOf(view: View, context: Context, root: Grant, asked: Lease): Lease {
  const caller = context.principal.lease ?? fail('LEASE_REQUIRED')
  const own = leaseOf(root) ?? fail('LEASE_REQUIRED', { reason: 'the grant of this node holds no lease' })
  const both = meet(own, caller)
  const common = both === null ? null : meet(both, asked)
  return withLeft(view, context, common ?? fail('SCOPE_EXCEEDED', { field: 'locations' }))
}

/** A budget that goes along is what is left of the caller's. */
function withLeft(view: View, { principal: { leaseHash } }: Context, lease: Lease): Lease {
  if (lease.budget === undefined || leaseHash === null) return lease
  const left = Object.entries(lease.budget).map(([unit, most]) => {
    const amount = Math.min(most, leftOf(view, leaseHash, unit as Unit))
    // nothing could begin with it there
    if (amount === 0) fail('SCOPE_EXCEEDED', { field: `budget.${unit}`, lease: leaseHash })
    return [unit, amount]
  })
  return { ...lease, budget: Object.fromEntries(left) as NonNullable<Lease['budget']> }
}

async function exchange(context: Context, did: string, handoff: Handoff): Promise<unknown> {
  const port = await context.peers.session(did, 'handoff', {}, { signal: context.signal })
  try {
    await port.send(handoff)
    const result = await resultFrom(port, did)
    await port.close()
    return result
  } catch (error) {
    port.abort(error as Error)
    throw error
  }
}

/** The other side says now and then that it is still at work; the first other message is the result. */
async function resultFrom(port: MessagePort, did: string): Promise<unknown> {
  for (;;) {
    const message = (await port.receive()) ?? fail('PEER_UNREACHABLE', { did })
    if ((message as { working?: unknown }).working !== true) return message
  }
}

/** What came back becomes a branch of the home: nothing else moves. */
function commitResult(
  tx: Transaction,
  context: Context,
  handoff: Handoff,
  result: { files: readonly { path: string; text: string }[] },
) {
  return commitFiles(tx, {
    home: handoff.home,
    branch: handoffBranch(handoff.id),
    ...(handoff.base === null ? {} : { from: handoff.base }),
    changes: result.files.map(({ path, text }) => ({ path, bytes: utf8(text) })),
    labels: result.files.map(({ path }) => ({
      path,
      // it was made on another node: no better than what it read there, and never the owner's word
      label: { ...parseLabel(handoff.taint), integrity: 'external' as const },
    })),
    // who made it, not who asked for it
    author: { name: trusted(tx, handoff.to)?.name ?? `agent ${handoff.agent}`, did: handoff.to },
    message: `result of ${handoff.id}`,
    trailers: trailersOf(context),
    now: context.clock.now(),
  })
}
