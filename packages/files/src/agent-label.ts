/**
 * What a session pushed is taken as it is, and its tree says nothing of who wrote it. The branch does: what lies there
 * and is not in `main` as well is an agent's word at least, where it is read, and in whatever it is merged into.
 * @clause L3.2
 */
import { formatLabel, joinLabels, parseLabel, type Label } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { editTree } from './edit.ts'
import { MAIN } from './homes.ts'
import { LABELS_PATH, changeLabels, labelsOf, readLabels, type LabelReader } from './labels.ts'
import { isOid, readCommit } from './objects.ts'
import { getRef } from './refs.ts'
import type { ManifestEntry } from './diff-manifest.ts'
import { entryAt } from './walk.ts'

const AGENT: Label = { level: 'public', integrity: 'agent', tags: [] }

/**
 * Labels in force on a branch.
 * @param at branch, or id of a commit: of that one nothing more is known than its tree says
 * @param tree object id of its root tree, or of what is seen of it
 * @clause L3.2
 */
export function labelsOn(view: View, home: string, at: string, tree: string): LabelReader {
  const labelOf = labelsOf(view, home, tree)
  if (isOid(at) || getRef(view, home, at)?.agent !== true) return labelOf
  const head = getRef(view, home, MAIN)?.commit
  const main = head === undefined ? undefined : readCommit(view, home, head).tree
  return (path) => {
    const label = labelOf(path)
    const own = entryAt(view, home, tree, path)?.oid
    if (own === undefined) return label
    const isInMain = main !== undefined && entryAt(view, home, main, path)?.oid === own
    return joinLabels([label, isInMain ? labelsOf(view, home, main)(path) : AGENT])
  }
}

/**
 * The tree of a merge, with what it takes from such a branch labelled as an agent's.
 * @param tree object id of the merged root tree
 * @param manifest what it changes
 * @returns object id of a root tree
 * @throws OBJECT_DAMAGED
 * @clause L3.2
 */
export function labelledAsAgents(
  tx: Transaction,
  home: string,
  { tree, manifest }: { readonly tree: string; readonly manifest: readonly ManifestEntry[] },
): string {
  const labels = readLabels(tx, home, tree) ?? new Map<string, unknown>()
  const changes = manifest.flatMap(({ path, op, label_new: spelled }) => {
    if (path === LABELS_PATH || op === 'delete' || op === 'label' || spelled === null) return []
    const label = joinLabels([parseLabel(spelled), AGENT])
    return formatLabel(label) === spelled ? [] : [{ path, label }]
  })
  if (changes.length === 0) return tree
  return editTree(tx, home, tree, [{ path: LABELS_PATH, bytes: changeLabels(labels, changes) }]).tree
}
