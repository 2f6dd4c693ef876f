/**
 * What an owner says of a key. A change names the key that follows, signed by both; what the old one granted before
 * holds to its expiry, what it grants from then on is void. A compromise voids what was granted before a time,
 * irrevocable or not. Both are for ever, and both are looked at wherever revocation is.
 *
 * A key changes once: the first change that is taken in stands, so that whoever steals an old key later can not lead
 * its followers elsewhere.
 * @clause L1.3, DEL-003.3.4
 */
import { LIMITS, fail, signDocument, verifyDocument, type Grant, type KeyPair, type KeyStatement } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { checkDocument, checkSigner } from './grant.ts'
import { refuse } from './reasons.ts'
import { trust, trusted } from './trust.ts'

type Change = Extract<KeyStatement, { keychange: unknown }>
type Compromise = Extract<KeyStatement, { compromise: unknown }>

export type KeyChangeInit = {
  readonly old: KeyPair
  readonly next: KeyPair
  /** changes of this owner's key up to this one, from 1 */
  readonly seq: number
  /** ms since epoch */
  readonly effectiveAt: number
}

/** Keys that may follow one after another; a circle ends there. */
const MOST_CHANGES = 64

/** Say that `next` follows `old`: signed by both, so that nobody is made the follower, or the follower of somebody. */
export function signKeyChange({ old, next, seq, effectiveAt }: KeyChangeInit): Change {
  const body = { v: 1 as const, old: old.did, new: next.did, seq, effective_at: effectiveAt }
  return {
    keychange: {
      ...body,
      signature_old: signDocument('keychange', { keychange: body }, old),
      signature_new: signDocument('keychange', { keychange: body }, next),
    },
  }
}

/**
 * Say that a key is in other hands.
 * @param did of the key
 * @param allBefore ms since epoch: what it granted before that is void
 * @param signer the key itself, or one that followed it
 */
export function signCompromise(did: string, allBefore: number, signer: KeyPair): Compromise {
  const body = { v: 1 as const, key: did, all_before: allBefore, by: signer.did }
  return { compromise: { ...body, signature: signDocument('keychange', { compromise: body }, signer) } }
}

/**
 * Take a statement in. The same again changes nothing. Where the old key is trusted here the new one is from then on,
 * under the same name and with the same bounds.
 * @param value a parsed key-statement-v1 document
 * @param now ms since epoch
 * @returns the document as read
 * @throws GRANT_INVALID with `malformed`, `weak_key`, `bad_signature`, `not_yet_valid`
 * @throws CONFLICT where the key has changed to another one before, or would follow itself
 * @throws DENIED where the signer of a compromise is neither the key nor one that followed it
 */
export function takeKeyStatement(tx: Transaction, value: unknown, now: number): KeyStatement {
  checkDocument('KeyStatement', value, LIMITS.grantBytes)
  const statement = value as KeyStatement
  if ('keychange' in statement) takeChange(tx, statement, now)
  else takeCompromise(tx, statement, now)
  return statement
}

/** Is what this grant's grantor said of its own key reason not to honour it? */
export function isVoid(view: View, { delegation }: Grant): boolean {
  const { grantor_key: did, granted_at: at } = delegation
  const changed = changeOf(view, did)
  const stolen = compromiseOf(view, did)
  return (
    (changed !== undefined && at >= changed.keychange.effective_at) ||
    (stolen !== undefined && at < stolen.compromise.all_before)
  )
}

/**
 * Since when nothing that a key grants is honoured, as it is in other hands and another one follows it; undefined where
 * something of it may still hold.
 * @returns ms since epoch
 * @clause L1.3
 */
export function endOfKey(view: View, did: string): number | undefined {
  const allBefore = compromiseOf(view, did)?.compromise.all_before
  const changedAt = changeOf(view, did)?.keychange.effective_at
  return allBefore !== undefined && changedAt !== undefined && changedAt <= allBefore ? allBefore : undefined
}

/** The key that speaks for an owner now: the last that followed. */
export function currentKey(view: View, did: string): string {
  return followers(view, did).at(-1) ?? did
}

/** A key and those that followed it, in order. */
export const keysSince = (view: View, did: string): readonly string[] => [did, ...followers(view, did)]

/** True for the owner's first key and each that followed it. What each of them may still have said {@link isVoid} tells. */
export const isKeyOf = (view: View, owner: string, did: string): boolean =>
  owner === did || followers(view, owner).includes(did)

/**
 * Is one of the two keys the other, or did it follow it? Each change is signed by both of its keys, so nobody is led to
 * an owner, or from one, against the will of either.
 */
export const isSameOwner = (view: View, a: string, b: string): boolean => isKeyOf(view, a, b) || isKeyOf(view, b, a)

/** Does this node trust an owner by that key, or by one that followed it? */
export const isTrustedOwner = (view: View, did: string): boolean =>
  keysSince(view, did).some((one) => trusted(view, one) !== undefined)

/** What was said of a key. */
export const statementsOn = (view: View, did: string): readonly KeyStatement[] =>
  [changeOf(view, did), compromiseOf(view, did)].filter((statement) => statement !== undefined)

/** Every statement that was taken in. */
export async function listKeyStatements(view: View): Promise<KeyStatement[]> {
  const found: KeyStatement[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('keyStatement') })) {
    const statement = view.getJson<KeyStatement>(fullKey)
    if (statement !== undefined) found.push(statement)
  }
  return found
}

/**
 * Grants of a key that what was said of it voids, as the status keys they name will say of them: so that they end at
 * nodes which the statement does not reach, too.
 * @param did of the key
 * @param now ms since epoch
 * @returns how many
 */
export async function endVoidGrants(tx: Transaction, did: string, now: number): Promise<number> {
  let count = 0
  for await (const [fullKey] of tx.range({ prefix: prefix('grant') })) {
    const grant = tx.getJson<Grant>(fullKey)
    if (grant?.delegation.grantor_key !== did || !isVoid(tx, grant)) continue
    count++
    const at = key('revoked', tail(fullKey, 'grant'), did)
    if (!tx.has(at)) tx.putJson(at, { void: did, taken_in_at: now })
  }
  return count
}

function takeChange(tx: Transaction, statement: Change, now: number): void {
  const { signature_old: byOld, signature_new: byNew, ...body } = statement.keychange
  for (const did of [body.old, body.new]) checkSigner(did)
  const isSigned =
    verifyDocument('keychange', { keychange: body }, byOld, body.old) &&
    verifyDocument('keychange', { keychange: body }, byNew, body.new)
  if (!isSigned) refuse('bad_signature')
  if (body.effective_at > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  const known = changeOf(tx, body.old)?.keychange
  if (known !== undefined) {
    if (known.new !== body.new || known.effective_at !== body.effective_at)
      fail('CONFLICT', { reason: 'that key has changed before', key: body.old, to: known.new })
    return
  }
  // a circle would have no last key
  if (isKeyOf(tx, body.new, body.old)) fail('CONFLICT', { reason: 'that key was there before', key: body.new })
  tx.putJson(key('keyStatement', body.old, 'change'), statement)
  const entry = trusted(tx, body.old)
  if (entry !== undefined && trusted(tx, body.new) === undefined) trust(tx, { ...entry, did: body.new })
}

function takeCompromise(tx: Transaction, statement: Compromise, now: number): void {
  const { signature, ...body } = statement.compromise
  checkSigner(body.by)
  if (!verifyDocument('keychange', { compromise: body }, signature, body.by)) refuse('bad_signature')
  if (!isKeyOf(tx, body.key, body.by)) fail('DENIED', { reason: 'the signer is neither that key nor a follower' })
  if (body.all_before > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  const known = compromiseOf(tx, body.key)
  // it only ever voids more
  if (known !== undefined && known.compromise.all_before >= body.all_before) return
  tx.putJson(key('keyStatement', body.key, 'compromise'), statement)
}

function followers(view: View, did: string): readonly string[] {
  const found: string[] = []
  let next = changeOf(view, did)?.keychange.new
  while (next !== undefined && found.length < MOST_CHANGES) {
    found.push(next)
    next = changeOf(view, next)?.keychange.new
  }
  return found
}

const changeOf = (view: View, did: string): Change | undefined =>
  view.getJson<Change>(key('keyStatement', did, 'change'))

const compromiseOf = (view: View, did: string): Compromise | undefined =>
  view.getJson<Compromise>(key('keyStatement', did, 'compromise'))
