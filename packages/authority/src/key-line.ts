/**
 * Which key speaks for an owner, read off the statements that were taken in: each key, the one that followed it, and what
 * is void by that. A recovery stands in the place of the change it beats, so there is one line, whatever came first.
 * @clause L1.3
 */
import { canonicalize, documentHash, fail, type Grant, type KeyStatement } from '@csb/core'
import { key, prefix, tail, type View } from '@csb/store'
import { trusted } from './trust.ts'

export type Change = Extract<KeyStatement, { keychange: unknown }>
export type Compromise = Extract<KeyStatement, { compromise: unknown }>
export type Recovery = Extract<KeyStatement, { recovery: unknown }>
export type Recovered = Extract<KeyStatement, { recovered: unknown }>

/** One key follows another. */
export type Step = { readonly old: string; readonly new: string; readonly effective_at: number; readonly seq: number }

/**
 * Steps by which keys lead to the last one of an owner, and replacements of a recovery key: nobody changes keys so often,
 * and whoever has one of them could write without end.
 */
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

/** What put one recovery key after another in the place of the one with that digest; a circle ends where it closes. */
export function replacementsOf(view: View, digest: string): readonly Recovery[] {
  const found = new Map<string, Recovery>()
  for (let at = digest; !found.has(at);) {
    const statement = replacedBy(view, at)
    if (statement === undefined) break
    found.set(at, statement)
    at = statement.recovery.digest
  }
  return [...found.values()]
}

/** The digest of the recovery key that stands in the place of that one: itself, where none replaced it. */
export const standingFor = (view: View, digest: string): string =>
  replacementsOf(view, digest).at(-1)?.recovery.digest ?? digest

/** Digests of the recovery keys that the one with that digest took the place of, and that one: by whatever ways. */
export async function replacedUntil(view: View, digest: string): Promise<ReadonlySet<string>> {
  const before = new Map<string, string[]>()
  for await (const [fullKey] of view.range({ prefix: prefix('keyStatement') })) {
    const [old = '', kind] = tail(fullKey, 'keyStatement').split('/')
    const to = kind === 'replaced' ? replacedBy(view, old)?.recovery.digest : undefined
    if (to !== undefined) before.set(to, [...(before.get(to) ?? []), old])
  }
  const found = new Set([digest])
  for (const one of found) for (const old of before.get(one) ?? []) found.add(old)
  return found
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
  const known = new Set<string>(found)
  for (const one of found)
    for (const old of precedingOf(view, one)) {
      // a recovery may have led elsewhere since
      if (stepFrom(view, old)?.new !== one || known.has(old)) continue
      known.add(old)
      found.push(old)
    }
  return found
}

/**
 * May that step be taken in? All keys that lead to one last key are counted, by whatever ways, as each is a row for ever
 * and what the first is trusted for goes along to the last. A recovery that leads to a key of which nothing was said is
 * let through where the line is full: a thief could fill it, before the stolen key or behind it, and bar the way back.
 * @throws CONFLICT where it would be a circle, or more than {@link MOST_CHANGES} steps
 * @clause L1.3
 */
export function checkStep(view: View, { old, new: next }: Step, isRecovery: boolean): void {
  // a circle would have no last key
  if (isKeyOf(view, next, old)) fail('CONFLICT', { reason: 'that key was there before', key: next })
  const last = currentKey(view, next)
  const keys = new Set([...keysUntil(view, old), ...keysUntil(view, last), next, last])
  const most = isRecovery && isNew(view, next) ? MOST_CHANGES + 1 : MOST_CHANGES
  const preceding = precedingOf(view, next)
  if (keys.size - 1 > most || (!preceding.includes(old) && preceding.length >= MOST_CHANGES))
    fail('CONFLICT', { reason: 'too many keys', key: old, mostChanges: MOST_CHANGES })
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
  if (own !== undefined) said.push(...replacementsOf(view, own.recovery.digest))
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
  const stepTo = firstOf(
    each.flatMap((one) => stepOf(one) ?? []),
    (step) => step.new,
  )
  const depthOf = (did: string, count = 0): number => {
    const step = count > MOST_CHANGES ? undefined : stepTo.get(did)
    return step === undefined ? 0 : 1 + depthOf(step.old, count + 1)
  }
  const recoveryFor = firstOf(
    each.filter((one) => 'recovery' in one),
    ({ recovery }) => recovery.digest,
  )
  const placeOf = ({ recovery: { replaces } }: Recovery, count = 0): number => {
    const before = replaces === undefined ? undefined : recoveryFor.get(recoveryDigest(replaces))
    return before === undefined || count > MOST_CHANGES ? 0 : 1 + placeOf(before, count + 1)
  }
  const ranked = each.map((one) => ({ one, rank: rankOf(one, depthOf(subjectOf(one)), placeOf) }))
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ one }) => one)
}

/** By name, the first that has it. */
const firstOf = <T>(items: readonly T[], nameOf: (item: T) => string): ReadonlyMap<string, T> =>
  new Map(items.toReversed().map((item) => [nameOf(item), item]))

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
  const found = new Set<string>()
  for (let next = stepFrom(view, did)?.new; next !== undefined && !found.has(next); next = stepFrom(view, next)?.new)
    found.add(next)
  return [...found]
}

/** Was nothing said of that key yet, by itself or by one that it follows? */
const isNew = (view: View, did: string): boolean =>
  changeAt(view, did) === undefined &&
  recoveryAt(view, did) === undefined &&
  precedingOf(view, did).length === 0 &&
  compromisesOf(view, did).length === 0
