/**
 * Three-way merge of text by lines. What only one side changed is taken; what both changed alike is taken once;
 * anything else, also changes that only touch, is no merge. Which side is called which makes no difference.
 */
import { bytesOfLines, diffLines, linesOf, type Hunk } from './line-diff.ts'

type Change = Hunk & { readonly side: 0 | 1 }

/** @returns undefined where the sides stand against each other, or one of the three is no text */
export function mergeText(base: Uint8Array, ours: Uint8Array, theirs: Uint8Array): Uint8Array | undefined {
  const [old, left, right] = [linesOf(base), linesOf(ours), linesOf(theirs)]
  if (old === undefined || left === undefined || right === undefined) return undefined
  const sides = [left, right] as const
  const changes = sides
    .flatMap((lines, side) => diffLines(old, lines).map((hunk): Change => ({ ...hunk, side: side === 0 ? 0 : 1 })))
    .sort((a, b) => a.start - b.start || a.end - b.end)
  const merged: string[] = []
  let at = 0
  for (let next = 0; next < changes.length;) {
    const { group, start, end } = groupAt(changes, next)
    next += group.length
    merged.push(...old.slice(at, start))
    const texts = ([0, 1] as const)
      .map((side) => group.filter((change) => change.side === side))
      .filter((own) => own.length > 0)
      .map((own) => textOf(own, sides, start, end))
    const [first = [], second = first] = texts
    if (first.length !== second.length || first.some((line, index) => line !== second[index])) return undefined
    merged.push(...first)
    at = end
  }
  merged.push(...old.slice(at))
  return bytesOfLines(merged)
}

/** Changes from `first` on that overlap or touch, and the lines of the old text that they cover together. */
function groupAt(changes: readonly Change[], first: number): { group: Change[]; start: number; end: number } {
  const start = changes[first]?.start ?? 0
  let end = changes[first]?.end ?? 0
  const group: Change[] = []
  for (const change of changes.slice(first)) {
    if (group.length > 0 && change.start > end) break
    group.push(change)
    end = Math.max(end, change.end)
  }
  return { group, start, end }
}

/** What one side has in place of lines `start` to before `end`. */
function textOf(own: readonly Change[], sides: readonly (readonly string[])[], start: number, end: number): string[] {
  const [first] = own
  const last = own.at(-1)
  if (first === undefined || last === undefined) return []
  return (sides[first.side] ?? []).slice(first.newStart - (first.start - start), last.newEnd + (end - last.end))
}
