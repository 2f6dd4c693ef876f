/**
 * What an owner says of a key. A change names the key that follows, signed by both; what the old one granted before
 * holds to its expiry, what it grants from then on is void. A compromise voids what was granted before a time,
 * irrevocable or not. Both are for ever, and both are looked at wherever revocation is.
 *
 * A key changes once: the first change that is taken in stands, so that whoever steals an old key later can not lead
 * its followers elsewhere. Only the recovery key that was named before is stronger: key-recovery.ts.
 * @clause L1.3, DEL-003.3.4
 */
import { LIMITS, fail, signDocument, verifyDocument, type Grant, type KeyPair, type KeyStatement } from '@csb/core'
import { key, prefix, tail, type Transaction } from '@csb/store'
import { checkDocument, checkSigner } from './grant.ts'
import { changeAt, checkStep, isKeyOf, isVoid, stepOf, subjectOf, type Change, type Compromise } from './key-line.ts'
import { carryAlong, takeRecovered, takeRecovery } from './key-recovery.ts'
import { refuse } from './reasons.ts'
import { noteUntoldKey } from './shown.ts'

export type KeyChangeInit = {
  readonly old: KeyPair
  readonly next: KeyPair
  /** changes of this owner's key up to this one, from 1 */
  readonly seq: number
  /** ms since epoch */
  readonly effectiveAt: number
}

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
 * @throws CONFLICT where the key has changed to another one before, would follow itself, or too many keys would lead to one;
 *   where another recovery key stands, or too many stood before it
 * @throws DENIED where the signer of a compromise is neither the key nor one that followed it, or a recovery is not signed
 *   by the key that was named for it
 */
export async function takeKeyStatement(tx: Transaction, value: unknown, now: number): Promise<KeyStatement> {
  checkDocument('KeyStatement', value, LIMITS.grantBytes)
  const statement = value as KeyStatement
  if ('keychange' in statement) takeChange(tx, statement, now)
  else if ('compromise' in statement) takeCompromise(tx, statement, now)
  else if ('recovery' in statement) await takeRecovery(tx, statement)
  else await takeRecovered(tx, statement, now)
  return statement
}

export type Hearing = {
  /** dids of peers that are to hear, besides those that were shown a grant of these keys */
  readonly also: readonly string[]
  /** dids of peers that know already */
  readonly except: readonly string[]
}

/** What came of statements that were taken in together. */
export type Taken = {
  readonly statements: readonly KeyStatement[]
  /** grants of the keys they are about that are void */
  readonly ended: number
  /** dids of peers that are to hear */
  readonly peers: readonly string[]
}

/**
 * Take several statements in, in their order, with what follows from them: grants that end, peers that are to hear.
 * @param values parsed key-statement-v1 documents
 * @param now ms since epoch
 * @throws as {@link takeKeyStatement}
 */
export async function takeKeyStatements(
  tx: Transaction,
  values: readonly unknown[],
  { now, also, except }: Hearing & { readonly now: number },
): Promise<Taken> {
  const statements: KeyStatement[] = []
  for (const value of values) statements.push(await takeKeyStatement(tx, value, now))
  let ended = 0
  const peers = new Set<string>()
  for (const about of new Set(statements.map(subjectOf))) {
    ended += await endVoidGrants(tx, about, now)
    for (const did of await noteUntoldKey(tx, about, { also, except, now })) peers.add(did)
  }
  return { statements, ended, peers: [...peers] }
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
    // nobody's word: only where to look, as a recovery may say later that it was a thief who called the key stolen
    const at = key('revoked', tail(fullKey, 'grant'), 'void')
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
  const change = changeAt(tx, body.old)
  const known = change === undefined ? undefined : stepOf(change)
  if (known !== undefined) {
    if (known.new !== body.new || known.effective_at !== body.effective_at)
      fail('CONFLICT', { reason: 'that key has changed before', key: body.old, to: known.new })
    return
  }
  checkStep(tx, body, false)
  tx.putJson(key('keyStatement', body.old, 'change'), statement)
  carryAlong(tx, body.old)
}

function takeCompromise(tx: Transaction, statement: Compromise, now: number): void {
  const { signature, ...body } = statement.compromise
  checkSigner(body.by)
  if (!verifyDocument('keychange', { compromise: body }, signature, body.by)) refuse('bad_signature')
  if (!isKeyOf(tx, body.key, body.by)) fail('DENIED', { reason: 'the signer is neither that key nor a follower' })
  if (body.all_before > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  const at = key('keyStatement', body.key, 'compromise')
  const said = tx.getJson<readonly Compromise[]>(at) ?? []
  const known = said.find(({ compromise }) => compromise.by === body.by)
  // it only ever voids more
  if (known !== undefined && known.compromise.all_before >= body.all_before) return
  tx.putJson(at, [...said.filter((one) => one !== known), statement])
}
