/**
 * The lease of a run: a child of the owner's grant to this node, for one task, and the ceilings it is held under. What
 * is left of a ceiling after the node's own lease is all that a run may reach.
 * @clause L1.2, L1.5
 */
import { fail, type Clearance, type Grant, type Lease } from '@csb/core'
import {
  charge,
  draftGrant,
  effectiveNow,
  findGrant,
  inheritTaint,
  meet,
  payFor,
  signGrant,
  storeGrant,
  taintLease,
  tokenHash,
} from '@csb/authority'
import { key, type ReadEntry, type Transaction, type View } from '@csb/store'
import type { Parts } from '../operation.ts'

/** A run's lease outlives the agent's deadline by this, so that its result can still be committed. */
const GRACE_MS = 60_000

/** The branch of a run. */
export const runBranch = (task: string): string => `runs/${task}`

/** What a lease is minted for. */
export type LeaseInit = {
  readonly agent: { readonly id: string; readonly name: string }
  /** id of the A2A task, or of the handoff */
  readonly task: string
  /** the most it may reach */
  readonly ceiling: Lease
  /** hash of the grant that pays for it; null where nobody does */
  readonly payer: string | null
  /** ms since epoch: it ends with what it is done on; absent or null: as long as the agent may take */
  readonly endsAt?: number | null
  /** what it is given from outside to begin with; absent: nothing */
  readonly outside?: readonly ReadEntry[]
}

export type Minted = { readonly grant: Grant; readonly lease: Lease; readonly chain: readonly Grant[] }

/** A child of the owner's grant to this node: for one task, for the time its agent may take, never passed on. */
export function mintRunLease(
  tx: Transaction,
  parts: Parts,
  init: LeaseInit,
  timeoutMs: number,
  token: string | undefined,
): Minted {
  // by the time it will be judged by: where the clock was set back, a lease of its time would be over at once
  const now = effectiveNow(tx, parts.clock.now())
  const parent = nodeChain(tx)
  const root = parent.at(-1) ?? fail('LEASE_REQUIRED', { reason: 'the owner granted this node nothing' })
  const own =
    root.authorization_details?.[0] ?? fail('LEASE_REQUIRED', { reason: 'the grant of this node holds no lease' })
  const lease = meet(own, init.ceiling) ?? fail('SCOPE_EXCEEDED', { field: 'locations' })
  const { did } = parts.key
  const endsAt = init.endsAt ?? Number.MAX_SAFE_INTEGER
  if (endsAt <= now) fail('LEASE_EXPIRED')
  const grant = signGrant(
    draftGrant({
      type: 'single',
      from: { name: root.delegation.grantee, did },
      to: { name: init.agent.name.normalize('NFC'), did },
      audience: [did],
      scope: [`agent-${init.agent.id}`],
      level: 'request',
      now,
      ttlMs: Math.min(timeoutMs + GRACE_MS, endsAt - now),
      parent: root,
      task: init.task,
      lease,
    }),
    parts.key,
  )
  const chain = [...parent, grant]
  const hash = storeGrant(tx, { chain, ...(token === undefined ? {} : { tokenHash: tokenHash(token) }) })
  for (const name of [hash, init.task]) taintLease(tx, name, init.outside ?? [])
  if (init.payer !== null) {
    // what is said to it may come from what the sender has read
    inheritTaint(tx, init.payer, hash)
    // and what it says may come from there
    inheritTaint(tx, hash, init.task)
    payFor(tx, hash, init.payer)
    // all of its time ahead: what it did not take is given back, and a crash gives nothing back
    charge(tx, init.payer, { wall_ms: timeoutMs })
  }
  return { grant, lease, chain }
}

/** The chain by which the owner lets this node act, root first; empty where there is none. */
export function nodeChain(view: View): readonly Grant[] {
  const hash = view.getJson<string>(key('meta', 'node-grant'))
  return hash === undefined ? [] : findGrant(view, hash)
}

/** What a message that carries no authority may reach: nothing of the home. Its answer is all that comes of it. */
export const visitorCeiling = (location: string): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [location],
  actions: ['list'],
})

/** What a run on behalf of somebody else may reach: its own branch, up to the level that somebody may see. */
export const runCeiling = (location: string, task: string, clearance: Clearance): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [location],
  actions: ['list', 'read', 'write'],
  paths: ['/'],
  branches: [runBranch(task)],
  labels_max: clearance.level,
  ...(clearance.tags.length > 0 ? { label_tags: [...clearance.tags] } : {}),
})

/**
 * What a run for this node's own people may reach: what they may see, to write its own branch and notes, and to propose
 * what it wrote for `main`, where its branch began. Never what they may do beyond that: it neither sends, nor changes who
 * may do what, and what it proposes waits for a person.
 */
export const ownCeiling = (location: string, task: string, clearance: Clearance): Lease => ({
  ...runCeiling(location, task, clearance),
  actions: ['list', 'read', 'write', 'propose'],
  branches: [runBranch(task), 'memory', 'main'],
  capabilities: ['B'],
})
