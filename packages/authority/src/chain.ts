/**
 * A chain of grants, root first: every link signed by its grantor, made out to the grantor of the next, and
 * never wider than the one before it, in any field.
 *
 * The checks are separate functions, cheap ones first, so that a message can be judged in the order of the
 * document; {@link verifyChain} runs them all. Needs no network and no store.
 * @clause L1.2, DEL-003.3.2
 */
import { LIMITS, digestOf, type Grant, type Lease } from '@csb/core'
import { chainKey, type ChainCache } from './chain-cache.ts'
import { checkGrantSignature, checkType, leaseOf, readGrant, signedBytes, sizeOf } from './grant.ts'
import { isSubset } from './lease.ts'
import { isAtMost, isAudienceWithin, isFor, isScopeWithin, type Rank } from './rank.ts'
import { reasonOf, refuse, type Reason } from './reasons.ts'

/** One grant of a chain with its name, and, where it was just read, with what its grantor signed. */
export type Link = { readonly grant: Grant; readonly hash: string; readonly signed?: Uint8Array }

/** Says whether one of `by` revoked the grant of that hash, or its grantor's key can not have granted it any more. */
export type RevocationCheck = (hash: string, by: readonly string[], grant: Grant) => boolean

export type ChainCheck = {
  /** parsed values, root first, 1 to 5 */
  readonly chain: readonly unknown[]
  /** ms since epoch */
  readonly now: number
  readonly isRevoked: RevocationCheck
  /** Undefined where chains may not begin with a grant of that did. */
  readonly trustedRoot: (did: string) => { readonly ceiling: Rank } | undefined
  /** did of the node that wants to honour it; absent where that is another one */
  readonly audience?: string
  /** true: one that is over passes as well, for what it may still look at */
  readonly mayBeOver?: boolean
  /** chains that were verified before need not be again */
  readonly cache?: ChainCache
}

export type VerifiedChain = {
  readonly chain: readonly Grant[]
  /** of each grant, root first */
  readonly hashes: readonly string[]
  readonly leaf: Grant
  readonly leafHash: string
  /** of the leaf; null where it only lends a voice */
  readonly lease: Lease | null
  readonly rootDid: string
}

/**
 * Check a chain completely.
 * @throws GRANT_INVALID `{reason, link?, field?}`
 * @clause L1.2
 */
export function verifyChain(check: ChainCheck): VerifiedChain {
  const { chain, now, isRevoked, trustedRoot, audience, mayBeOver, cache } = check
  const name = cache === undefined || chain.length > LIMITS.chainLinks ? undefined : chainKey(chain)
  const known = name === undefined ? undefined : cache?.find(name)
  const links = known ?? readChain(chain)
  if (known === undefined) {
    checkJoints(links)
    checkTypes(links)
  }
  checkAudience(links, audience)
  if (known === undefined) {
    checkScope(links)
    checkLevel(links)
  }
  checkTimes(links, now, mayBeOver)
  checkRoot(links, (did) => trustedRoot(did) !== undefined)
  checkRevoked(links, isRevoked)
  if (known === undefined) checkSignatures(links)
  // only now: what fails later than its words were checked is not worth remembering
  if (known === undefined && name !== undefined) cache?.keep(name, links)
  return verified(links)
}

/**
 * Read the grants: number and size before anything else, so that a hostile chain costs little.
 * @throws GRANT_INVALID with `chain_shape`, `too_deep`, `malformed`, `unknown_version`, `bad_signature`
 */
export function readChain(chain: readonly unknown[]): readonly Link[] {
  if (chain.length === 0) refuse('chain_shape')
  if (chain.length > LIMITS.chainLinks) refuse('too_deep')
  const bytes = sizeOf(chain)
  if (bytes > LIMITS.chainBytes) refuse('malformed', { field: 'size' })
  return chain.map((value, link) =>
    at(link, () => {
      const grant = readGrant(value, bytes > LIMITS.grantBytes ? sizeOf(value) : bytes)
      const signed = signedBytes(grant)
      return { grant, hash: digestOf(signed), signed }
    }),
  )
}

/**
 * Each grant hangs on the one before it by hash and key, the first on none, and each depth was allowed above.
 * @throws GRANT_INVALID with `cycle`, `chain_shape`, `broken_link`, `too_deep`
 */
export function checkJoints(links: readonly Link[]): void {
  if (links.some(({ hash }, link) => links.findIndex((other) => other.hash === hash) < link)) refuse('cycle')
  if (links[0]?.grant.delegation.parent !== null) refuse('chain_shape', { link: 0, field: 'parent' })
  eachPair(links, (child, parent, link, parentHash) => {
    // the hash, not only the key: the same holder may have two parents, and they are not interchangeable
    if (child.delegation.parent !== parentHash) refuse('broken_link', { link, field: 'parent' })
    if (child.delegation.grantor_key !== parent.delegation.grantee_key)
      refuse('broken_link', { link, field: 'grantor_key' })
    if (child.delegation.max_depth >= parent.delegation.max_depth) refuse('too_deep', { link, field: 'max_depth' })
  })
}

/** @throws GRANT_INVALID with `type_rule` */
export function checkTypes(links: readonly Link[]): void {
  links.forEach(({ grant }, link) => at(link, () => checkType(grant)))
  eachPair(links, (child, parent, link) => {
    if (parent.delegation.revocable && !child.delegation.revocable) refuse('type_rule', { link, field: 'revocable' })
  })
}

/**
 * The nodes it is for only become fewer; the one that asks is among them.
 * @throws GRANT_INVALID with `wrong_audience`
 */
export function checkAudience(links: readonly Link[], audience: string | undefined): void {
  eachPair(links, (child, parent, link) => {
    if (!isAudienceWithin(child.delegation.audience, parent.delegation.audience)) {
      refuse('wrong_audience', { link, field: 'audience' })
    }
  })
  const leaf = leafOf(links).delegation
  if (audience !== undefined && !isFor(leaf.audience, audience)) refuse('wrong_audience', { link: links.length - 1 })
}

/** @throws GRANT_INVALID with `untrusted_root` */
export function checkRoot(links: readonly Link[], isTrusted: (did: string) => boolean): void {
  if (!isTrusted(rootOf(links))) refuse('untrusted_root', { link: 0 })
}

/**
 * A revocation counts when it comes from a grantor at or above the grant, or from its own grantee. A grant
 * below a revoked one is as dead as that one. One that was declared irrevocable ends only with its grantee. The
 * status key that a grant names says what others have revoked.
 * @throws GRANT_INVALID with `revoked` and the link
 * @clause DEL-003.3.4
 */
export function checkRevoked(links: readonly Link[], isRevoked: RevocationCheck): void {
  links.forEach(({ grant, hash }, link) => {
    const { revocable, revocation } = grant.delegation
    const told = revocable ? [revocation.status_key] : []
    if (isRevoked(hash, [...revokersOf(links, link), ...told], grant)) refuse('revoked', { link })
  })
}

/** Dids that may revoke the grant at position `link`. */
export function revokersOf(links: readonly Link[], link: number): readonly string[] {
  const target = links[link]?.grant.delegation
  if (target === undefined) return []
  if (!target.revocable) return [target.grantee_key]
  return [...links.slice(0, link + 1).map(({ grant }) => grant.delegation.grantor_key), target.grantee_key]
}

/** @throws GRANT_INVALID with `weak_key`, `bad_signature` */
export function checkSignatures(links: readonly Link[]): void {
  links.forEach(({ grant, signed }, link) => at(link, () => checkGrantSignature(grant, signed)))
}

/**
 * What it is about, and what may be touched, only becomes less.
 * @throws GRANT_INVALID with `widened_scope`, `widened_lease` and the field of the lease
 * @clause L1.2
 */
export function checkScope(links: readonly Link[]): void {
  eachPair(links, (child, parent, link) => {
    if (!isScopeWithin(child.delegation.scope, parent.delegation.scope))
      refuse('widened_scope', { link, field: 'scope' })
    const lease = leaseOf(child)
    if (lease === null) return
    const outer = leaseOf(parent) ?? refuse('widened_lease', { link, field: 'authorization_details' })
    const verdict = isSubset(lease, outer)
    if (!verdict.ok) refuse('widened_lease', { link, field: verdict.field })
  })
}

/** @throws GRANT_INVALID with `widened_level` */
export function checkLevel(links: readonly Link[]): void {
  eachPair(links, (child, parent, link) => {
    if (!isAtMost(child.delegation.level, parent.delegation.level)) refuse('widened_level', { link, field: 'level' })
  })
}

/**
 * No life beyond the parent's; begun, give or take the clock skew; not over, to the millisecond.
 * @param now ms since epoch
 * @throws GRANT_INVALID with `widened_time`, `not_yet_valid`, `expired`
 */
export function checkTimes(links: readonly Link[], now: number, mayBeOver = false): void {
  eachPair(links, ({ delegation: child }, { delegation: parent }, link) => {
    const field = widenedTime(child, parent)
    if (field !== undefined) refuse('widened_time', { link, field })
  })
  links.forEach(({ grant: { delegation } }, link) => {
    if (Math.max(delegation.granted_at, delegation.not_before) > now + LIMITS.clockSkewMs)
      refuse('not_yet_valid', { link })
    if (!mayBeOver && delegation.expires_at !== null && delegation.expires_at <= now) refuse('expired', { link })
  })
}

/** The result of a chain whose checks are done. */
export function verified(links: readonly Link[]): VerifiedChain {
  const leaf = leafOf(links)
  return {
    chain: links.map(({ grant }) => grant),
    hashes: links.map(({ hash }) => hash),
    leaf,
    leafHash: links.at(-1)?.hash ?? refuse('chain_shape'),
    lease: leaseOf(leaf),
    rootDid: rootOf(links),
  }
}

function widenedTime(child: Grant['delegation'], parent: Grant['delegation']): string | undefined {
  if (child.granted_at < parent.granted_at) return 'granted_at'
  if (child.not_before < parent.not_before) return 'not_before'
  if ((child.expires_at ?? Number.POSITIVE_INFINITY) > (parent.expires_at ?? Number.POSITIVE_INFINITY))
    return 'expires_at'
  return child.revocation.max_age_ms > parent.revocation.max_age_ms ? 'revocation.max_age_ms' : undefined
}

const rootOf = (links: readonly Link[]): string => (links[0] ?? refuse('chain_shape')).grant.delegation.grantor_key

/** The last grant of a chain: the one that is used. @throws GRANT_INVALID where the chain is empty */
export const leafOf = (links: readonly Link[]): Grant => (links.at(-1) ?? refuse('chain_shape')).grant

function eachPair(
  links: readonly Link[],
  check: (child: Grant, parent: Grant, link: number, parentHash: string) => void,
): void {
  links.forEach(({ grant }, link) => {
    const parent = links[link - 1]
    if (parent !== undefined) check(grant, parent.grant, link, parent.hash)
  })
}

/** Say in which link a check of one grant failed. */
function at<T>(link: number, check: () => T): T {
  try {
    return check()
  } catch (error) {
    const reason: Reason | undefined = reasonOf(error)
    if (reason === undefined) throw error
    const { field } = (error as { details: { field?: string } }).details
    return refuse(reason, { link, ...(field === undefined ? {} : { field }) })
  }
}
