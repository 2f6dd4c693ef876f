/**
 * Making a lease smaller for somebody else: who holds one lets a child have some of it, here and now, without its
 * owner. The child is signed by the holder's key, which is made of the holder's token: who has the one has the other,
 * and nobody keeps it.
 * @clause L1.2
 */
import { LIMITS, createKeyPair, fail, sha256, type Grant, type KeyPair, type Lease } from '@csb/core'
import type { Transaction } from '@csb/store'
import { countChild } from './budget.ts'
import { draftGrant, grantHash, leaseOf, signGrant } from './grant.ts'
import { isSubset, misspelledField } from './lease.ts'
import { isAtMost, type Rank } from './rank.ts'
import { refuse } from './reasons.ts'
import { createToken, storeGrant, tokenHash } from './stored-grants.ts'

/** A child lives as long as nobody says more, and as its parent at most. */
const CHILD_MS = 60 * 60 * 1000

/** The key of whoever holds a bearer token. It signs children of the token's lease and nothing else. */
export const holderOf = (token: string): KeyPair => createKeyPair(sha256('csb lease holder 1\n', token))

export type Attenuation = {
  /** who the child is for, for people */
  readonly name: string
  /** members that differ from the parent's; what is left out stays as the parent has it, but it has no children */
  readonly lease: Partial<Lease>
  /** ms of life; default an hour, or what is left of the parent's */
  readonly ttlMs?: number
}

export type Attenuated = {
  /** acts under the child; shown once */
  readonly token: string
  readonly grant: Grant
  readonly hash: string
}

/**
 * What the child of a lease would be. Makes nothing.
 * @param chain of the parent, verified, root first
 * @param now ms since epoch
 * @throws SCOPE_EXCEEDED with the field in which the child would exceed its parent
 * @throws INVALID_INPUT where a member is not in its one spelling
 * @clause L1.2
 */
export function childOf({
  chain,
  asked,
  now,
}: {
  readonly chain: readonly Grant[]
  readonly asked: Attenuation
  readonly now: number
}): {
  readonly parent: Grant
  readonly outer: Lease
  readonly lease: Lease
  readonly ttlMs: number
  /** ms of life that it has where its parent lasts long enough */
  readonly mostMs: number
  readonly scope: readonly string[]
  readonly level: Rank
  readonly maxDepth: number
} {
  const parent = chain.at(-1) ?? refuse('chain_shape')
  const outer = leaseOf(parent) ?? fail('LEASE_REQUIRED')
  const { delegation } = parent
  const lease: Lease = { ...outer, max_children: 0, ...asked.lease, ...budgetWithin(outer, asked.lease) }
  const misspelled = misspelledField(lease)
  if (misspelled !== undefined) fail('INVALID_INPUT', { field: misspelled })
  const verdict = isSubset(lease, outer)
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field })
  const canPassOn = delegation.max_depth > 0 && delegation.type !== 'single' && chain.length < LIMITS.chainLinks
  if (!canPassOn) fail('SCOPE_EXCEEDED', { field: 'max_depth' })
  const endsAt = delegation.expires_at ?? Number.MAX_SAFE_INTEGER
  const ttlMs = asked.ttlMs ?? Math.min(CHILD_MS, endsAt - now)
  if (now + ttlMs > endsAt) fail('SCOPE_EXCEEDED', { field: 'expires_at' })
  return {
    parent,
    outer,
    lease,
    ttlMs,
    mostMs: asked.ttlMs ?? CHILD_MS,
    scope: delegation.scope.includes('*') ? ['lease'] : delegation.scope,
    level: isAtMost(delegation.level, 'request') ? delegation.level : 'request',
    maxDepth: (lease.max_children ?? 0) > 0 ? delegation.max_depth - 1 : 0,
  }
}

/**
 * Make and keep a child of a lease.
 * @param chain of the parent, verified, root first
 * @param signer key of the parent's holder
 * @param now ms since epoch
 * @throws as {@link childOf}; GRANT_INVALID `holder_mismatch` for another signer
 * @clause L1.2
 */
export function attenuate(
  tx: Transaction,
  { chain, asked, self, now }: { chain: readonly Grant[]; asked: Attenuation; self: string; now: number },
  signer: KeyPair,
): Attenuated {
  const { parent, outer, lease, ttlMs, scope, level, maxDepth } = childOf({ chain, asked, now })
  const { delegation } = parent
  if (signer.did !== delegation.grantee_key) refuse('holder_mismatch', { field: 'grantee_key' })
  countChild(tx, grantHash(parent), outer.max_children ?? 0)

  const token = createToken()
  const grant = signGrant(
    draftGrant({
      type: 'scoped',
      from: { name: delegation.grantee, did: signer.did },
      to: { name: asked.name.normalize('NFC'), did: holderOf(token).did },
      audience: [self],
      scope,
      level,
      now,
      ttlMs,
      maxDepth,
      parent,
      statusKey: self,
      lease,
    }),
    signer,
  )
  const hash = storeGrant(tx, { chain: [...chain, grant], tokenHash: tokenHash(token) })
  return { token, grant, hash }
}

/** What is not said of a budget stays as it is. */
const budgetWithin = (outer: Lease, asked: Partial<Lease>): Partial<Lease> =>
  outer.budget === undefined || asked.budget === undefined ? {} : { budget: { ...outer.budget, ...asked.budget } }
