/**
 * The optional members of a memory entry, each read leniently: what does not fit is converted, or dropped
 * with a warning. Undefined means that nothing of the member could be kept.
 * @clause MEM-001.1.4 MEM-001.1.5 MEM-002.2.1
 */
import { fail, LIMITS, type Memory } from '@csb/core'
import { countChars, isObject, toNumber, toText, toTime, type JsonObject } from './coerce.ts'

const RELATIONS = ['causes', 'relates_to', 'extends', 'contradicts', 'resolved_by', 'caused_by'] as const

/** One change that was made to an entry: JSON pointer, what was there, what is there now (absent: nothing). */
export type Warning = { readonly path: string; readonly from?: unknown; readonly to?: unknown }

/** An entry as it came, its fallback value, and where changes are listed. */
export type Fields = { readonly raw: JsonObject; readonly fallback: unknown; readonly warnings: Warning[] }

type Link = NonNullable<Memory['links']>[number]

/** Texts of 1 to LIMITS.memoryTagChars code points, each once, at most LIMITS.memoryTags. */
export function readTags(given: unknown, warnings: Warning[]): string[] | undefined {
  const list = toList(given, '/tags', warnings)
  if (list === undefined) return undefined
  const tags = new Set<string>()
  for (const [at, item] of list.entries()) {
    const tag = toText(item)?.trim()
    const fits =
      tag !== undefined && tag !== '' && countChars(tag) <= LIMITS.memoryTagChars && tags.size < LIMITS.memoryTags
    if (!fits || tags.has(tag)) {
      warnings.push({ path: `/tags/${at}`, from: item })
      continue
    }
    if (tag !== item) warnings.push({ path: `/tags/${at}`, from: item, to: tag })
    tags.add(tag)
  }
  return [...tags]
}

/** Finite numbers, at most LIMITS.embeddingDims; a vector with a hole in it is none. */
export function readVector(given: unknown, warnings: Warning[]): number[] | undefined {
  const list = toList(given, '/embedding', warnings)
  const vector = list?.map(toNumber)
  if (vector === undefined || vector.length > LIMITS.embeddingDims || vector.includes(undefined)) {
    warnings.push({ path: '/embedding', from: `${list?.length ?? 0} values` })
    return undefined
  }
  if (vector.some((item, at) => item !== list?.[at]))
    warnings.push({ path: '/embedding', to: `${vector.length} numbers` })
  return vector as number[]
}

/**
 * Links of MEM-001 1.5, each (relation, target) once. An unknown relation becomes `relates_to`, and what it
 * was is kept beside it.
 * @param id of the entry that bears them
 * @throws INVALID_INPUT for a link to itself
 */
export function readLinks(given: unknown, warnings: Warning[], id: string): Link[] | undefined {
  const list = toList(given, '/links', warnings)
  if (list === undefined) return undefined
  const links = new Map<string, Link>()
  for (const [at, item] of list.entries()) {
    const path = `/links/${at}`
    const link = readLink(item, path, warnings)
    if (link?.target_id === id)
      fail('INVALID_INPUT', { schema: 'Memory', errors: [{ path, keyword: 'self', message: 'links to itself' }] })
    const name = link === undefined ? '' : `${link.relation} ${link.target_id}`
    if (link === undefined || links.has(name)) warnings.push({ path, from: item })
    else links.set(name, link)
  }
  return [...links.values()]
}

/**
 * The open map of MEM-001 1.3, with its four numbers as numbers. A number that is none becomes the fallback
 * where that is one, else goes.
 * @throws INVALID_INPUT for a ttl not above 0
 */
export function readMetadata(given: unknown, warnings: Warning[], fallback: unknown): JsonObject | undefined {
  const members = readObject(given, '/metadata', warnings)
  if (members === undefined) return undefined
  const metadata: Record<string, unknown> = { ...members }
  for (const name of ['lastAccessed', 'accessCount', 'ttl', 'version']) {
    const value = metadata[name]
    if (value === undefined || value === null) continue
    const number =
      (name === 'lastAccessed' ? toTime(value) : toNumber(value)) ??
      (typeof fallback === 'number' ? toNumber(fallback) : undefined)
    if (number !== value)
      warnings.push({ path: `/metadata/${name}`, from: value, ...(number === undefined ? {} : { to: number }) })
    if (number === undefined) delete metadata[name]
    else metadata[name] = number
    if (name === 'ttl' && number !== undefined && number <= 0) {
      fail('INVALID_INPUT', {
        schema: 'Memory',
        errors: [{ path: '/metadata/ttl', keyword: 'exclusiveMinimum', message: 'must be > 0' }],
      })
    }
  }
  return metadata
}

/** A map as it is; anything else goes with a warning. */
export function readObject(given: unknown, path: string, warnings: Warning[]): JsonObject | undefined {
  if (isObject(given)) return given
  warnings.push({ path, from: given })
  return undefined
}

/** A list as it is, a single value as a list of one; null is none. */
function toList(given: unknown, path: string, warnings: Warning[]): readonly unknown[] | undefined {
  if (Array.isArray(given)) return given
  if (given === null || given === undefined) return undefined
  warnings.push({ path, from: given, to: [given] })
  return [given]
}

function readLink(given: unknown, path: string, warnings: Warning[]): Link | undefined {
  if (!isObject(given)) return undefined
  const target = toText(given['target_id'])
  if (target === undefined || target === '' || countChars(target) > 128) return undefined
  const relation = RELATIONS.find((name) => name === given['relation'])
  const weight = readWeight(given['weight'], path, warnings)
  const { weight: _, ...others } = given
  if (relation === undefined) warnings.push({ path: `${path}/relation`, from: given['relation'], to: 'relates_to' })
  const original =
    relation === undefined && given['relation'] !== undefined ? { original_relation: given['relation'] } : {}
  return {
    ...others,
    ...original,
    target_id: target,
    relation: relation ?? 'relates_to',
    ...(weight === undefined ? {} : { weight }),
  }
}

function readWeight(given: unknown, path: string, warnings: Warning[]): number | undefined {
  if (given === undefined) return undefined
  const number = toNumber(given)
  const weight = number !== undefined && number >= 0 && number <= 1 ? number : undefined
  if (weight !== given)
    warnings.push({ path: `${path}/weight`, from: given, ...(weight === undefined ? {} : { to: weight }) })
  return weight
}
