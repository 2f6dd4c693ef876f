/** Two versions of a text as people read a difference: hunks with the lines around them, as `diff -u` has it. */
import { diffLines, linesOf, type Hunk } from './line-diff.ts'

const CONTEXT = 3

/**
 * @param before null: the file is new
 * @param after null: the file is gone
 * @returns hunks without file names, empty where nothing differs; undefined where one of the two is no text
 */
export function unifiedDiff(before: Uint8Array | null, after: Uint8Array | null): string | undefined {
  const old = before === null ? [] : linesOf(before)
  const now = after === null ? [] : linesOf(after)
  if (old === undefined || now === undefined) return undefined
  return groupsOf(diffLines(old, now))
    .map((group) => hunkText(group, old, now))
    .join('')
}

/** Hunks whose surroundings meet are told as one. */
function groupsOf(hunks: readonly Hunk[]): Hunk[][] {
  const groups: Hunk[][] = []
  for (const hunk of hunks) {
    const last = groups.at(-1)
    const end = last?.at(-1)?.end
    if (last !== undefined && end !== undefined && hunk.start - end <= 2 * CONTEXT) last.push(hunk)
    else groups.push([hunk])
  }
  return groups
}

function hunkText(group: readonly Hunk[], old: readonly string[], now: readonly string[]): string {
  const [first, last] = [group[0], group.at(-1)]
  if (first === undefined || last === undefined) return ''
  const lead = Math.min(CONTEXT, first.start)
  const trail = Math.min(CONTEXT, old.length - last.end)
  const lines: string[] = []
  let at = first.start - lead
  for (const { start, end, newStart, newEnd } of group) {
    lines.push(...marked(' ', old.slice(at, start)), ...marked('-', old.slice(start, end)))
    lines.push(...marked('+', now.slice(newStart, newEnd)))
    at = end
  }
  lines.push(...marked(' ', old.slice(at, at + trail)))
  const range = (start: number, end: number) => `${end === start ? start : start + 1},${end - start}`
  const head = `@@ -${range(first.start - lead, last.end + trail)} +${range(first.newStart - lead, last.newEnd + trail)} @@\n`
  return head + lines.join('')
}

/** Bytes become text again here; what is no UTF-8 shows as replacement characters. */
const marked = (mark: string, lines: readonly string[]): string[] =>
  lines.map((line) => {
    const text = Buffer.from(line, 'latin1').toString()
    return text.endsWith('\n') ? mark + text : `${mark}${text}\n\\ No newline at end of file\n`
  })
