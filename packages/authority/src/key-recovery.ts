/**
 * The way back for an owner whose key is lost or in other hands. A recovery key is named in advance by its digest only; it
 * is shown on the day it is needed, and what it signs then beats every other change of the key, whichever of them a node
 * hears first. What was granted and said by keys that followed otherwise ends with that.
 *
 * A key that has changed names none any more, and one that stands is replaced by its own signature only: so neither who
 * steals a key later, nor who has it now, gets a way back of their own.
 * @clause L1.3
 */
import { LIMITS, fail, signDocument, verifyDocument, type Grant, type KeyPair } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { checkSigner } from './grant.ts'
import {
  MOST_CHANGES,
  changeAt,
  checkStep,
  isKeyOf,
  keysSince,
  precedingOf,
  recoveryAt,
  recoveryDigest,
  recoveryOf,
  replacedBy,
  replacedUntil,
  replacementsOf,
  standingFor,
  type Recovered,
  type Recovery,
  type Step,
} from './key-line.ts'
import { refuse } from './reasons.ts'
import { trust, trusted, untrust } from './trust.ts'

export type RecoveryInit = {
  /** of the recovery key, see {@link recoveryDigest} */
  readonly digest: string
  /** the recovery key before, where there was one that is not the same */
  readonly replaced?: KeyPair
}

/** Name the key that may recover this one. */
export function signRecovery({ digest, replaced }: RecoveryInit, owner: KeyPair): Recovery {
  const body = {
    v: 1 as const,
    key: owner.did,
    digest,
    ...(replaced === undefined ? {} : { replaces: replaced.did }),
  }
  const signature = signDocument('recovery', { recovery: body }, owner)
  if (replaced === undefined) return { recovery: { ...body, signature } }
  return {
    recovery: { ...body, signature, signature_replaced: signDocument('recovery', { recovery: body }, replaced) },
  }
}

export type RecoveredInit = {
  /** did of the key that is lost */
  readonly old: string
  readonly next: KeyPair
  /** changes of this owner's key up to this one, from 1 */
  readonly seq: number
  /** ms since epoch */
  readonly effectiveAt: number
}

/** Say with the recovery key that `next` follows `old`. The old key is not needed. */
export function signRecovered({ old, next, seq, effectiveAt }: RecoveredInit, recovery: KeyPair): Recovered {
  const body = { v: 1 as const, old, new: next.did, seq, effective_at: effectiveAt, recovery: recovery.did }
  return {
    recovered: {
      ...body,
      signature_recovery: signDocument('recovery', { recovered: body }, recovery),
      signature_new: signDocument('recovery', { recovered: body }, next),
    },
  }
}

/** @throws GRANT_INVALID, CONFLICT */
export async function takeRecovery(tx: Transaction, statement: Recovery): Promise<void> {
  const { signature, signature_replaced: byReplaced, ...body } = statement.recovery
  const { key: did, digest, replaces } = body
  for (const signer of [did, ...(replaces === undefined ? [] : [replaces])]) checkSigner(signer)
  const isSigned =
    verifyDocument('recovery', { recovery: body }, signature, did) &&
    (replaces === undefined || verifyDocument('recovery', { recovery: body }, byReplaced, replaces))
  if (!isSigned) refuse('bad_signature')

  const before = replaces === undefined ? undefined : recoveryDigest(replaces)
  if (before === digest) fail('CONFLICT', { reason: 'a recovery key does not replace itself', digest })
  const standing = recoveryOf(tx, did)
  if (standing === undefined) {
    // whoever stole it since would come back by it
    if (changeAt(tx, did) !== undefined) fail('CONFLICT', { reason: 'that key has changed before', key: did })
    if (before !== undefined && replacedBy(tx, before) === undefined) await replace(tx, before, statement)
    tx.putJson(key('keyStatement', did, 'recovery'), statement)
    carryAlong(tx, did)
    return
  }
  const isKnown = before === undefined || replacedBy(tx, before)?.recovery.digest === digest
  if (!isKnown || standing !== standingFor(tx, digest)) {
    if (before === undefined || standing !== before)
      fail('CONFLICT', { reason: 'another recovery key stands', key: did, digest: standing })
    await replace(tx, before, statement)
  }
  // named by a key before it so far: by its own word from now on
  if (recoveryAt(tx, did)?.recovery.key !== did) tx.putJson(key('keyStatement', did, 'recovery'), statement)
}

async function replace(tx: Transaction, before: string, statement: Recovery): Promise<void> {
  const { digest } = statement.recovery
  if ([before, digest].some((one) => replacedBy(tx, one) !== undefined))
    fail('CONFLICT', { reason: 'that recovery key was replaced before', digest })
  if ((await replacedUntil(tx, before)).size > MOST_CHANGES)
    fail('CONFLICT', { reason: 'too many recovery keys', digest, mostChanges: MOST_CHANGES })
  tx.putJson(key('keyStatement', before, 'replaced'), statement)
}

/** @throws GRANT_INVALID, CONFLICT, DENIED */
export async function takeRecovered(tx: Transaction, statement: Recovered, now: number): Promise<void> {
  const { signature_recovery: byRecovery, signature_new: byNew, ...body } = statement.recovered
  for (const did of [body.recovery, body.old, body.new]) checkSigner(did)
  const isSigned =
    verifyDocument('recovery', { recovered: body }, byRecovery, body.recovery) &&
    verifyDocument('recovery', { recovered: body }, byNew, body.new)
  if (!isSigned) refuse('bad_signature')
  if (!mayRecover(tx, body)) fail('DENIED', { reason: 'no such recovery key was named for that key', key: body.old })
  if (body.effective_at > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  const known = changeAt(tx, body.old)
  if (known !== undefined && 'recovered' in known) {
    const other = known.recovered
    if (other.new === body.new && other.effective_at === body.effective_at) return
    // at every node the same of the two, whichever came first
    if (!isBefore(body, other))
      fail('CONFLICT', { reason: 'that key was recovered before', key: body.old, to: other.new })
  }
  checkStep(tx, body, true)
  const before = keysSince(tx, body.old)
  tx.putJson(key('keyStatement', body.old, 'change'), statement)
  const since = keysSince(tx, body.old)
  await drop(
    tx,
    before.filter((did) => !since.includes(did)),
    now,
  )
  carryAlong(tx, body.old)
}

/**
 * Is that the recovery key of the old one? It counts as well where the very key that came of the recovery has replaced it
 * since: who hears of that first must not refuse the recovery. Replaced before, it recovers nothing.
 */
function mayRecover(view: View, { old, new: next, recovery }: Step & { readonly recovery: string }): boolean {
  const own = recoveryDigest(recovery)
  const first = recoveryAt(view, old)?.recovery.digest
  if (first === undefined) return false
  const replacements = replacementsOf(view, first)
  const at = [first, ...replacements.map((one) => one.recovery.digest)].indexOf(own)
  const [replaced] = at < 0 ? [] : replacements.slice(at)
  return at >= 0 && (replaced === undefined || isKeyOf(view, next, replaced.recovery.key))
}

const isBefore = (a: Step, b: Step): boolean =>
  a.effective_at === b.effective_at ? a.new < b.new : a.effective_at < b.effective_at

/** Keys that followed, until the recovery said otherwise: what they had by that is gone, and what they granted here ends. */
async function drop(tx: Transaction, dids: readonly string[], now: number): Promise<void> {
  if (dids.length === 0) return
  for (const did of dids) {
    // trusted because it followed, and not by somebody's own word
    if (trusted(tx, did)?.after !== undefined) untrust(tx, did)
    if (recoveryAt(tx, did)?.recovery.key !== did) tx.del(key('keyStatement', did, 'recovery'))
  }
  for await (const [fullKey] of tx.range({ prefix: prefix('grant') })) {
    const did = tx.getJson<Grant>(fullKey)?.delegation.grantor_key
    if (did === undefined || !dids.includes(did)) continue
    const at = key('revoked', tail(fullKey, 'grant'), did)
    if (!tx.has(at)) tx.putJson(at, { void: did, taken_in_at: now })
  }
}

/** What a key is trusted for, and which one recovers it, holds for those that follow it. */
export function carryAlong(tx: Transaction, did: string): void {
  let before = did
  for (const next of keysSince(tx, did).slice(1)) {
    const preceding = precedingOf(tx, next)
    if (!preceding.includes(before)) tx.putJson(key('keyStatement', next, 'before'), [...preceding, before])
    const entry = trusted(tx, before)
    if (entry !== undefined && trusted(tx, next) === undefined) trust(tx, { ...entry, did: next, after: before })
    const recovery = recoveryAt(tx, before)
    if (recovery !== undefined && recoveryAt(tx, next) === undefined)
      tx.putJson(key('keyStatement', next, 'recovery'), recovery)
    before = next
  }
}
