/**
 * What a reader is told of a commit in words: the first line of its message where the commit changed something, nothing
 * of it hidden, and the line names nothing hidden, else a fixed text; of the trailers those that say who acted, by id.
 *
 * Whether a name is hidden must not be asked by writing messages: one who wrote with a clearance can have named
 * nothing above it, so a reader who has that clearance too is told the line as it is.
 * @clause L4.2
 */
import { EVERY_TAG, dominates, isLevel, parseLabel, type Clearance } from '@csb/core'
import type { View } from '@csb/store'
import type { Commit } from './commit.ts'
import { LABELS_PATH } from './labels.ts'
import { isReserved } from './paths.ts'
import type { Projection, TreeProjector } from './project-tree.ts'
import { isEverywhere } from './sight.ts'
import { diffTrees, type Side } from './tree-diff.ts'
import { blobOf } from './tree.ts'

/** Stands in a commit for the clearance it was written with. */
export const CLEARANCE_TRAILER = 'Csb-Clearance'
/** The message of a commit that a reader may not be told more of. */
export const CHANGED_TEXT = 'Change files.'

const KEPT: Readonly<Record<string, RegExp>> = {
  'Csb-Run': /^run_[0-9]{13}_[0-9A-Za-z]{1,64}$/,
  'Csb-Lease': /^sha256:[0-9a-f]{64}$/,
}
/** What may stand around a name in a sentence. */
const BETWEEN = /[\s"'`()<>[\]{},;:!?]+/u
const WORD = /[\p{L}\p{N}_]/u

/** `private`, `private:health,work`: how a clearance is spelled in a trailer. */
export const spellClearance = ({ level, tags }: Clearance): string =>
  tags.length === 0 ? level : `${level}:${[...new Set(tags)].sort().join(',')}`

/** @param parent id of the tree before, null where there is none */
export function wordsSeen(
  view: View,
  { home, clearance }: Projection,
  trees: TreeProjector,
  { commit, parent }: { readonly commit: Commit; readonly parent: string | null },
): { readonly message: string; readonly trailers: readonly (readonly [string, string])[] } {
  const trailers = Object.entries(commit.trailers).filter(([name, value]) => KEPT[name]?.test(value) === true)
  const changes = diffTrees(view, home, parent, commit.tree)
  const isSeen = (tree: string | null, path: string, side: Side | null) =>
    side === null || (tree !== null && trees.sees(tree, path, blobOf(side)))
  const areSeen = changes.every(({ path, before, after }) => {
    if (path === LABELS_PATH) return trees.seesLabelChange(parent, commit.tree)
    return !isReserved(path) && isSeen(parent, path, before) && isSeen(commit.tree, path, after)
  })
  const line = commit.message.split('\n', 1)[0]?.trim() ?? ''
  // what was written by somebody who gets further can name what this reader does not reach
  const isWrittenBelow = isEverywhere(clearance) && wasWrittenWithin(commit.trailers[CLEARANCE_TRAILER], clearance)
  // where nothing was changed, nothing tells what the words are about
  const isAboutSeen = areSeen && (changes.length > 0 || isWrittenBelow)
  if (!isAboutSeen || line === '' || /^csb-[a-z0-9-]*\s*:/i.test(line)) return { message: CHANGED_TEXT, trailers }
  const paths = changes.map(({ path }) => path)
  const both = parent === null ? [commit.tree] : [commit.tree, parent]
  const isSafe = isWrittenBelow || namesOnlySeen(trees, both, paths, line)
  return { message: isSafe ? line : CHANGED_TEXT, trailers }
}

/** Every word that looks like a path is one that is seen, and no hidden name beside the changed paths is in the line. */
function namesOnlySeen(trees: TreeProjector, of: readonly string[], changed: readonly string[], line: string): boolean {
  const folders = new Set(changed.flatMap(foldersOf))
  const hidden = new Set(
    of.flatMap((tree) => [
      ...trees.hiddenLabelNames(tree),
      ...[...folders, ''].flatMap((folder) => trees.hiddenNames(tree, folder)),
    ]),
  )
  if ([...hidden].some((name) => isNamed(line, name))) return false
  return line.split(BETWEEN).every((word) => {
    const path = word.replace(/^(?:\.?\/)+/, '').replace(/[./]+$/, '')
    if (!/[/\\.]/.test(path)) return true
    return changed.some((seen) => `/${seen}`.endsWith(`/${path}`) || seen.startsWith(`${path}/`))
  })
}

function isNamed(line: string, name: string): boolean {
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1)) {
    const [before = ' ', after = ' '] = [line[at - 1], line[at + name.length]]
    if (!WORD.test(before) && !WORD.test(after)) return true
  }
  return false
}

function wasWrittenWithin(spelled: string | undefined, reader: Clearance): boolean {
  const [level, tags = ''] = (spelled ?? '').split(':')
  if (!isLevel(level)) return false
  if (tags === EVERY_TAG) return dominates(reader, { level, integrity: 'owner', tags: [EVERY_TAG] })
  const label = parseLabel(tags === '' ? `${level}:owner` : `${level}:owner:${tags}`)
  return label.level === level && dominates(reader, label)
}

const foldersOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, depth, names) => names.slice(0, depth + 1).join('/'))
