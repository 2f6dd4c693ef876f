/**
 * Take in a memory entry as MEM-001 1.4 wants it: lenient by default, strict where the entry asks for it.
 *
 * Lenient fills what is missing, converts what can be converted and lists each change as a warning; strict
 * refuses where lenient would have changed anything. Unknown members are kept, content is never cut.
 * @clause MEM-001.1.4
 */
import { checkSchema, fail, isId, LIMITS, newId, validate, type Memory } from '@csb/core'
import { copyJson, countChars, isObject, toBoolean, toText, toTime, type JsonObject } from './coerce.ts'
import { readLinks, readMetadata, readObject, readTags, readVector, type Fields, type Warning } from './fields.ts'

const TYPES = ['event', 'decision', 'lesson', 'todo', 'discovery', 'preference', 'identity', 'other'] as const
const SOURCES = ['session', 'user', 'system', 'skill', 'agent'] as const
const MEMORY_LEVELS = ['hot', 'warm', 'cold'] as const
const OPTIONAL = ['source', 'tags', 'links', 'metadata', 'embedding', 'link_metadata', 'business_context'] as const
const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'type',
  'content',
  'timestamp',
  'level',
  'fault_tolerance',
  ...OPTIONAL,
])

/** The names a home gives to the three levels (MEM-001 1.2). */
export type LevelMap = { readonly [level in Memory['level']]?: string }

export type Normalised = { readonly entry: Memory; readonly warnings: readonly Warning[] }

type Tolerance = NonNullable<Memory['fault_tolerance']>

/**
 * @param input what a caller, a file or a peer gave
 * @param options `now` in ms since epoch; `levelMap` the names under which levels are also understood
 * @returns an entry that fits its schema; normalising it again changes nothing
 * @throws INVALID_INPUT with `errors: [{path, keyword, message}]`: no content, content longer than
 *   LIMITS.memoryContentChars, ttl not above 0, a link to itself, or anything a strict entry leaves amiss
 * @clause MEM-001.1.4
 */
export function normaliseEntry(
  input: unknown,
  { now, levelMap = {} }: { readonly now: number; readonly levelMap?: LevelMap },
): Normalised {
  const raw = copyJson(input)
  if (!isObject(raw)) refuse('', 'type', 'must be an object')
  const warnings: Warning[] = []
  const tolerance = readTolerance(raw, warnings)
  if (tolerance?.strict_schema === true) checkSchema('Memory', raw)
  const fields: Fields = { raw, fallback: tolerance?.fallback_value, warnings }

  const required = {
    id: readId(fields, now),
    type: readType(fields),
    content: readContent(fields),
    timestamp: readTimestamp(fields, now),
    level: readLevel(fields, levelMap),
  }
  const optional = readOptional(fields, required.id)
  if (tolerance?.strict === true) refuseRepairs(raw, warnings)

  const unknown = Object.entries(raw).filter(([name]) => !KNOWN.has(name))
  const members = [...Object.entries({ ...required, ...optional, fault_tolerance: tolerance }), ...unknown]
  const entry = Object.fromEntries(members.filter(([, value]) => value !== undefined))
  return { entry: validate('Memory', entry), warnings }
}

/**
 * The level a name stands for: its own or the one a home gave it; undefined for any other.
 * @clause MEM-001.1.2
 */
export function levelOf(name: unknown, levelMap: LevelMap = {}): Memory['level'] | undefined {
  if (typeof name !== 'string') return undefined
  const wanted = name.trim().toLowerCase()
  return (
    MEMORY_LEVELS.find((level) => level === wanted) ??
    MEMORY_LEVELS.find((level) => levelMap[level]?.toLowerCase() === wanted)
  )
}

/** True for one of the eight types of MEM-001 1.3. */
export const isType = (name: unknown): name is Memory['type'] => TYPES.some((type) => type === name)

function readTolerance(raw: JsonObject, warnings: Warning[]): Tolerance | undefined {
  const given = raw['fault_tolerance']
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) {
    warnings.push({ path: '/fault_tolerance', from: given })
    return undefined
  }
  const tolerance: Record<string, unknown> = { ...given }
  const convert = (name: string, read: (value: unknown) => unknown) => {
    if (tolerance[name] === undefined) return
    const value = read(tolerance[name])
    if (value === tolerance[name]) return
    const change = value === undefined ? {} : { to: value }
    warnings.push({ path: `/fault_tolerance/${name}`, from: tolerance[name], ...change })
    if (value === undefined) delete tolerance[name]
    else tolerance[name] = value
  }
  convert('strict', toBoolean)
  convert('strict_schema', toBoolean)
  convert('compatibility', toText)
  return tolerance
}

function readId({ raw, warnings }: Fields, now: number): string {
  if (isId('memory', raw['id'])) return raw['id']
  const id = newId('memory', now)
  // an entry without an id is the usual one; only an id that can not stand is worth a warning
  if (raw['id'] !== undefined && raw['id'] !== null) warnings.push({ path: '/id', from: raw['id'], to: id })
  return id
}

function readType({ raw, warnings }: Fields): Memory['type'] {
  return oneOf(raw['type'], TYPES, 'other', '/type', warnings)
}

function readContent({ raw, warnings }: Fields): string {
  const content = toText(raw['content'])
  if (content === undefined || content === '') return refuse('/content', 'minLength', 'must be text that is not empty')
  if (content.includes('\0')) refuse('/content', 'pattern', 'must not hold NUL')
  const chars = countChars(content)
  if (chars > LIMITS.memoryContentChars) {
    const parts = Math.ceil(chars / LIMITS.memoryContentChars)
    const message = `must not have more than ${LIMITS.memoryContentChars} characters`
    fail('INVALID_INPUT', {
      schema: 'Memory',
      errors: [{ path: '/content', keyword: 'maxLength', message }],
      chars,
      parts,
    })
  }
  if (content !== raw['content']) warnings.push({ path: '/content', from: raw['content'], to: content })
  return content
}

function readTimestamp({ raw, fallback, warnings }: Fields, now: number): number {
  const given = raw['timestamp'] ?? undefined
  const timestamp = toTime(given) ?? (given === undefined ? undefined : toTime(fallback)) ?? now
  if (timestamp !== given) warnings.push({ path: '/timestamp', ...from(given), to: timestamp })
  return timestamp
}

function readLevel({ raw, warnings }: Fields, levelMap: LevelMap): Memory['level'] {
  const given = raw['level']
  const level = levelOf(given, levelMap)
  if (level === undefined) warnings.push({ path: '/level', ...from(given), to: 'warm' })
  return level ?? 'warm'
}

function readOptional(fields: Fields, id: string): Partial<Memory> {
  const { raw, fallback, warnings } = fields
  const read = (name: (typeof OPTIONAL)[number], value: unknown, notes: Warning[]): unknown => {
    const path = `/${name}`
    if (name === 'source') return oneOf(value, SOURCES, 'system', path, notes)
    if (name === 'tags') return readTags(value, notes)
    if (name === 'links') return readLinks(value, notes, id)
    if (name === 'embedding') return readVector(value, notes)
    if (name === 'metadata') return readMetadata(value, notes, fallback)
    return readObject(value, path, notes)
  }
  const entries = OPTIONAL.map((name) => {
    const given = raw[name] ?? undefined
    const value = given === undefined ? undefined : read(name, given, warnings)
    if (value !== undefined || fallback === undefined) return [name, value] as const
    // the one fallback value of an entry fills whichever member it fits without a change
    const notes: Warning[] = []
    const filled = read(name, fallback, notes)
    if (filled === undefined || notes.length > 0) return [name, undefined] as const
    warnings.push({ path: `/${name}`, ...from(given), to: filled })
    return [name, filled] as const
  })
  return Object.fromEntries(entries) as Partial<Memory>
}

function oneOf<T extends string>(
  given: unknown,
  list: readonly T[],
  otherwise: T,
  path: string,
  warnings: Warning[],
): T {
  const name = typeof given === 'string' ? given.trim().toLowerCase() : given
  const found = list.find((item) => item === name) ?? otherwise
  if (found !== given) warnings.push({ path, ...from(given), to: found })
  return found
}

/** Strict: what lenient would have made up or changed is refused, and so is a missing id. */
function refuseRepairs(raw: JsonObject, warnings: readonly Warning[]): void {
  const paths = [...(raw['id'] === undefined ? ['/id'] : []), ...warnings.map(({ path }) => path)]
  if (paths.length === 0) return
  const errors = [...new Set(paths)]
    .slice(0, 8)
    .map((path) => ({ path, keyword: 'strict', message: 'missing or of another form' }))
  fail('INVALID_INPUT', { schema: 'Memory', errors })
}

function refuse(path: string, keyword: string, message: string): never {
  return fail('INVALID_INPUT', { schema: 'Memory', errors: [{ path, keyword, message }] })
}

const from = (given: unknown): { from?: unknown } => (given === undefined ? {} : { from: given })
