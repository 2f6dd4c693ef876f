/**
 * Trust labels: how secret (level), how far from the owner (integrity), which categories (tags).
 *
 * Levels `public < trusted < private < sealed`; integrity `external < agent < owner`. Joining two labels
 * can only restrict: higher level, lower integrity, all tags. A label nobody can read is the most restrictive.
 * A label is at most LIMITS.labelChars long: beyond that one tag stands for all, which only who holds every tag can see.
 * @clause L3.2
 */
import { LIMITS } from './limits.ts'

export const LEVELS = ['public', 'trusted', 'private', 'sealed'] as const
export const INTEGRITIES = ['external', 'agent', 'owner'] as const

export type Level = (typeof LEVELS)[number]
export type Integrity = (typeof INTEGRITIES)[number]

/** Tags are sorted and unique. */
export type Label = { readonly level: Level; readonly integrity: Integrity; readonly tags: readonly string[] }

/** What a reader may see: a level and the tags it holds; the tag `*` stands for all of them. */
export type Clearance = { readonly level: Level; readonly tags: readonly string[] }

/** In a clearance: all tags. No label can bear it. */
export const EVERY_TAG = '*'

/** In a label: more tags than it has room for. Joined with others it stays alone. */
export const TOO_MANY_TAGS = 'too-many'

/** Room for tags beside the longest level and integrity. */
const TAG_CHARS = LIMITS.labelChars - 'sealed:external:'.length

export const MOST_RESTRICTIVE: Label = { level: 'sealed', integrity: 'external', tags: [] }
export const PUBLIC: Label = { level: 'public', integrity: 'owner', tags: [] }
export const OWNER_PRIVATE: Label = { level: 'private', integrity: 'owner', tags: [] }
/** Joined with what comes from outside: it makes nothing more secret, and nobody's word. */
export const OUTSIDE: Label = { level: 'public', integrity: 'external', tags: [] }

export const isLevel = (value: unknown): value is Level => LEVELS.includes(value as Level)
export const isIntegrity = (value: unknown): value is Integrity => INTEGRITIES.includes(value as Integrity)

/** -1, 0 or 1 as for a sort. */
export const compareLevels = (a: Level, b: Level): number => Math.sign(LEVELS.indexOf(a) - LEVELS.indexOf(b))

/** True where `level` is at most `ceiling`. */
export const isWithin = (level: Level, ceiling: Level): boolean => compareLevels(level, ceiling) <= 0

/** The least restrictive label that is no weaker than any of `labels`; of none, {@link PUBLIC}. */
export function joinLabels(labels: Iterable<Label>): Label {
  let level = 0
  let integrity: number = INTEGRITIES.length - 1
  const tags = new Set<string>()
  for (const label of labels) {
    level = Math.max(level, LEVELS.indexOf(label.level))
    integrity = Math.min(integrity, INTEGRITIES.indexOf(label.integrity))
    for (const tag of label.tags) tags.add(tag)
  }
  return {
    level: LEVELS[level] ?? MOST_RESTRICTIVE.level,
    integrity: INTEGRITIES[integrity] ?? MOST_RESTRICTIVE.integrity,
    tags: fitting([...tags].sort()),
  }
}

/** Which tags there are decides, and not in what order they came: so joining stays the same in any grouping. */
function fitting(tags: string[]): string[] {
  return tags.includes(TOO_MANY_TAGS) || tags.join(',').length > TAG_CHARS ? [TOO_MANY_TAGS] : tags
}

/**
 * True where a reader with `clearance` may see what bears `label`.
 * @clause L4.2
 */
export function dominates(clearance: Clearance, label: Label): boolean {
  if (!isWithin(label.level, clearance.level)) return false
  return clearance.tags.includes(EVERY_TAG) || label.tags.every((tag) => clearance.tags.includes(tag))
}

/** What may be seen under both clearances: the lower level, the tags they share. */
export function meetClearances(a: Clearance, b: Clearance): Clearance {
  const level = isWithin(a.level, b.level) ? a.level : b.level
  if (a.tags.includes(EVERY_TAG)) return { level, tags: b.tags }
  return { level, tags: b.tags.includes(EVERY_TAG) ? a.tags : a.tags.filter((tag) => b.tags.includes(tag)) }
}

/** One spelling per label: `private:owner` or `private:owner:health,work`. Also the id of a sync compartment. */
export function formatLabel(label: Label): string {
  const tags = [...new Set(label.tags)].sort().join(',')
  return tags === '' ? `${label.level}:${label.integrity}` : `${label.level}:${label.integrity}:${tags}`
}

/** Read a label's spelling; whatever is not one is the most restrictive, never an error. A bare level means the owner's. */
export function parseLabel(text: unknown): Label {
  if (typeof text !== 'string') return MOST_RESTRICTIVE
  const [level, integrity = 'owner', tags = '', ...rest] = text.split(':')
  if (!isLevel(level) || !isIntegrity(integrity) || rest.length > 0) return MOST_RESTRICTIVE
  const list = tags === '' ? [] : tags.split(',')
  if (!list.every((tag) => /^[\p{L}\p{N}][\p{L}\p{N}_-]{0,63}$/u.test(tag))) return MOST_RESTRICTIVE
  return { level, integrity, tags: [...new Set(list)].sort() }
}
