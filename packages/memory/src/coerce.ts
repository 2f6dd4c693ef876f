/**
 * The conversions that MEM-001 1.4.2 rule 3 asks for, one value at a time. Each gives undefined where
 * nothing sensible comes out, leaves a value that fits as it is, and applied twice does what once did.
 * @clause MEM-001.1.4
 */
import { fail, LIMITS } from '@csb/core'

const NUMBER = /^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?$/i
const DATE =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?\s?(Z|[-+][0-9]{2}:?[0-9]{2})?)?$/i

export type JsonObject = Readonly<Record<string, unknown>>

/** True for an object that is neither an array nor null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Length in Unicode code points, as JSON Schema counts it. */
export const countChars = (text: string): number => Array.from(text).length

/** A finite number, or text that spells one. */
export function toNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && NUMBER.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** Text in NFC; numbers and booleans become text. */
export function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.normalize('NFC')
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)) ? String(value) : undefined
}

/** A boolean, or the words true and false. */
export function toBoolean(value: unknown): boolean | undefined {
  if (value === 'true' || value === 'false') return value === 'true'
  return typeof value === 'boolean' ? value : undefined
}

/** Milliseconds since epoch from a number, a number as text, ten digits of seconds, or an ISO date. */
export function toTime(value: unknown): number | undefined {
  const date = typeof value === 'string' ? parseDate(value) : undefined
  // a date of early 1970 has ten digits of ms and would be taken for seconds when read again
  if (date !== undefined) return date < 0 || isSeconds(date) ? undefined : date
  const number = toNumber(value)
  if (number === undefined || number < 0 || number > Number.MAX_SAFE_INTEGER) return undefined
  const whole = Math.floor(number)
  return isSeconds(whole) ? whole * 1000 : whole
}

/**
 * The milliseconds of an ISO 8601 date or date and time; without a zone it is UTC, so that every node reads
 * the same. Undefined for other spellings and for days that no calendar has.
 */
export function parseDate(text: string): number | undefined {
  const match = DATE.exec(text.trim())
  if (match === null) return undefined
  const [, year = '', month = '', day = '', hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] = match
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  const read = new Date(ms)
  if (read.getUTCDate() !== Number(day) || read.getUTCMonth() + 1 !== Number(month)) return undefined
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  return ms + Math.floor(Number(`0.${fraction || '0'}`) * 1000) - zoneMs(zone)
}

/**
 * A deep copy of what JSON can say, as JSON.stringify would: undefined members and functions go, -0 is 0,
 * NaN and the infinities are null.
 * @throws INVALID_INPUT where it is deeper than LIMITS.jsonDepth or holds half a character
 */
export function copyJson(value: unknown, depth: number = LIMITS.jsonDepth): unknown {
  if (depth < 0) fail('INVALID_INPUT', { reason: 'too deep', maxDepth: LIMITS.jsonDepth })
  if (typeof value === 'string') return checkText(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => copyJson(item, depth - 1) ?? null)
  if (!isObject(value)) return undefined
  const members = Object.entries(value).map(([name, item]) => [checkText(name), copyJson(item, depth - 1)] as const)
  // fromEntries defines members, so that `__proto__` is a name like any other
  return Object.fromEntries(members.filter(([, item]) => item !== undefined))
}

function checkText(text: string): string {
  if (!text.isWellFormed()) fail('INVALID_INPUT', { reason: 'lone surrogate' })
  return text
}

const isSeconds = (number: number): boolean => number >= 1e9 && number < 1e10

function zoneMs(zone: string): number {
  if (zone.toUpperCase() === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}
