/**
 * The words behind the changes on a card, for a person to read: differences of a merge, and what a note or a file says
 * whose label would be lowered, that would be forgotten, or that would go to another node. Bounded, and what is cut is
 * counted. Each text is shown only where its bytes are those that the card names by their digest, so what is signed for
 * is what was read. Of a submodule it is the commit that it is at.
 *
 * Whoever prints it must escape it: it is as its author wrote it.
 * @clause L1.7
 */
import { LIMITS, fromUtf8, sha256Hex } from '@csb/core'
import type { GateChange, GateEntry } from '@csb/authority'
import { MEMORY, branchSide, mergeSides, unifiedDiff, type SideReader } from '@csb/files'
import type { View } from '@csb/store'
import { branchesOf } from './subjects.ts'

/** What stands behind one change. */
export type ChangeText = {
  readonly path: string
  /** `diff`: hunks as `diff -u` has them; `content`: the text itself, from its beginning */
  readonly form: 'diff' | 'content'
  /** null where `why` says why it is not shown */
  readonly text: string | null
  readonly why?: 'binary' | 'large' | 'not-there' | 'too-much'
  /** lines that are cut off behind it */
  readonly more_lines: number
}

type Sides = { readonly before: SideReader; readonly after: SideReader }

/** No file at all: what is new has no text before, what is deleted none afterwards. */
const NONE: SideReader = () => undefined

/**
 * @param changes of one page; what is longer than {@link LIMITS.gateTextLines} lines each, or
 *   {@link LIMITS.diffTextBytes} together, is cut
 * @clause L1.7
 */
export function textsOf(view: View, entry: GateEntry, changes: readonly GateChange[]): ChangeText[] {
  const { kind } = entry.card
  const form = kind === 'merge' ? 'diff' : 'content'
  const sides = sidesOf(view, entry)
  let left: number = LIMITS.diffTextBytes
  return changes
    .filter(({ op }) => form === 'content' || (op !== 'rename' && op !== 'label'))
    .map((change) => {
      if (left <= 0) return { path: change.path, form, text: null, why: 'too-much', more_lines: 0 }
      const told = textOf(change, form, sides)
      left -= told.text?.length ?? 0
      return told
    })
}

function sidesOf(view: View, { card, request }: GateEntry): Sides {
  if (card.kind === 'merge' && card.result_tree !== null)
    return mergeSides(view, branchesOf(request), { base: card.base, tree: card.result_tree })
  const isFile = card.kind === 'lower-label' && request['note'] === undefined
  return { before: branchSide(view, card.home, isFile ? (request['branch'] ?? '') : MEMORY), after: NONE }
}

function textOf(change: GateChange, form: ChangeText['form'], { before, after }: Sides): ChangeText {
  const { path, sha256_old: hashOld, sha256_new: hashNew, size_old: sizeOld, size_new: sizeNew } = change
  const hidden = (why: ChangeText['why'] & string): ChangeText => ({ path, form, text: null, why, more_lines: 0 })
  if (Math.max(sizeOld ?? 0, sizeNew ?? 0) > LIMITS.gateTextBytes) return hidden('large')
  const old = named(before, path, hashOld)
  const now = form === 'content' ? null : named(after, path, hashNew)
  // the branches went on, or it was forgotten: what is there now is not what the card is about
  if (old === undefined || now === undefined) return hidden('not-there')
  const text = form === 'content' ? fromUtf8(old ?? new Uint8Array()) : diffOf(old, now)
  return text === undefined ? hidden('binary') : { path, form, ...cut(text) }
}

/** null: the card names nothing there; undefined: what it names is not there. */
function named(read: SideReader, path: string, sha256: string | null): Uint8Array | null | undefined {
  if (sha256 === null) return null
  const side = read(path)
  return side !== undefined && sha256Hex(side.named) === sha256 ? side.shown : undefined
}

/** Bytes that are no text on either side are not told line by line. */
const diffOf = (old: Uint8Array | null, now: Uint8Array | null): string | undefined =>
  [old, now].some((bytes) => bytes !== null && fromUtf8(bytes) === undefined) ? undefined : unifiedDiff(old, now)

function cut(text: string): Pick<ChangeText, 'text' | 'more_lines'> {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const shown = lines.slice(0, LIMITS.gateTextLines)
  return { text: shown.map(shortened).join('\n'), more_lines: lines.length - shown.length }
}

function shortened(line: string): string {
  if (line.length <= LIMITS.gateLineChars) return line
  const chars = Array.from(line)
  const over = chars.length - LIMITS.gateLineChars
  return over <= 0 ? line : `${chars.slice(0, LIMITS.gateLineChars).join('')} [${over} more characters]`
}
