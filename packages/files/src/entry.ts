/**
 * The form in which an object is stored: an entry of a git pack, so that a clone is a concatenation of what lies
 * there. A header of type and size, for a delta the id of its base, and a zlib stream.
 *
 * Two types are this store's own and never leave it: a blob in pieces, and, in memory only, a body as it is.
 */
import { fail } from '@csb/core'

export type ObjectKind = 'commit' | 'tree' | 'blob' | 'tag'

/** Numbers of git; `pieces` and `plain` are those that git leaves free. */
export const CODES = { plain: 0, commit: 1, tree: 2, blob: 3, tag: 4, pieces: 5, offsetDelta: 6, delta: 7 } as const

const KINDS: readonly (ObjectKind | undefined)[] = [undefined, 'commit', 'tree', 'blob', 'tag']

/** `size` is that of what was deflated: of a delta, the delta's own. `start`: where the header ends. */
export type EntryHeader = { readonly code: number; readonly size: number; readonly start: number }

/** The most bytes a header takes: sizes are safe integers. */
export const HEADER_BYTES = 9

export const kindOfCode = (code: number): ObjectKind | undefined => KINDS[code]

export function encodeHeader(code: number, size: number): Buffer {
  const bytes: number[] = []
  let byte = (code << 4) | (size & 15)
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte | 0x80)
    byte = rest & 0x7f
  }
  return Buffer.from([...bytes, byte])
}

/** @throws MALFORMED where it is cut short or longer than any size needs */
export function decodeHeader(bytes: Uint8Array, at = 0): EntryHeader {
  let byte = bytes[at] ?? short()
  const code = (byte >> 4) & 7
  let size = byte & 15
  let start = at + 1
  for (let factor = 16; (byte & 0x80) !== 0; factor *= 128) {
    if (start - at >= HEADER_BYTES) fail('MALFORMED', { reason: 'size of a pack entry' })
    byte = bytes[start] ?? short()
    size += (byte & 0x7f) * factor
    start++
  }
  if (!Number.isSafeInteger(size)) fail('MALFORMED', { reason: 'size of a pack entry' })
  return { code, size, start }
}

/** A number as deltas spell it: seven bits a byte, lowest first. @throws MALFORMED */
export function decodeNumber(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  let value = 0
  let end = at
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[end] ?? short()
    value += (byte & 0x7f) * factor
    end++
    if ((byte & 0x80) === 0) break
    if (end - at >= HEADER_BYTES) fail('MALFORMED', { reason: 'number in a delta' })
  }
  return Number.isSafeInteger(value) ? { value, end } : fail('MALFORMED', { reason: 'number in a delta' })
}

/** How far back the base of an offset delta lies. @throws MALFORMED */
export function decodeOffset(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  let end = at
  let byte = bytes[end++] ?? short()
  let value = byte & 0x7f
  while ((byte & 0x80) !== 0) {
    if (end - at >= HEADER_BYTES) fail('MALFORMED', { reason: 'offset of a delta' })
    byte = bytes[end++] ?? short()
    value = (value + 1) * 128 + (byte & 0x7f)
  }
  return { value, end }
}

const short = (): never => fail('MALFORMED', { reason: 'pack entry cut short' })
