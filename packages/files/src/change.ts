/**
 * Commit changes to a branch: files and labels, author and trailers, ref and objects in one transaction.
 * @clause L0.1 L0.2
 */
import { fail, type Label } from '@csb/core'
import type { Transaction } from '@csb/store'
import { editTree, type Change, type Changed } from './edit.ts'
import { MAIN } from './homes.ts'
import { LABELS_PATH, changeLabels, readLabels, type LabelChange } from './labels.ts'
import { isErased, readCommit, writeCommit } from './objects.ts'
import { isReserved, validateBranch, validatePath } from './paths.ts'
import { getRef, marksIn, moveRef, resolveCommit } from './refs.ts'

/** What every commit says of itself. */
export type CommitWords = {
  readonly author: { readonly name: string; readonly did: string }
  readonly message: string
  /** `Csb-Run`, `Csb-Lease` and the like */
  readonly trailers: Readonly<Record<string, string>>
  /** ms since epoch */
  readonly now: number
}

/** Which branch a commit goes on. */
export type CommitOn = CommitWords & {
  readonly home: string
  readonly branch: string
  /** branch or commit that a new branch starts from; default `main` */
  readonly from?: string
  /** head the caller saw; null: the branch must be new; omitted: whatever is there */
  readonly expect?: string | null
  /** who gives a new branch its name has read from outside */
  readonly outside?: boolean
  /** who commits has read from outside */
  readonly words?: boolean
  /** a new branch starts from what a session pushed as it is */
  readonly agent?: boolean
}

export type CommitFiles = CommitOn & {
  readonly changes: readonly Change[]
  /** set with the same commit; nobody else writes `.csb/` */
  readonly labels?: readonly LabelChange[]
}

export type Committed = {
  readonly commit: string
  /** head before; equal to `commit` where nothing changed */
  readonly parent: string
  readonly tree: string
  /** by path */
  readonly changed: readonly Changed[]
}

export type SetLabel = CommitWords & {
  readonly home: string
  readonly branch: string
  /** a file or a folder; it need not exist yet */
  readonly path: string
  /** null takes the label of the path away */
  readonly label: Label | null
  readonly expect?: string | null
}

/**
 * Change files of a branch with one commit. Where nothing changes there is no commit, but a new branch is made.
 * Whether a label may be lowered is not decided here.
 * @throws PROTECTED, CONFLICT, NOT_FOUND, INVALID_INPUT, TOO_LARGE, FORGOTTEN for a path or bytes that were
 * @clause L0.1 L0.2
 */
export function commitFiles(tx: Transaction, input: CommitFiles): Committed {
  const { home, branch, changes, labels = [] } = input
  validateBranch(branch)
  for (const { path } of [...changes, ...labels]) {
    if (isReserved(validatePath(path))) fail('INVALID_INPUT', { reason: 'labels are set, not written', path })
  }
  const erased = changes.find(({ path, bytes }) => bytes !== null && isErased(tx, home, `/${path}`))
  if (erased !== undefined) fail('FORGOTTEN', { home, path: erased.path })
  let changed: readonly Changed[] = []
  const done = commitTree(tx, input, (before) => {
    const edited = editTree(tx, home, before, [...changes, ...labelFile(tx, home, before, labels)])
    changed = edited.changed
    return edited.tree
  })
  return { ...done, changed: done.commit === done.parent ? [] : changed }
}

/**
 * Commit a tree made from the branch's own. Where it is the same there is no commit, but a new branch is made.
 * @param edit id of the root tree before to that of the one after
 * @throws PROTECTED, CONFLICT, NOT_FOUND, INVALID_INPUT, and what `edit` throws
 * @clause L0.1 L0.2
 */
export function commitTree(
  tx: Transaction,
  input: CommitOn,
  edit: (tree: string) => string,
): Omit<Committed, 'changed'> {
  const { home, branch, author, message, trailers, now, outside = false } = input
  const ref = getRef(tx, home, validateBranch(branch))
  if (ref?.protected === true) fail('PROTECTED', { home, branch })
  const head = ref?.commit ?? null
  const { expect = head } = input
  if (expect !== head) fail('CONFLICT', { home, branch, expect, head })
  const parent = head ?? resolveCommit(tx, home, input.from ?? MAIN)
  // a new branch begins with what is known of the other one
  const begun = head === null ? marksIn(getRef(tx, home, input.from ?? MAIN)) : {}
  const words = begun.words === true || input.words === true
  const agent = begun.agent === true || input.agent === true
  const before = readCommit(tx, home, parent).tree
  const tree = edit(before)
  if (tree === before) {
    if (head === null) moveRef(tx, home, branch, { expect: null, to: parent, now, outside, ...begun })
    return { commit: parent, parent, tree }
  }
  const person = { ...author, at: now }
  const commit = writeCommit(tx, home, {
    tree,
    parents: [parent],
    author: person,
    committer: person,
    message,
    trailers,
  })
  moveRef(tx, home, branch, { expect: head, to: commit, now, outside, words, agent })
  return { commit, parent, tree }
}

/**
 * Label a path with a commit of its own.
 * @throws as {@link commitFiles}
 * @clause L3.2
 */
export function setLabel(tx: Transaction, { path, label, ...input }: SetLabel): Committed {
  return commitFiles(tx, { ...input, changes: [], labels: [{ path, label }] })
}

function labelFile(tx: Transaction, home: string, tree: string, changes: readonly LabelChange[]): Change[] {
  if (changes.length === 0) return []
  // a file of labels that can not be read is not replaced: what it held would be lost
  const current = readLabels(tx, home, tree) ?? fail('OBJECT_DAMAGED', { home, path: LABELS_PATH })
  return [{ path: LABELS_PATH, bytes: changeLabels(current, changes) }]
}
