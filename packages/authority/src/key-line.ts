/**
 * Which key speaks for an owner, read off the statements that were taken in: each key, the one that followed it, and what
 * is void by that. A recovery stands in the place of the change it beats, so there is one line, whatever came first.
 * @clause L1.3
 */
import { canonicalize, documentHash, type Grant, type KeyStatement } from '@csb/core'
import { key, prefix, tail, type View } from '@csb/store'
import { trusted } from './trust.ts'

export type Change = Extract<KeyStatement, { keychange: unknown }>
export type Compromise = Extract<KeyStatement, { compromise: unknown }>
export type Recovery = Extract<KeyStatement, { recovery: unknown }>
export type Recovered = Extract<KeyStatement, { recovered: unknown }>

/** One key follows another. */
export type Step = { readonly old: string; readonly new: string; readonly effective_at: number; readonly seq: number }

/** Keys that may follow one after another; a circle ends there. So do recovery keys. */
export const MOST_CHANGES = 64

/** The step that a change or a recovery says; undefined for other statements. */
export function stepOf(statement: KeyStatement): Step | undefined {
  if ('keychange' in statement) return statement.keychange
  return 'recovered' in statement ? statement.recovered : undefined
}

/** Did of the key that a statement is about. */
export function subjectOf(statement: KeyStatement): string {
  if ('compromise' in statement) return statement.compromise.key
  return 'recovery' in statement ? statement.recovery.key : (stepOf(statement)?.old ?? '')
}

/** How a recovery key is named before it is shown: nobody finds the key by it. */
export const recoveryDigest = (did: string): string => documentHash('recovery', { recovery_key: did })

/** The digest of the recovery key that stands in the place of that one: itself, where none replaced it. */
export function standingFor(view: View, digest: string): string {
  let standing = digest
  for (let count = 0; count < MOST_CHANGES; count++) {
    const next = replacedBy(view, standing)?.recovery.digest
    if (next === undefined) break
    standing = next
  }
  return standing
}

/** Digest of the key by which that one can be recovered; undefined where none was published. */
export function recoveryOf(view: View, did: string): string | undefined {
  const digest = recoveryAt(view, did)?.recovery.digest
  return digest === undefined ? undefined : standingFor(view, digest)
}

/** Is what this grant's grantor said of its own key reason not to honour it? */
export function isVoid(view: View, { delegation }: Grant): boolean {
  const { grantor_key: did, granted_at: at } = delegation
  const changed = stepFrom(view, did)
  const allBefore = voidBefore(view, did)
  return (changed !== undefined && at >= changed.effective_at) || (allBefore !== undefined && at < allBefore)
}

/**
 * Since when nothing that a key grants is honoured, as it is in other hands and another one follows it; undefined where
 * something of it may still hold.
 * @returns ms since epoch
 * @clause L1.3
 */
export function endOfKey(view: View, did: string): number | undefined {
  const allBefore = voidBefore(view, did)
  const changedAt = stepFrom(view, did)?.effective_at
  return allBefore !== undefined && changedAt !== undefined && changedAt <= allBefore ? allBefore : undefined
}

/** The key that speaks for an owner now: the last that followed. */
export const currentKey = (view: View, did: string): string => followers(view, did).at(-1) ?? did

/** A key and those that followed it, in order. */
export const keysSince = (view: View, did: string): readonly string[] => [did, ...followers(view, did)]

/** A key and those that it followed, the latest first. */
export function keysUntil(view: View, did: string): readonly [string, ...string[]] {
  const found: [string, ...string[]] = [did]
  for (const one of found)
    for (const old of precedingOf(view, one)) {
      // a recovery may have led elsewhere since
      const isBefore = stepFrom(view, old)?.new === one && !found.includes(old)
      if (isBefore && found.length <= MOST_CHANGES) found.push(old)
    }
  return found
}

/** Dids of keys that were said to be followed by that one. */
export const precedingOf = (view: View, did: string): readonly string[] =>
  view.getJson<readonly string[]>(key('keyStatement', did, 'before')) ?? []

/** True for the owner's first key and each that followed it. What each of them may still have said {@link isVoid} tells. */
export const isKeyOf = (view: View, owner: string, did: string): boolean =>
  owner === did || followers(view, owner).includes(did)

/**
 * Is one of the two keys the other, or did it follow it? Each change is signed by both of its keys, or by the new one and
 * by the recovery key that the old one named, so nobody is led to an owner, or from one, against the will of either.
 */
export const isSameOwner = (view: View, a: string, b: string): boolean => isKeyOf(view, a, b) || isKeyOf(view, b, a)

/** Does this node trust an owner by that key, or by one that followed it? */
export const isTrustedOwner = (view: View, did: string): boolean =>
  keysSince(view, did).some((one) => trusted(view, one) !== undefined)

/** What was said of a key and counts, in the order in which it is believed. */
export function statementsOn(view: View, did: string): readonly KeyStatement[] {
  const own = recoveryAt(view, did)
  const said: KeyStatement[] = own?.recovery.key === did ? [own] : []
  for (let next = own?.recovery.digest; next !== undefined && said.length < MOST_CHANGES;) {
    const statement: Recovery | undefined = replacedBy(view, next)
    if (statement !== undefined && statement !== own) said.push(statement)
    next = statement?.recovery.digest
  }
  return inOrder([...said, ...[changeAt(view, did)].filter((one) => one !== undefined), ...compromisesOf(view, did)])
}

/** Every statement that was taken in and counts, in the order in which they are believed. */
export async function listKeyStatements(view: View): Promise<KeyStatement[]> {
  const found: KeyStatement[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('keyStatement') })) {
    const [did = '', kind] = tail(fullKey, 'keyStatement').split('/')
    if (kind === 'compromise') found.push(...compromisesOf(view, did))
    else if (kind !== 'before') found.push(view.getJson<KeyStatement>(fullKey) as KeyStatement)
  }
  return inOrder(found)
}

/**
 * The same statements, each once, in an order in which a node that knows none of them takes in all: of each key which one
 * may recover it, then which one follows, then the same of that one; last, which of them are in other hands.
 */
export function inOrder(statements: readonly KeyStatement[]): KeyStatement[] {
  const texts = new Map(statements.map((one) => [canonicalize(one), one]))
  const each = [...texts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
  const steps = each.flatMap((one) => stepOf(one) ?? [])
  const depthOf = (did: string, count = 0): number => {
    const step = count > MOST_CHANGES ? undefined : steps.find((one) => one.new === did)
    return step === undefined ? 0 : 1 + depthOf(step.old, count + 1)
  }
  const recoveries = each.filter((one) => 'recovery' in one)
  const placeOf = ({ recovery: { replaces } }: Recovery, count = 0): number => {
    const digest = replaces === undefined ? undefined : recoveryDigest(replaces)
    const before = recoveries.find(({ recovery }) => recovery.digest === digest)
    return before === undefined || count > MOST_CHANGES ? 0 : 1 + placeOf(before, count + 1)
  }
  const ranked = each.map((one) => ({ one, rank: rankOf(one, depthOf(subjectOf(one)), placeOf) }))
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ one }) => one)
}

function rankOf(statement: KeyStatement, depth: number, placeOf: (recovery: Recovery) => number): number {
  const span = 2 * MOST_CHANGES
  if ('compromise' in statement) return Number.MAX_SAFE_INTEGER
  if ('recovery' in statement) return depth * span + Math.min(placeOf(statement), MOST_CHANGES)
  // where both are there the recovery is the later word
  return depth * span + MOST_CHANGES + ('recovered' in statement ? 2 : 1)
}

/** What leads from that key to the next one. */
export const changeAt = (view: View, did: string): Change | Recovered | undefined =>
  view.getJson<Change | Recovered>(key('keyStatement', did, 'change'))

/** What was published of its recovery key, by itself or by the one that it followed. */
export const recoveryAt = (view: View, did: string): Recovery | undefined =>
  view.getJson<Recovery>(key('keyStatement', did, 'recovery'))

/** What put another recovery key in the place of the one with that digest. */
export const replacedBy = (view: View, digest: string): Recovery | undefined =>
  view.getJson<Recovery>(key('keyStatement', digest, 'replaced'))

/** Who said that the key is in other hands, each with the latest time: those only count that still follow it. */
export function compromisesOf(view: View, did: string): readonly Compromise[] {
  const said = view.getJson<readonly Compromise[]>(key('keyStatement', did, 'compromise')) ?? []
  return said.filter(({ compromise }) => isKeyOf(view, did, compromise.by))
}

function voidBefore(view: View, did: string): number | undefined {
  const times = compromisesOf(view, did).map(({ compromise }) => compromise.all_before)
  return times.length === 0 ? undefined : Math.max(...times)
}

function stepFrom(view: View, did: string): Step | undefined {
  const change = changeAt(view, did)
  return change === undefined ? undefined : stepOf(change)
}

function followers(view: View, did: string): readonly string[] {
  const found: string[] = []
  let next = stepFrom(view, did)?.new
  while (next !== undefined && found.length < MOST_CHANGES) {
    found.push(next)
    next = stepFrom(view, next)?.new
  }
  return found
}
