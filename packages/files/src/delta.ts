/** Deltas of git: copy from the base, insert. Every number in one is a stranger's and is checked. */
import { fail } from '@csb/core'
import { decodeNumber } from './entry.ts'

/** What a delta says of itself: the length of its base and of what it makes. @throws MALFORMED */
export function deltaSizes(delta: Uint8Array): {
  readonly before: number
  readonly after: number
  readonly end: number
} {
  const before = decodeNumber(delta, 0)
  const after = decodeNumber(delta, before.end)
  return { before: before.value, after: after.value, end: after.end }
}

/**
 * @param maxBytes the most that may come of it
 * @throws MALFORMED where it does not fit the base or does not make what it says; TOO_LARGE
 */
export function applyDelta(base: Uint8Array, delta: Uint8Array, maxBytes: number): Buffer {
  const { before, after, end } = deltaSizes(delta)
  if (before !== base.byteLength) wrong('length of the base')
  if (after > maxBytes) fail('TOO_LARGE', { maxBytes, bytes: after })
  const made = Buffer.allocUnsafe(after)
  let at = end
  let filled = 0
  while (at < delta.byteLength) {
    const op = delta[at++] ?? 0
    if (op === 0) wrong('unknown instruction')
    if ((op & 0x80) === 0) {
      if (at + op > delta.byteLength || filled + op > after) wrong('insert beyond the end')
      made.set(delta.subarray(at, at + op), filled)
      at += op
      filled += op
      continue
    }
    let from = 0
    let length = 0
    for (let i = 0; i < 4; i++) if ((op & (1 << i)) !== 0) from += (delta[at++] ?? wrong('cut short')) * 256 ** i
    for (let i = 0; i < 3; i++) if ((op & (16 << i)) !== 0) length += (delta[at++] ?? wrong('cut short')) * 256 ** i
    if (length === 0) length = 0x10000
    if (from + length > before || filled + length > after) wrong('copy beyond the end')
    made.set(base.subarray(from, from + length), filled)
    filled += length
  }
  return filled === after ? made : wrong('length of what it makes')
}

function wrong(what: string): never {
  return fail('MALFORMED', { reason: `delta: ${what}` })
}
