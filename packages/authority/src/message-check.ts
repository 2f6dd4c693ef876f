/**
 * Judging the authority of a message: the eight steps of DEL-003 3.2, in their order.
 *
 * Whatever fails, the message becomes an ordinary one, whole: never a lower level instead. The outcome names the
 * step and the reason. Text in a message never grants anything. Within each step comparisons go before signatures.
 * @clause DEL-003.3.2
 */
import {
  LIMITS,
  canonicalize,
  digestOf,
  isNodeError,
  verifyDocument,
  type Authority,
  type Grant,
  type JsonRpcRequest,
  type Lease,
} from '@csb/core'
import type { Transaction } from '@csb/store'
import {
  checkAudience,
  checkJoints,
  checkLevel,
  checkRevoked,
  checkRoot,
  checkScope,
  checkSignatures,
  checkTimes,
  checkTypes,
  leafOf,
  readChain,
  verified,
  type Link,
  type VerifiedChain,
} from './chain.ts'
import { checkDocument, checkSigner } from './grant.ts'
import { authorityCopies, payloadDigest, signedPart } from './message.ts'
import { isAtMost, isScopeWithin, type Rank } from './rank.ts'
import { refuse } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { consumeGrant, consumeNonce, isReplayed, isUsed } from './replay.ts'
import { isRevoked } from './revocation.ts'
import { checkFresh, staleLink, takeStatuses } from './status.ts'
import { checkSpokenLevel, checkSpokenScope, checkSpokenTime, isClaim, spokenFor, type Claim } from './spoken.ts'
import { walk, type Downgraded, type StepName } from './steps.ts'
import { trusted, type TrustEntry } from './trust.ts'

/** It carries no authority and claims none: an ordinary message. */
export type Absent = { readonly kind: 'absent' }

/** Treat the message as the origin's own, at that level. */
export type Accepted = {
  readonly kind: 'accepted'
  readonly level: Rank
  /** this node's own name for the origin */
  readonly delegatedBy: string
  /** did of the origin */
  readonly root: string
  readonly holder: string
  readonly scope: readonly string[]
  readonly delegationId: string
  readonly leafHash: string
  /** of the leaf; null where it only lends a voice */
  readonly lease: Lease | null
  readonly chain: readonly Grant[]
  /** its status keys said nothing young enough: it may have been revoked meanwhile; never with execute or override */
  readonly isStale: boolean
  /** steps that passed */
  readonly steps: readonly StepName[]
}

export type Outcome = Absent | Accepted | Downgraded

export type AuthorityCheck = {
  /** the JSON-RPC body as it came; every copy of authority in it is found */
  readonly body: Pick<JsonRpcRequest, 'method' | 'params'>
  /** copies that travelled beside the body, as in an envelope; all there are must be equal */
  readonly copies?: readonly unknown[]
  /** did of this node */
  readonly self: string
  /** did of the peer that sent it, where it claims to be the author */
  readonly sender?: string
  /** ms since epoch */
  readonly now: number
}

/** What the steps find out on their way. */
type Finding = {
  authority: Authority
  links: readonly Link[]
  chain: VerifiedChain
  root: { name: string; ceiling: Rank }
}

/**
 * Judge and, where it passes, use up: the nonce and a single-use grant are staged in `tx`, so commit it together
 * with what the message makes happen.
 * @returns never throws for a bad authority
 * @clause DEL-001, DEL-002, DEL-003.3.2
 */
export async function verifyAuthority(tx: Transaction, check: AuthorityCheck): Promise<Outcome> {
  const copies = [...(check.copies ?? []), ...authorityCopies(check.body)].filter((copy) => copy !== undefined)
  if (copies.length === 0) return { kind: 'absent' }
  const now = effectiveNow(tx, check.now)
  const time = { told: check.now, now }
  if (isClaim(copies[0])) return claimed(tx, check, copies, time)
  const found: Partial<Finding> = {}
  const passed = await walk(
    [
      ['attached', () => void (found.authority = attached(copies))],
      ['received', () => received(tx, check, known(found.authority))],
      ['trusted', () => void Object.assign(found, isTrusted(tx, check, known(found.authority), now))],
      ['scope', () => coversScope(known(found.authority), known(found.links))],
      ['level', () => coversLevel(known(found.authority), known(found.links), known(found.root).ceiling)],
      ['expiry', () => isCurrent(tx, check, known(found.authority), known(found.links), now)],
      ['accepted', () => consume(tx, known(found.authority), known(found.links), now)],
    ],
    time,
  )
  if ('kind' in passed) return passed
  const chain = verified(known(found.links))
  const isStale = staleLink(tx, chain.chain, { self: check.self, now }) !== undefined
  return { ...accepted(known(found.authority), chain, known(found.root).name, passed), isStale }
}

/**
 * The same steps for a claim without a document: what the owner wrote down of the sender is all that it rests on.
 * @clause DEL-003.3.3
 */
async function claimed(
  tx: Transaction,
  { sender }: AuthorityCheck,
  [claim, ...others]: readonly unknown[],
  time: { readonly told: number; readonly now: number },
): Promise<Accepted | Downgraded> {
  const said = claim as Claim
  const found: { entry?: TrustEntry } = {}
  const passed = await walk(
    [
      ['attached', () => checkEqual(claim, others)],
      ['received', () => (sender === undefined ? refuse('holder_mismatch') : undefined)],
      ['trusted', () => void (found.entry = spokenFor(tx, sender))],
      ['scope', () => checkSpokenScope(said, known(found.entry))],
      ['level', () => checkSpokenLevel(said, known(found.entry))],
      ['expiry', () => checkSpokenTime(said, known(found.entry), time.now)],
      ['accepted', () => undefined],
    ],
    time,
  )
  if ('kind' in passed) return passed
  const { did, speaks } = known(found.entry)
  return {
    kind: 'accepted',
    level: said.level,
    delegatedBy: speaks?.name ?? '',
    root: did,
    holder: did,
    scope: said.scope,
    delegationId: said.delegation_id ?? '',
    leafHash: digestOf(canonicalize(speaks)),
    lease: null,
    chain: [],
    isStale: false,
    steps: passed,
  }
}

/** 1. The message carries one authority, and it can be read. @clause DEL-002.2.2 */
function attached([first, ...others]: readonly unknown[]): Authority {
  // counted before anything is read, so that ten thousand links cost nothing
  const chain: unknown = (first as { chain?: unknown } | null)?.chain
  if (Array.isArray(chain) && chain.length > LIMITS.chainLinks) refuse('too_deep')
  if (hasForeignSignature(first)) refuse('bad_signature')
  checkDocument('Authority', first, LIMITS.chainBytes)
  checkEqual(first, others)
  return first as Authority
}

function checkEqual(first: unknown, others: readonly unknown[]): void {
  for (const other of others) if (spelled(other) !== spelled(first)) refuse('ambiguous')
}

/** 2. It is for this node, says what this message says, comes for the first time, and its holder signed it. */
function received(tx: Transaction, check: AuthorityCheck, authority: Authority): void {
  if (authority.aud !== check.self) refuse('wrong_audience')
  if (check.sender !== undefined && check.sender !== authority.holder) refuse('holder_mismatch')
  if (isReplayed(tx, authority)) refuse('replayed')
  if (authority.payload !== payloadDigest(check.body)) refuse('payload_mismatch')
  checkSigner(authority.holder)
  if (!verifyDocument('authority', signedPart(authority), authority.signature, authority.holder))
    refuse('bad_signature')
}

/** 3. The delegation is one this node trusts: whole, made out to the holder, from a listed origin, not revoked. */
function isTrusted(
  tx: Transaction,
  check: AuthorityCheck,
  authority: Authority,
  now: number,
): Pick<Finding, 'links' | 'root'> {
  const links = readChain(authority.chain)
  const leaf = leafOf(links).delegation
  const { delegation_hash: leafHash, delegation_id: id = leaf.id } = authority
  if (links.at(-1)?.hash !== leafHash || leaf.id !== id) refuse('chain_shape')
  if (leaf.grantee_key !== authority.holder) refuse('holder_mismatch')
  checkJoints(links)
  checkTypes(links)
  checkAudience(links, check.self)
  checkRoot(links, (did) => trusted(tx, did) !== undefined)
  checkRevoked(links, (hash, by, grant) => isRevoked(tx, hash, by, grant))
  checkSignatures(links)
  // only now: whose word counts is named by what was just verified
  takeStatuses(tx, authority.status, verified(links).chain, now)
  checkRevoked(links, (hash, by, grant) => isRevoked(tx, hash, by, grant))
  return { links, root: known(trusted(tx, links[0]?.grant.delegation.grantor_key ?? '')) }
}

/** 4. What the message is about lies within what was delegated, and each grant within the one before. */
function coversScope(authority: Authority, links: readonly Link[]): void {
  checkScope(links)
  const { scope, task } = leafOf(links).delegation
  if (!isScopeWithin(authority.scope, scope)) refuse('out_of_scope')
  if (task?.startsWith('sha256:') === true && task !== authority.payload) refuse('out_of_scope')
}

/** 5. The level was delegated, and the owner of this node allows that origin as much. */
function coversLevel(authority: Authority, links: readonly Link[], ceiling: Rank): void {
  checkLevel(links)
  if (!isAtMost(authority.level, leafOf(links).delegation.level)) refuse('level_exceeds')
  if (!isAtMost(authority.level, ceiling)) refuse('over_ceiling')
}

/**
 * 6. Neither the message nor a grant has expired or is still to begin; and where something must be done, the word that
 * no grant is revoked is young.
 * @clause L1.3
 */
function isCurrent(
  tx: Transaction,
  { self }: AuthorityCheck,
  authority: Authority,
  links: readonly Link[],
  now: number,
): void {
  if (authority.issued_at > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  if ((authority.expires_at ?? now + 1) <= now) refuse('expired')
  checkTimes(links, now)
  if (!isAtMost(authority.level, 'request')) checkFresh(tx, verified(links).chain, { self, now })
}

/** 7. All passed: the message is used up, and a single-use grant with it. */
async function consume(tx: Transaction, authority: Authority, links: readonly Link[], now: number): Promise<void> {
  if (leafOf(links).delegation.type === 'single') {
    if (isUsed(tx, authority.delegation_hash)) refuse('already_used')
    consumeGrant(tx, authority.delegation_hash, authority, now)
  }
  await consumeNonce(tx, authority, now)
}

function accepted(
  authority: Authority,
  chain: VerifiedChain,
  delegatedBy: string,
  steps: readonly StepName[],
): Omit<Accepted, 'isStale'> {
  return {
    kind: 'accepted',
    level: authority.level,
    delegatedBy,
    root: chain.rootDid,
    holder: authority.holder,
    scope: authority.scope,
    delegationId: chain.leaf.delegation.id,
    leafHash: chain.leafHash,
    lease: chain.lease,
    chain: chain.chain,
    steps,
  }
}

/** The document's own example writes a digest where a signature belongs. */
function hasForeignSignature(value: unknown): boolean {
  const signature = (value as Partial<Authority> | null)?.signature
  return typeof signature === 'string' && !signature.startsWith('ed25519:')
}

/** A copy that has no canonical form equals no other. */
function spelled(value: unknown): string | symbol {
  try {
    return canonicalize(value)
  } catch (error) {
    if (isNodeError(error)) return Symbol('no canonical form')
    throw error
  }
}

/** What an earlier step has found is there in a later one. */
function known<T>(value: T | undefined): T {
  return value ?? refuse('malformed')
}
