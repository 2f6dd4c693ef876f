/**
 * L4.4 operations: hand work to a peer, and take it in. The sender mints a grant that names the peer and holds a
 * lease for one branch; the peer runs its own agent under what is left of that lease after its own ceiling; the
 * result is checked against the same lease and becomes a branch.
 * @clause L4.4
 */
import {
  dominates,
  fail,
  fromUtf8,
  parseLabel,
  toNodeError,
  utf8,
  type Clearance,
  type Grant,
  type Handoff,
  type Lease,
} from '@csb/core'
import { getAgent, type AgentResult, type AttachedAgent } from '@csb/agents'
import {
  draftGrant,
  effectiveNow,
  grantHash,
  isAtMost,
  isRevoked,
  leaseOf,
  meet,
  signGrant,
  storeGrant,
  trusted,
  verifyChain,
} from '@csb/authority'
import { commitFiles, getRef } from '@csb/files'
import { getNote, notePath, renderNote } from '@csb/memory'
import {
  checkFiles,
  createHandoff,
  createResult,
  handoffBranch,
  handoffHash,
  newHandoffId,
  openHandoff,
  openResult,
  type HandoffFile,
} from '@csb/sync'
import { key, type Transaction } from '@csb/store'
import { authorOf, trailersOf } from '../authorship.ts'
import { peerRights } from '../credentials.ts'
import { checkReach, locationOf, type Context, type Operation } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { nodeChain, prepareRun, visitorCeiling } from '../runs.ts'

type Offer = {
  readonly did: string
  readonly agent: string
  readonly text: string
  readonly context?: string
  readonly notes?: readonly string[]
  readonly paths?: readonly string[]
  readonly labels_max?: Lease['labels_max']
  readonly ttl_ms?: number
}

const MEMORY = 'memory'
const DEFAULT_TTL_MS = 10 * 60_000
const RESULTS = '/results'

export const handoffOperations: readonly Operation[] = [
  {
    name: 'handoff.offer',
    input: 'HandoffOffer',
    kind: 'call',
    open: 'lease',
    needs: (_input: Offer, parts) => ({
      location: locationOf(parts, parts.identity.home ?? 'none'),
      action: 'send',
      branch: MEMORY,
    }),
    run: offer,
  },
  { name: 'handoff.receive', input: 'HandoffReceive', kind: 'session', open: 'peer', run: receive },
]

async function offer(context: Context, input: Offer) {
  const home = context.identity.home ?? fail('NOT_FOUND', { reason: 'this node has no home' })
  const clearance = clearanceFor(context, home, input)
  const base = getRef(context.view, home, 'main')?.commit ?? null
  const files = notesOf(context, home, input.notes ?? [], clearance)
  const handoff = await context.write(
    (tx) => mint(tx, context, { home, base, files, clearance }, input),
    (made) => ({
      handoff: made.id,
      to: input.did,
      agent: input.agent,
      files: made.files.length,
      withheld: files.withheld,
    }),
  )
  const result = await exchange(context, input.did, handoff)
  const leaf = handoff.chain.at(-1) as unknown as Grant
  const lease = leaseOf(leaf) ?? fail('GRANT_INVALID', { reason: 'chain_shape' })
  const checked = openResult(result, handoff, lease, grantHash(leaf))
  return context.write(
    (tx) => {
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
}

function mint(tx: Transaction, context: Context, { home, base, files, clearance }: Minting, input: Offer): Handoff {
  const now = context.clock.now()
  const ttlMs = input.ttl_ms ?? DEFAULT_TTL_MS
  const id = newHandoffId(now)
  const parent = nodeChain(tx)
  const root = parent.at(-1) ?? fail('LEASE_REQUIRED', { reason: 'the owner granted this node nothing' })
  const asked: Lease = {
    type: 'urn:csb:lease:1',
    locations: [locationOf(context, home)],
    actions: ['read', 'propose'],
    paths: [...(input.paths ?? [RESULTS])],
    branches: [handoffBranch(id)],
    labels_max: clearance.level,
    ...(clearance.tags.length > 0 ? { label_tags: [...clearance.tags] } : {}),
  }
  const caller = context.principal.lease ?? fail('LEASE_REQUIRED')
  const own = leaseOf(root) ?? fail('LEASE_REQUIRED', { reason: 'the grant of this node holds no lease' })
  const lease = meet(meet(own, caller) ?? own, asked) ?? fail('SCOPE_EXCEEDED', { field: 'locations' })
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
      taint: { level: 'public', integrity: 'owner', tags: [] },
      expiresAt: now + ttlMs,
    },
    clearance,
    now,
  )
}

async function exchange(context: Context, did: string, handoff: Handoff): Promise<unknown> {
  const port = await context.peers.session(did, 'handoff', {}, { signal: context.signal })
  try {
    await port.send(handoff)
    const result = (await port.receive()) ?? fail('PEER_UNREACHABLE', { did })
    await port.close()
    return result
  } catch (error) {
    port.abort(error as Error)
    throw error
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
      label: { ...parseLabel(handoff.taint), integrity: 'agent' as const },
    })),
    author: authorOf(context),
    message: `result of ${handoff.id}`,
    trailers: trailersOf(context),
    now: context.clock.now(),
  })
}

/** The other side: check the package, run the agent under what is left of its lease, sign what came of it. */
async function receive(context: Context, _input: unknown, port: MessagePort): Promise<void> {
  const from = context.principal.did ?? fail('UNAUTHENTICATED')
  const now = effectiveNow(context.view, context.clock.now())
  const handoff = openHandoff(await port.receive(), from, context.key.did, { level: 'sealed', tags: ['*'] }, now)
  const agent = getAgent(context.view, handoff.agent)
  const { lease, leafHash } = accept(context, handoff, agent, now)
  await context.write(
    (tx) => {
      // a package works once, also when its first run was cut short; and no peer writes over what this node offered
      if (tx.has(key('handoff', handoff.id))) fail('REPLAYED', { handoff: handoff.id })
      tx.putJson(key('handoff', handoff.id), { id: handoff.id, from, state: 'running', hash: handoffHash(handoff) })
    },
    () => ({ handoff: handoff.id, from, agent: agent.id, lease: leafHash }),
  )
  const { result, failure } = await work(context, handoff, lease, agent.id)
  const { seq, value } = await context.tell(
    (tx) => {
      const told = { outcome: failure === null ? ('completed' as const) : ('failed' as const), code: failure }
      tx.putJson(key('handoff', handoff.id), { id: handoff.id, from, state: told.outcome })
      return told
    },
    (told) => ({ handoff: handoff.id, to: from, ...told }),
  )
  await port.send(
    createResult(
      {
        handoff: handoff.id,
        to: from,
        outcome: value.outcome,
        code: value.code,
        text: result.text ?? '',
        files: value.outcome === 'completed' ? [...(result.files ?? [])] : [],
        lease: leafHash,
        record: { seq: seq.seq, leaf: `sha256:${seq.leaf}` },
        finished_at: context.clock.now(),
      },
      context.key,
    ),
  )
  await port.close()
}

/** The chain must lead from an origin that is trusted here to this node; the lease it ends in is met with the ceiling. */
function accept(
  context: Context,
  handoff: Handoff,
  agent: AttachedAgent,
  now: number,
): { lease: Lease; leafHash: string } {
  const verified = verifyChain({
    chain: handoff.chain,
    now,
    audience: context.key.did,
    isRevoked: (hash, by) => isRevoked(context.view, hash, by),
    trustedRoot: (did) => trusted(context.view, did),
  })
  const { leaf } = verified
  if (leaf.delegation.grantee_key !== context.key.did || leaf.delegation.task !== handoff.id) {
    fail('GRANT_INVALID', { reason: 'holder_mismatch' })
  }
  const origin = trusted(context.view, verified.rootDid)
  if (origin === undefined || !isAtMost('request', origin.ceiling)) fail('DENIED', { reason: 'over_ceiling' })
  if (agent.accept === 'nobody') fail('DENIED', { reason: 'that agent takes no work from other nodes' })
  const given = verified.lease ?? fail('LEASE_REQUIRED', { reason: 'the handoff holds no lease' })
  const ceiling: Lease = {
    type: 'urn:csb:lease:1',
    locations: given.locations,
    actions: ['read', 'propose'],
    paths: ['/'],
    branches: [handoffBranch(handoff.id)],
    labels_max: 'sealed',
    label_tags: ['*'],
  }
  return { lease: meet(given, ceiling) ?? fail('SCOPE_EXCEEDED', { field: 'actions' }), leafHash: verified.leafHash }
}

type Worked = { readonly result: AgentResult; readonly failure: string | null }

async function work(context: Context, handoff: Handoff, lease: Lease, agentId: string): Promise<Worked> {
  const agent = getAgent(context.view, agentId)
  let result: AgentResult = {}
  try {
    const prepared = await prepareRun(context, {
      agent,
      task: handoff.id,
      input: {
        handoff: { id: handoff.id, from: handoff.from, branch: handoffBranch(handoff.id), paths: lease.paths ?? [] },
        message: { role: 'ROLE_USER', parts: [{ text: handoff.task.text }] },
        files: handoff.files.map(({ path, text }) => ({ path, text })),
      },
      // its reach is the package and its answer: nothing of this node's own home
      ceiling: visitorCeiling(locationOf(context, context.identity.home ?? 'none')),
      signal: context.signal,
    })
    for await (const event of prepared.events()) if (event.kind === 'result') result = event.result
    checkFiles(lease, handoff, result.files ?? [])
    return { result, failure: null }
  } catch (error) {
    return { result: { text: result.text ?? '' }, failure: toNodeError(error).code }
  } finally {
    context.runs.reads.delete(handoff.id)
  }
}
