/**
 * Who is asking, and by what right: from the evidence a door saw to a principal with the lease it holds now.
 *
 * Nothing falls back to the owner's or the node's own rights: no evidence is no lease. The grant behind a token is
 * verified at every use, since it may have ended meanwhile. A lease whose time is over still shows what it showed and
 * changes nothing any more; one that was revoked shows nothing either.
 * @clause L1.1, L1.3
 */
import { fail, isNodeError, type Grant, type Lease } from '@csb/core'
import type { View } from '@csb/store'
import { verifyChain, type VerifiedChain } from './chain.ts'
import type { ChainCache } from './chain-cache.ts'
import { isSameOwner } from './key-line.ts'
import { reasonOf } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { isRevoked } from './revocation.ts'
import { chainOfToken, chainsOfHolder, storedChain } from './stored-grants.ts'
import { trusted } from './trust.ts'

/** What a door saw. */
export type Evidence =
  /** a bearer token */
  | { readonly kind: 'bearer'; readonly token: string }
  /** the other end of a stream whose key is proved */
  | { readonly kind: 'peer'; readonly did: string }
  /** nothing */
  | { readonly kind: 'nobody' }
  /** the node's own jobs */
  | { readonly kind: 'node' }

export type Principal = {
  /** `visitor` is a peer the owner did not list, `agent` a run of an agent of this node */
  readonly kind: 'bearer' | 'peer' | 'visitor' | 'node' | 'agent'
  /** null for nobody in particular */
  readonly did: string | null
  /** name for people: of a peer the owner's name for it, else as the owner's grant has it */
  readonly name: string
  /** hash of the grant that holds the lease */
  readonly leaseHash: string | null
  readonly lease: Lease | null
  /** grants behind the lease, root first */
  readonly chain: readonly Grant[]
}

export type PrincipalOptions = {
  /** did of this node */
  readonly self: string
  /** did of this node's owner: only leases that begin with it, or with another key of that owner, count */
  readonly owner: string
  /** ms since epoch */
  readonly now: number
  /** The request only looks: an expired lease serves for that. Not one that was made for a single task. */
  readonly isLooking?: boolean
  /** chains whose signatures were checked before; whether they hold now is asked all the same */
  readonly chains?: ChainCache
}

/**
 * @throws UNAUTHENTICATED for an unknown token or a grant that does not hold any more
 * @throws LEASE_REQUIRED for nobody, and where the grant has no lease
 * @throws LEASE_EXPIRED, LEASE_REVOKED
 * @clause L1.1, L1.3
 */
export function principalOf(view: View, evidence: Evidence, options: PrincipalOptions): Principal {
  switch (evidence.kind) {
    case 'bearer': {
      const chain = chainOfToken(view, evidence.token) ?? fail('UNAUTHENTICATED', { reason: 'unknown token' })
      return holderOf('bearer', current(view, chain, options))
    }
    case 'peer': {
      const entry = trusted(view, evidence.did)
      const known =
        entry === undefined
          ? { kind: 'visitor' as const, name: 'visitor' }
          : { kind: 'peer' as const, name: entry.name }
      return { ...known, did: evidence.did, leaseHash: null, lease: null, chain: [] }
    }
    case 'node':
      return holderOf('node', ownLease(view, options))
    case 'nobody':
      break
  }
  return fail('LEASE_REQUIRED')
}

/**
 * Does the principal still hold its lease? Asked again before each write, so that a lease that ended since the
 * request began can only have read.
 * @param now ms since epoch
 * @throws LEASE_EXPIRED, LEASE_REVOKED
 * @clause L1.3
 */
export function checkHeld(view: View, { chain, leaseHash }: Pick<Principal, 'chain' | 'leaseHash'>, now: number): void {
  if (leaseHash === null) return
  const time = effectiveNow(view, now)
  for (const { delegation } of chain) {
    if (delegation.expires_at !== null && delegation.expires_at <= time) fail('LEASE_EXPIRED', { lease: leaseHash })
  }
  if (isRevoked(view, leaseHash)) fail('LEASE_REVOKED', { lease: leaseHash })
}

/** Is a lease over, by its time, by a word that ended it, or because it is not kept here? @param now ms since epoch */
export function isOver(view: View, hash: string, now: number): boolean {
  const chain = storedChain(view, hash)
  if (chain === undefined) return true
  try {
    checkHeld(view, { chain, leaseHash: hash }, now)
    return false
  } catch (error) {
    if (!isNodeError(error)) throw error
    return true
  }
}

/** The newest grant of the owner to the node itself that has a lease and holds. */
function ownLease(view: View, options: PrincipalOptions): VerifiedChain {
  for (const chain of chainsOfHolder(view, options.self).toReversed()) {
    // what the node made out to itself for a run is that run's
    if (chain.length > 1) continue
    try {
      return current(view, chain, options)
    } catch (error) {
      if (!isNodeError(error)) throw error
    }
  }
  return fail('LEASE_REQUIRED', { reason: 'the owner has given this node no lease' })
}

function current(view: View, chain: readonly Grant[], options: PrincipalOptions): VerifiedChain {
  const { self, owner, now, isLooking = false } = options
  try {
    const verified = verifyChain({
      chain,
      now: effectiveNow(view, now),
      audience: self,
      trustedRoot: (did) => (isSameOwner(view, owner, did) ? { ceiling: 'override' } : undefined),
      isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
      mayBeOver: isLooking && chain.every(({ delegation }) => delegation.type !== 'single'),
      ...(options.chains === undefined ? {} : { cache: options.chains }),
    })
    return verified.lease === null ? fail('LEASE_REQUIRED', { lease: verified.leafHash }) : verified
  } catch (error) {
    const reason = reasonOf(error)
    if (reason === undefined) throw error
    if (reason === 'expired') fail('LEASE_EXPIRED')
    if (reason === 'revoked') fail('LEASE_REVOKED')
    return fail('UNAUTHENTICATED', { reason }, error)
  }
}

function holderOf(kind: 'bearer' | 'node', { leaf, leafHash, lease, chain }: VerifiedChain): Principal {
  return { kind, did: leaf.delegation.grantee_key, name: leaf.delegation.grantee, leaseHash: leafHash, lease, chain }
}
