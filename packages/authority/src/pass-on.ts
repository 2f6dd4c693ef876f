/**
 * Passing a delegation on: whoever it is made out to lets somebody else have some of it. The child is signed by the
 * holder's key, hangs on the grant that was received, and is nowhere wider; where it would be, the field is named and
 * nothing is made.
 * @clause DEL-001, L1.2
 */
import { LIMITS, fail, type Grant, type KeyPair, type Lease } from '@csb/core'
import { draftGrant, leaseOf, readGrant, signGrant, type Party } from './grant.ts'
import { isSubset } from './lease.ts'
import { isAtMost, isAudienceWithin, isScopeWithin, type Rank } from './rank.ts'
import { refuse } from './reasons.ts'

/** It lives as long as nobody says more, and as its parent at most. */
export const PASSED_MS = 24 * 60 * 60 * 1000

/** What is left out stays as it was received, but it is passed on no further. */
export type Passing = {
  readonly to: Party
  /** dids of nodes that are to honour it, or `['*']` */
  readonly audience?: readonly string[]
  readonly scope?: readonly string[]
  readonly level?: Rank
  /** ms of life; default a day, or what is left */
  readonly ttlMs?: number
  /** how often it may be passed on again; default 0 */
  readonly maxDepth?: number
  /** ms within which a revocation counts */
  readonly maxAgeMs?: number
  /** only for this one task */
  readonly task?: string
  /** members that differ from the lease that was received; absent: only its voice is passed on, and no lease */
  readonly lease?: Partial<Lease>
}

export type PassingInit = {
  /** verified, root first */
  readonly chain: readonly Grant[]
  readonly asked: Passing
  /** did of the node that says whether the child is revoked */
  readonly statusKey: string
  /** ms since epoch */
  readonly now: number
}

/**
 * Make a child of a grant that was received. Keeps nothing.
 * @param signer key of whoever the grant is made out to
 * @throws SCOPE_EXCEEDED with the field in which it would be wider
 * @throws INVALID_INPUT where `scope` is missing and everything was received
 * @throws GRANT_INVALID `holder_mismatch` for another signer, `malformed` with the field where a member is none
 * @clause DEL-001, L1.2
 */
export function passOn({ chain, asked, statusKey, now }: PassingInit, signer: KeyPair): Grant {
  const parent = chain.at(-1) ?? refuse('chain_shape')
  const { delegation } = parent
  if (delegation.grantee_key !== signer.did) refuse('holder_mismatch', { field: 'grantee_key' })
  const canPassOn = delegation.max_depth > 0 && delegation.type !== 'single' && chain.length < LIMITS.chainLinks
  if (!canPassOn || (asked.maxDepth ?? 0) >= delegation.max_depth) exceed('max_depth')

  const audience = asked.audience ?? delegation.audience
  if (!isAudienceWithin(audience, delegation.audience)) exceed('audience')
  const scope = asked.scope ?? delegation.scope
  if (!isScopeWithin(scope, delegation.scope)) exceed('scope')
  // who was given everything still says what of it somebody else is to have
  if (scope.includes('*')) fail('INVALID_INPUT', { field: 'scope' })
  const level = asked.level ?? delegation.level
  if (!isAtMost(level, delegation.level) || level === 'override') exceed('level')
  const leftMs = (delegation.expires_at ?? Number.MAX_SAFE_INTEGER) - Math.max(now, delegation.not_before)
  const ttlMs = asked.ttlMs ?? Math.min(PASSED_MS, leftMs)
  if (ttlMs > leftMs) exceed('expires_at')
  if ((asked.maxAgeMs ?? 0) > delegation.revocation.max_age_ms) exceed('revocation.max_age_ms')
  const lease = asked.lease === undefined ? undefined : narrowed(parent, asked.lease)

  return signGrant(
    draftGrant({
      type: asked.task === undefined ? 'scoped' : 'single',
      from: { name: delegation.grantee, did: signer.did },
      to: { name: asked.to.name.normalize('NFC'), did: asked.to.did },
      audience,
      scope,
      level,
      now,
      ttlMs,
      maxDepth: asked.maxDepth ?? 0,
      parent,
      statusKey,
      ...(asked.maxAgeMs === undefined ? {} : { maxAgeMs: asked.maxAgeMs }),
      ...(asked.task === undefined ? {} : { task: asked.task }),
      ...(lease === undefined ? {} : { lease }),
    }),
    signer,
  )
}

function narrowed(parent: Grant, asked: Partial<Lease>): Lease {
  const outer = leaseOf(parent) ?? exceed('authorization_details')
  const budget = outer.budget === undefined && asked.budget === undefined ? {} : { ...outer.budget, ...asked.budget }
  const members = Object.keys(budget).length === 0 ? {} : { budget }
  const lease: Lease = { ...outer, max_children: 0, ...asked, ...members }
  // it comes from outside: its form first
  readGrant({ ...parent, authorization_details: [lease] })
  const verdict = isSubset(lease, outer)
  return verdict.ok ? lease : exceed(verdict.field)
}

const exceed = (field: string): never => fail('SCOPE_EXCEEDED', { field })
