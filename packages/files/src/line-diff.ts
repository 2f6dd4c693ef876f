/**
 * Which lines differ between two texts (Myers' greedy algorithm). Bounded in lines and in edits, since it runs on
 * what strangers wrote: beyond the bound what lies between the common ends counts as changed as a whole.
 */
import { LIMITS } from '@csb/core'

/** Lines `start` to before `end` of the old text give way to lines `newStart` to before `newEnd` of the new one. */
export type Hunk = {
  readonly start: number
  readonly end: number
  readonly newStart: number
  readonly newEnd: number
}

/**
 * The lines of a file, each with its line end; one character is one byte, so that no encoding is guessed.
 * @returns undefined where it is no text (a NUL byte in it), or too large to be compared line by line
 */
export function linesOf(bytes: Uint8Array): string[] | undefined {
  if (bytes.byteLength > LIMITS.mergeTextBytes || bytes.includes(0)) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  return lines.length > LIMITS.mergeTextLines ? undefined : lines
}

/** The bytes of lines of {@link linesOf}. */
export const bytesOfLines = (lines: readonly string[]): Uint8Array => Buffer.from(lines.join(''), 'latin1')

/** @returns hunks in order, none touching the next */
export function diffLines(before: readonly string[], after: readonly string[]): Hunk[] {
  const shortest = Math.min(before.length, after.length)
  let head = 0
  while (head < shortest && before[head] === after[head]) head++
  let tail = 0
  while (tail < shortest - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  const [a, b] = numbered(before.slice(head, before.length - tail), after.slice(head, after.length - tail))
  if (a.length === 0 && b.length === 0) return []
  return editsOf(a, b).map(({ start, end, newStart, newEnd }) => ({
    start: start + head,
    end: end + head,
    newStart: newStart + head,
    newEnd: newEnd + head,
  }))
}

/** Equal lines as equal numbers: to compare them costs the same however long they are. */
function numbered(before: readonly string[], after: readonly string[]): readonly [Int32Array, Int32Array] {
  const ids = new Map<string, number>()
  const idOf = (line: string): number => {
    const known = ids.get(line)
    if (known !== undefined) return known
    ids.set(line, ids.size)
    return ids.size - 1
  }
  return [Int32Array.from(before, idOf), Int32Array.from(after, idOf)]
}

/** Go forward one edit at a time along every diagonal, remember how far each got, then go the way back. */
function editsOf(a: Int32Array, b: Int32Array): Hunk[] {
  const most = Math.min(a.length + b.length, LIMITS.mergeEdits)
  const rows: Int32Array[] = []
  for (let edits = 0; edits <= most; edits++) {
    // the place of diagonal k is k + edits: from -edits to edits, every second one in use
    const row = new Int32Array(2 * edits + 1)
    const last = rows.at(-1)
    for (let k = -edits; k <= edits; k += 2) {
      let x = last === undefined ? 0 : stepTo(last, edits, k).x
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      row[k + edits] = x
      if (x >= a.length && x - k >= b.length) return wayBack(rows, k)
    }
    rows.push(row)
  }
  return [{ start: 0, end: a.length, newStart: 0, newEnd: b.length }]
}

/** How far diagonal k gets by the edit number `edits`: a new line from k + 1, or an old line less from k - 1. */
function stepTo(last: Int32Array, edits: number, k: number): { readonly x: number; readonly isNew: boolean } {
  const less = last[k + edits - 2] ?? -1
  const more = last[k + edits] ?? -1
  const isNew = k === -edits || (k !== edits && less < more)
  return { x: isNew ? more : less + 1, isNew }
}

function wayBack(rows: readonly Int32Array[], diagonal: number): Hunk[] {
  const hunks: Hunk[] = []
  let k = diagonal
  for (const [index, last] of [...rows.entries()].toReversed()) {
    const { x, isNew } = stepTo(last, index + 1, k)
    const hunk = { start: isNew ? x : x - 1, end: x, newStart: isNew ? x - k - 1 : x - k, newEnd: x - k }
    const next = hunks.at(-1)
    if (next?.start === hunk.end && next.newStart === hunk.newEnd)
      hunks[hunks.length - 1] = { ...next, start: hunk.start, newStart: hunk.newStart }
    else hunks.push(hunk)
    k += isNew ? 1 : -1
  }
  return hunks.toReversed()
}
