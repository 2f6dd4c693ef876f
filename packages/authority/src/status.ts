/**
 * Freshness: what the status key of a grant says of it, how young that word is, and what follows where it is old.
 *
 * A revocation that is pushed may be held back, and a network may be cut. So whoever honours a grant of somebody else
 * needs a signed word, younger than the grant allows, that it is not revoked. The number of those words never goes
 * back, and what one of them called revoked stays so.
 * @clause L1.3, DEL-003.3.4
 */
import {
  LIMITS,
  canonicalize,
  digestOf,
  fail,
  signDocument,
  verifyDocument,
  type Grant,
  type KeyPair,
  type Status,
} from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { checkDocument, checkSigner } from './grant.ts'
import { reasonOf, refuse } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { isRevoked } from './revocation.ts'

/** How the own number is kept: it grows where the set is another one. */
type Issued = { readonly seq: number; readonly set: string }

const OWN = key('meta', 'status')

export type StatusInit = {
  readonly seq: number
  /** hashes of grants */
  readonly revoked: readonly string[]
  /** ms since epoch */
  readonly now: number
}

/** Sign a status statement as a status key. {@link issueStatus} does it for a node. */
export function signStatus({ seq, revoked, now }: StatusInit, signer: KeyPair): Status {
  const body = {
    v: 1 as const,
    issuer: signer.did,
    seq,
    issued_at: now,
    next_update: now + LIMITS.revocationMaxAgeMs / 2,
    revoked: [...revoked].sort(),
  }
  return { status: { ...body, signature: signDocument('status', { status: body }, signer) } }
}

/**
 * What this node says now of the grants that name its key.
 * @param now ms since epoch
 * @throws TOO_LARGE where more are revoked than one statement holds: then none is issued, and all run out
 * @clause L1.3
 */
export async function issueStatus(tx: Transaction, signer: KeyPair, now: number): Promise<Status> {
  const revoked = await answeredFor(tx, signer.did, now)
  const set = digestOf(canonicalize(revoked))
  const before = tx.getJson<Issued>(OWN) ?? { seq: 0, set: digestOf(canonicalize([])) }
  const issued = before.set === set ? before : { seq: before.seq + 1, set }
  if (issued !== before) tx.putJson(OWN, issued)
  return signStatus({ seq: issued.seq, revoked, now: effectiveNow(tx, now) }, signer)
}

/** Hashes of the grants that name `did` as status key and were revoked by somebody who may, sorted. */
async function answeredFor(view: View, did: string, now: number): Promise<string[]> {
  const found = new Set<string>()
  for await (const [fullKey] of view.range({ prefix: prefix('revoked') })) {
    const hash = tail(fullKey, 'revoked').split('/')[0] ?? ''
    const grant = view.getJson<Grant>(key('grant', hash))?.delegation
    if (grant?.revocation.status_key !== did) continue
    // what has expired is dead without anybody's word
    if (grant.expires_at !== null && grant.expires_at + LIMITS.clockSkewMs < now) continue
    if (isRevoked(view, hash)) found.add(hash)
  }
  if (found.size > LIMITS.statusGrants) fail('TOO_LARGE', { revoked: found.size, most: LIMITS.statusGrants })
  return [...found].sort()
}

/**
 * Take in a statement of another status key. What it calls revoked is revoked from then on.
 * @param value a parsed document
 * @param now ms since epoch
 * @returns false where it says less than one that was seen: an older one, or a set that went back
 * @throws GRANT_INVALID with `malformed`, `weak_key`, `bad_signature`, `not_yet_valid`
 * @clause L1.3
 */
export function takeStatus(tx: Transaction, value: unknown, now: number): boolean {
  checkDocument('Status', value, LIMITS.statusBytes)
  const document = value as Status
  const { signature, ...body } = document.status
  checkSigner(body.issuer)
  if (!verifyDocument('status', { status: body }, signature, body.issuer)) refuse('bad_signature')
  if (body.issued_at > effectiveNow(tx, now) + LIMITS.clockSkewMs) refuse('not_yet_valid')
  const before = latestStatus(tx, body.issuer)?.status
  if (before !== undefined) {
    if (body.seq < before.seq || body.issued_at <= before.issued_at) return false
    // one number is one set: a status key that lost its memory does not get it back by counting again
    if (body.seq === before.seq && canonicalize(body.revoked) !== canonicalize(before.revoked)) return false
  }
  tx.putJson(key('status', body.issuer), document)
  for (const hash of body.revoked) {
    const at = key('revoked', hash, body.issuer)
    if (!tx.has(at)) tx.putJson(at, { status: { seq: body.seq, issued_at: body.issued_at }, taken_in_at: now })
  }
  return true
}

/**
 * Take in the statements that came with a chain: those of its own status keys. What is wrong with one of them is as
 * if it had not come.
 * @param chain verified
 * @param now ms since epoch
 */
export function takeStatuses(tx: Transaction, values: unknown, chain: readonly Grant[], now: number): void {
  const asked = new Set(statusKeysOf(chain))
  for (const value of Array.isArray(values) ? values.slice(0, LIMITS.chainLinks) : []) {
    const issuer = (value as { status?: { issuer?: unknown } } | null)?.status?.issuer
    if (typeof issuer !== 'string' || !asked.has(issuer)) continue
    try {
      takeStatus(tx, value, now)
    } catch (error) {
      if (reasonOf(error) === undefined) throw error
    }
  }
}

/** The newest statement of a status key that was taken in here. */
export const latestStatus = (view: View, did: string): Status | undefined => view.getJson<Status>(key('status', did))

/** Status keys of a chain, each once. */
export const statusKeysOf = (chain: readonly Grant[]): readonly string[] => [
  ...new Set(chain.map(({ delegation }) => delegation.revocation.status_key)),
]

export type FreshnessCheck = {
  /** did of this node: of what it answers for itself it needs no word */
  readonly self: string
  /** ms since epoch */
  readonly now: number
}

/**
 * Is there a young enough word on every grant of the chain?
 * @returns number of the first grant without one; undefined where there is none such
 * @clause L1.3
 */
export function staleLink(view: View, chain: readonly Grant[], { self, now }: FreshnessCheck): number | undefined {
  const time = effectiveNow(view, now)
  const link = chain.findIndex(({ delegation: { revocation } }) => {
    if (revocation.status_key === self) return false
    const issuedAt = latestStatus(view, revocation.status_key)?.status.issued_at
    return issuedAt === undefined || issuedAt + revocation.max_age_ms < time
  })
  return link < 0 ? undefined : link
}

/**
 * When the first word on a grant of the chain will be too old.
 * @returns ms since epoch; infinite where none is needed, the past where one is missing
 */
export function staleAt(view: View, chain: readonly Grant[], self: string): number {
  const ends = chain.flatMap(({ delegation: { revocation } }) => {
    if (revocation.status_key === self) return []
    const issuedAt = latestStatus(view, revocation.status_key)?.status.issued_at
    return issuedAt === undefined ? [0] : [issuedAt + revocation.max_age_ms]
  })
  return Math.min(Number.POSITIVE_INFINITY, ...ends)
}

/**
 * @throws GRANT_INVALID with `revocation_stale` and the link
 * @clause L1.3
 */
export function checkFresh(view: View, chain: readonly Grant[], check: FreshnessCheck): void {
  const link = staleLink(view, chain, check)
  if (link !== undefined) refuse('revocation_stale', { link })
}
