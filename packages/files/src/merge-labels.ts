/**
 * Labels of a merge. A label of the branch that is merged into is never lowered by what is merged: where the other
 * side changed it, the two are joined. What the branch itself lowered stands. A label that nobody can read is the
 * most restrictive.
 * @clause L3.2
 */
import { OWNER_PRIVATE, fail, formatLabel, joinLabels, parseLabel, type Label } from '@csb/core'
import type { Transaction } from '@csb/store'
import { LABELS_PATH, changeLabels, labelReader, readLabels, type LabelReader } from './labels.ts'
import { writeBlob } from './objects.ts'
import { FILE, isBlob } from './tree.ts'
import { type Side } from './tree-diff.ts'
import { entryAt } from './walk.ts'

type Labels = ReadonlyMap<string, unknown>

/** The labels of the three trees that meet. */
export type MergeLabels = {
  readonly base: LabelReader
  readonly ours: LabelReader
  readonly theirs: LabelReader
  /**
   * The file of labels of the merged tree.
   * @param required path to the label that what stands there bears at least
   */
  write(required: ReadonlyMap<string, Label>): Side | null
}

/**
 * @param trees object ids of root trees; base null: an empty one
 * @throws OBJECT_DAMAGED where one side has a file of labels that can not be read: what it held would be lost
 */
export function mergeLabels(
  tx: Transaction,
  home: string,
  trees: { readonly base: string | null; readonly ours: string; readonly theirs: string },
): MergeLabels {
  const labelsIn = (tree: string) =>
    readLabels(tx, home, tree) ?? fail('OBJECT_DAMAGED', { home, tree, path: LABELS_PATH })
  const base = (trees.base === null ? undefined : readLabels(tx, home, trees.base)) ?? new Map<string, unknown>()
  const [ours, theirs] = [labelsIn(trees.ours), labelsIn(trees.theirs)]
  const claim = (labels: Labels, tree: string, path: string): Label[] => {
    if (labels.has(path)) return [parseLabel(labels.get(path))]
    const isThere = entryAt(tx, home, tree, path) !== undefined
    return isThere && !aboveOf(path).some((folder) => labels.has(folder)) ? [OWNER_PRIVATE] : []
  }
  const merged = new Map<string, unknown>()
  for (const path of new Set([...ours.keys(), ...theirs.keys()])) {
    const [own, other] = [ours.get(path), theirs.get(path)]
    const text =
      other === base.get(path) || own === other
        ? own
        : formatLabel(joinLabels([...claim(ours, trees.ours, path), ...claim(theirs, trees.theirs, path)]))
    if (text !== undefined) merged.set(path, text)
  }
  return {
    base: labelReader(base),
    ours: labelReader(ours),
    theirs: labelReader(theirs),
    write: (required) => {
      for (const [path, label] of required) {
        const now = labelReader(merged)(path)
        const next = joinLabels([now, label])
        if (formatLabel(next) !== formatLabel(now)) merged.set(path, formatLabel(next))
      }
      // the bytes of a side are kept where they say the same
      if (isSame(merged, ours)) return fileOf(tx, home, trees.ours)
      if (isSame(merged, theirs)) return fileOf(tx, home, trees.theirs)
      const bytes = changeLabels(merged, [])
      return bytes === null ? null : { mode: FILE, oid: writeBlob(tx, home, bytes) }
    },
  }
}

function fileOf(tx: Transaction, home: string, tree: string): Side | null {
  const entry = entryAt(tx, home, tree, LABELS_PATH)
  return entry === undefined || !isBlob(entry) ? null : { mode: entry.mode, oid: entry.oid }
}

const isSame = (a: Labels, b: Labels): boolean =>
  a.size === b.size && [...a].every(([path, text]) => b.has(path) && b.get(path) === text)

function aboveOf(path: string): string[] {
  const names = path.split('/')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('/'))
}
