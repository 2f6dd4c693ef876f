/**
 * Labels of what is there already: what a new label would change, file by file, and the commit that changes it. A
 * label that is raised only restricts; whether one may be lowered is decided above, on what the preview says.
 * @clause L3.2
 */
import { fail, formatLabel, type Label } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { relabelEntry, type ManifestEntry } from './diff-manifest.ts'
import { editTree } from './edit.ts'
import { LABELS_PATH, changeLabels, labelReader, readLabels } from './labels.ts'
import { readCommit, readTree, writeCommit } from './objects.ts'
import type { CommitWords } from './change.ts'
import { isReserved, validatePath } from './paths.ts'
import { advanceRef, getRef, isSnapshot } from './refs.ts'
import { FOLDER, type Mode } from './tree.ts'
import { comparePaths } from './tree-diff.ts'
import { entryAt } from './walk.ts'

export type Relabel = {
  readonly home: string
  readonly branch: string
  /** a file, or a folder and with it what is below */
  readonly path: string
  readonly label: Label
}

export type RelabelPreview = {
  /** commit of the branch */
  readonly base: string
  /** object id at the path */
  readonly oid: string
  /** files whose label in force would be another one, by path bytes */
  readonly files: readonly ManifestEntry[]
}

/**
 * What a new label would change.
 * @throws NOT_FOUND without the branch or the path, PROTECTED for a snapshot, INVALID_INPUT, OBJECT_DAMAGED where the
 *   labels can not be read
 */
export function previewRelabel(view: View, { home, branch, path, label }: Relabel): RelabelPreview {
  if (isReserved(validatePath(path))) fail('INVALID_INPUT', { reason: 'that path bears no label', path })
  if (isSnapshot(branch)) fail('PROTECTED', { home, branch })
  const ref = getRef(view, home, branch) ?? fail('NOT_FOUND', { home, branch })
  const { tree } = readCommit(view, home, ref.commit)
  const start = entryAt(view, home, tree, path) ?? fail('NOT_FOUND', { home, branch, path })
  const labels = labelsIn(view, home, tree)
  const before = labelReader(labels)
  const after = labelReader(new Map([...labels, [path, formatLabel(label)]]))
  const files: ManifestEntry[] = []
  const look = (mode: Mode, oid: string, at: string): void => {
    if (mode === FOLDER) {
      for (const entry of readTree(view, home, oid)) look(entry.mode, entry.oid, `${at}/${entry.name}`)
      return
    }
    const own = { before: before(at), after: after(at) }
    if (formatLabel(own.before) === formatLabel(own.after)) return
    files.push(relabelEntry(view, home, { path: at, side: { mode, oid } }, own))
  }
  look(start.mode, start.oid, path)
  files.sort((a, b) => comparePaths(a.path, b.path))
  return { base: ref.commit, oid: start.oid, files }
}

/**
 * Set the label with a commit of its own, on a protected branch too: what its files hold stays as it is. For what a
 * person approved, or what only restricts.
 * @param input `expect`: the commit that was looked at
 * @throws CONFLICT where the branch moved, NOT_FOUND, INVALID_INPUT, OBJECT_DAMAGED
 */
export function applyRelabel(
  tx: Transaction,
  input: Relabel & CommitWords & { readonly expect: string },
): { readonly commit: string } {
  const { home, branch, path, label, expect, author, message, trailers, now } = input
  if (isReserved(validatePath(path))) fail('INVALID_INPUT', { reason: 'that path bears no label', path })
  const ref = getRef(tx, home, branch) ?? fail('NOT_FOUND', { home, branch })
  if (ref.commit !== expect) fail('CONFLICT', { home, branch, expect, head: ref.commit })
  const before = readCommit(tx, home, ref.commit).tree
  const bytes = changeLabels(labelsIn(tx, home, before), [{ path, label }])
  const { tree } = editTree(tx, home, before, [{ path: LABELS_PATH, bytes }])
  if (tree === before) return { commit: ref.commit }
  const person = { ...author, at: now }
  const parents = [ref.commit]
  const commit = writeCommit(tx, home, { tree, parents, author: person, committer: person, message, trailers })
  advanceRef(tx, home, branch, { expect, to: commit, now })
  return { commit }
}

/** A file of labels that can not be read is not replaced: what it held would be lost. */
const labelsIn = (view: View, home: string, tree: string): ReadonlyMap<string, unknown> =>
  readLabels(view, home, tree) ?? fail('OBJECT_DAMAGED', { home, path: LABELS_PATH })
