/**
 * RFC 8785 canonical JSON, and the strict reading of documents that carry authority.
 *
 * One text for one value: what is signed, hashed and sent is the same bytes everywhere.
 */
import { fail } from './errors.ts'
import { LIMITS } from './limits.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/**
 * The RFC 8785 text of a value. Members that are undefined are left out, as JSON.stringify does.
 * @throws INVALID_INPUT for NaN, Infinity, lone surrogates, functions, symbols, bigint, or cycles deeper than 64
 */
export function canonicalize(value: unknown): string {
  return isInOrder(value, 0) ? JSON.stringify(value) : write(value, 0)
}

const DEEPEST = 64
/** Letters below U+0300 are well formed and NFC as they stand: nothing combines, nothing is a surrogate. */
const LATIN = /^[^\u0300-\uffff]*$/

/** Plain JSON with its members in order: the runtime writes the same text as {@link write}, several times faster. */
function isInOrder(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return typeof value === 'boolean'
  if (value === null) return true
  if (depth >= DEEPEST) return false
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (!isInOrder(value[at], depth + 1)) return false
    return true
  }
  // what is of a class may have a form of its own, which no canonical text has
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  let previous: string | undefined
  for (const key of Object.keys(value)) {
    if ((previous !== undefined && previous >= key) || !key.isWellFormed()) return false
    const member = (value as Record<string, unknown>)[key]
    if (member !== undefined && !isInOrder(member, depth + 1)) return false
    previous = key
  }
  return true
}

function write(value: unknown, depth: number): string {
  if (depth > DEEPEST) fail('INVALID_INPUT', { reason: 'too deep to canonicalize' })
  if (value === null || value === true || value === false) return String(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) fail('INVALID_INPUT', { reason: 'not a finite number' })
    return JSON.stringify(value)
  }
  if (typeof value === 'string') return writeString(value)
  if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(',')}]`
  if (typeof value === 'object') {
    const members: string[] = []
    const object = value as Record<string, unknown>
    for (const key of Object.keys(object).sort()) {
      if (object[key] !== undefined) members.push(`${writeString(key)}:${write(object[key], depth + 1)}`)
    }
    return `{${members.join(',')}}`
  }
  return fail('INVALID_INPUT', { reason: `${typeof value} has no canonical form` })
}

function writeString(text: string): string {
  if (!text.isWellFormed()) fail('INVALID_INPUT', { reason: 'lone surrogate' })
  return JSON.stringify(text)
}

/** What a reader of an authority document insists on. */
export type StrictOptions = {
  /** in UTF-8 bytes; default {@link LIMITS.grantBytes} */
  readonly maxBytes?: number
  /** default {@link LIMITS.jsonDepth} */
  readonly maxDepth?: number
}

/**
 * Read a document that carries authority: size first, then canonical on the wire (which refuses duplicate
 * keys, other spellings, white space and key order at once), integers only, NFC strings, bounded depth.
 * @throws TOO_LARGE, MALFORMED
 */
export function parseStrict(text: string, options: StrictOptions = {}): Json {
  const maxBytes = options.maxBytes ?? LIMITS.grantBytes
  if (isLarger(text, maxBytes)) fail('TOO_LARGE', { maxBytes })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    fail('MALFORMED', { reason: 'not JSON' }, error)
  }
  const isOrdered = isStrictInOrder(value, options.maxDepth ?? LIMITS.jsonDepth)
  const canonical = isOrdered ? JSON.stringify(value) : write(value, 0)
  if (canonical !== text) fail('MALFORMED', { reason: 'not canonical JSON' })
  return value as Json
}

/** A unit of a string is at most three bytes of UTF-8: what is far below the bound need not be counted. */
const isLarger = (text: string, maxBytes: number): boolean =>
  text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes

/**
 * The same demands on a value that came parsed (a member of a larger message).
 * @throws MALFORMED with the reason
 */
export function checkStrict(value: unknown, maxDepth: number = LIMITS.jsonDepth): void {
  isStrictInOrder(value, maxDepth)
}

/** @returns whether members stand in canonical order, so that the runtime writes the canonical text */
function isStrictInOrder(value: unknown, maxDepth: number): boolean {
  if (maxDepth < 0) fail('MALFORMED', { reason: 'too deep' })
  if (typeof value === 'string') checkString(value)
  else if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) fail('MALFORMED', { reason: 'not an integer' })
  } else if (typeof value === 'object' && value !== null) {
    return Array.isArray(value)
      ? value.reduce<boolean>((ordered, item) => isStrictInOrder(item, maxDepth - 1) && ordered, true)
      : areMembersInOrder(value, maxDepth)
  }
  return true
}

function areMembersInOrder(object: object, maxDepth: number): boolean {
  let ordered = true
  let previous: string | undefined
  for (const key of Object.keys(object)) {
    if (key === '__proto__') fail('MALFORMED', { reason: '__proto__' })
    checkString(key)
    if (!isStrictInOrder((object as Record<string, unknown>)[key], maxDepth - 1)) ordered = false
    if (previous !== undefined && previous >= key) ordered = false
    previous = key
  }
  return ordered
}

function checkString(text: string): void {
  if (LATIN.test(text)) return
  if (!text.isWellFormed()) fail('MALFORMED', { reason: 'lone surrogate' })
  if (text.normalize('NFC') !== text) fail('MALFORMED', { reason: 'not NFC' })
}

/**
 * Read JSON from a stranger that carries no authority: bounded in bytes and depth, duplicate keys refused.
 * @throws TOO_LARGE, MALFORMED
 */
export function parseBounded(text: string, maxBytes: number, maxDepth = 32): unknown {
  if (isLarger(text, maxBytes)) fail('TOO_LARGE', { maxBytes })
  scan(text, maxDepth)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    return fail('MALFORMED', { reason: 'not JSON' }, error)
  }
}

type Frame = { readonly keys: Set<string> | undefined; expectKey: boolean }

/** JSON.parse silently keeps the last of two equal keys; this scanner refuses them, and depth, beforehand. */
function scan(text: string, maxDepth: number): void {
  const frames: Frame[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    const top = frames.at(-1)
    if (char === '"') {
      const start = at
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
      if (top?.keys !== undefined && top.expectKey) noteKey(top, text.slice(start, at + 1))
    } else if (char === '{' || char === '[') {
      if (frames.length >= maxDepth) fail('MALFORMED', { reason: 'too deep' })
      frames.push({ keys: char === '{' ? new Set() : undefined, expectKey: char === '{' })
    } else if (char === '}' || char === ']') {
      frames.pop()
    } else if (char === ',' && top !== undefined) {
      top.expectKey = true
    }
  }
}

function noteKey(frame: Frame, raw: string): void {
  let key = raw
  try {
    key = JSON.parse(raw) as string
  } catch {
    // JSON.parse of the whole text reports it
  }
  if (frame.keys?.has(key) || key === '__proto__') fail('MALFORMED', { reason: 'duplicate or forbidden key', key })
  frame.keys?.add(key)
  frame.expectKey = false
}
