/**
 * Revocation: a signed word that ends a grant, and everything below it, for ever.
 *
 * The set only grows. A revocation may come before its target is known; whether its signer had the right is
 * judged when the grant is looked at, so a stranger's word is kept and never counts.
 * @clause L1.3, DEL-003.3.4
 */
import { LIMITS, fail, signDocument, verifyDocument, type Grant, type KeyPair, type Revocation } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { checkRevoked, revokersOf, type Link } from './chain.ts'
import { checkDocument, checkSigner, grantHash } from './grant.ts'
import { isVoid, keysSince } from './key-line.ts'
import { reasonOf, refuse } from './reasons.ts'
import { storedChain } from './stored-grants.ts'

export type RevocationInit = {
  /** hash of the grant that ends */
  readonly target: string
  readonly reason?: Revocation['revocation']['reason']
  /** ms since epoch */
  readonly now: number
}

/** Sign a revocation as grantor, as origin, or as grantee who gives a grant back. */
export function signRevocation({ target, reason = 'unspecified', now }: RevocationInit, signer: KeyPair): Revocation {
  const body = { v: 1 as const, target, by: signer.did, reason, revoked_at: now }
  return { revocation: { ...body, signature: signDocument('revocation', { revocation: body }, signer) } }
}

/**
 * Take a revocation in. The same word of the same key again changes nothing.
 * @param value a parsed revocation document
 * @param now ms since epoch, kept beside it
 * @returns the document as read
 * @throws GRANT_INVALID with `malformed`, `weak_key`, `bad_signature`
 * @throws DENIED where the grant is known and the signer is no party of it
 * @clause DEL-003.3.4
 */
export function revoke(tx: Transaction, value: unknown, now: number): Revocation {
  checkDocument('Revocation', value, LIMITS.grantBytes)
  const document = value as Revocation
  const { signature, ...body } = document.revocation
  checkSigner(body.by)
  if (!verifyDocument('revocation', { revocation: body }, signature, body.by)) refuse('bad_signature')

  const links = linksOf(tx, body.target)
  const isParty = links === undefined || partiesOf(tx, links).includes(body.by)
  if (!isParty) fail('DENIED', { reason: 'the signer is no party of that grant', target: body.target })
  const at = key('revoked', body.target, body.by)
  if (!tx.has(at)) tx.putJson(at, { ...document, taken_in_at: now })
  return document
}

/**
 * Is the grant, or one above it, revoked by somebody who may?
 * @param by who may revoke that very grant; left out, the stored chain tells, and its ancestors count too
 * @param grant that very grant: what its grantor said of its own key counts as well
 * @returns false for a grant that is not stored, where `by` is left out
 * @clause DEL-003.3.4
 */
export function isRevoked(view: View, hash: string, by?: readonly string[], grant?: Grant): boolean {
  if (grant !== undefined && isVoid(view, grant)) return true
  // whoever changes their key goes on as the same party
  if (by !== undefined)
    return by.flatMap((did) => keysSince(view, did)).some((did) => view.has(key('revoked', hash, did)))
  const links = linksOf(view, hash)
  if (links === undefined) return false
  try {
    checkRevoked(links, (target, revokers, link) => isRevoked(view, target, revokers, link))
    return false
  } catch (error) {
    if (reasonOf(error) === 'revoked') return true
    throw error
  }
}

/** Who may revoke the last grant: whoever chains name, and its status key, whose word on it is taken anyway. */
function partiesOf(view: View, links: readonly Link[]): readonly string[] {
  const { revocable, revocation } = links.at(-1)?.grant.delegation ?? {}
  const told = revocable === true && revocation !== undefined ? [revocation.status_key] : []
  return [...revokersOf(links, links.length - 1), ...told].flatMap((did) => keysSince(view, did))
}

function linksOf(view: View, hash: string): readonly Link[] | undefined {
  return storedChain(view, hash)?.map((grant) => ({ grant, hash: grantHash(grant) }))
}
