/**
 * Merging a branch into another: what it would do, told before anybody agrees; then exactly that and nothing else.
 * The one place where a protected branch moves. Who may, and who has to be asked, is decided elsewhere.
 * @clause L0.1 L0.2 L0.3
 */
import { fail } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { labelledAsAgents } from './agent-label.ts'
import type { CommitWords } from './change.ts'
import { manifestDigest, manifestOf, type ManifestEntry } from './diff-manifest.ts'
import { MEMORY } from './homes.ts'
import { labelsOf } from './labels.ts'
import { commonAncestor } from './common-ancestor.ts'
import { mergeTrees, type Conflict } from './merge-tree.ts'
import { readCommit, writeCommit } from './objects.ts'
import { validateBranch } from './paths.ts'
import { recycleFiles } from './recycle.ts'
import { advanceRef, getRef, isSnapshot } from './refs.ts'
import { createScratch } from './scratch.ts'

export type MergeBranches = {
  readonly home: string
  /** branch whose changes are taken */
  readonly from: string
  /** branch that they go into; another than `from` */
  readonly into: string
}

/** What a merge is of and what comes of it, by ids: what an approval is bound to. */
export type MergeIdentity = {
  /** best common ancestor; null where the two have no history in common */
  readonly base: string | null
  /** head of `into` */
  readonly ours: string
  /** head of `from` */
  readonly theirs: string
  /** tree of the result; not stored by a preview */
  readonly tree: string
  /** `sha256:…` of the manifest */
  readonly digest: string
}

export type MergePreview = MergeIdentity & {
  /** how the tree of `into` changes, in byte order of paths */
  readonly manifest: readonly ManifestEntry[]
  /** in byte order of paths */
  readonly conflicts: readonly Conflict[]
}

export type ApplyMerge = MergeBranches &
  CommitWords & {
    /** the merge that was agreed to */
    readonly preview: MergeIdentity
    /** who merges has read from outside */
    readonly words?: boolean
  }

/** `commit` is the head of `into` afterwards: the old one where `from` holds nothing new. */
export type Merged = { readonly commit: string; readonly parent: string; readonly preview: MergePreview }

const FIELDS = ['base', 'ours', 'theirs', 'tree', 'digest'] as const

/**
 * What merging would do. Writes nothing.
 * @throws NOT_FOUND without one of the branches, INVALID_INPUT, OBJECT_DAMAGED; PROTECTED for the branch of the notes
 *   and for snapshots; FORGOTTEN where it would bring back what was forgotten
 */
export const previewMerge = (view: View, input: MergeBranches): MergePreview => computeMerge(createScratch(view), input)

/**
 * Merge: a commit with both heads as parents. What it deletes goes into the recycle area.
 * @throws CONFLICT with the field that differs from the preview; otherwise as {@link previewMerge}
 * @clause L0.1 L0.3
 */
export function applyMerge(tx: Transaction, input: ApplyMerge): Merged {
  const { home, into, author, message, trailers, now } = input
  const preview = computeMerge(tx, input)
  for (const field of FIELDS) {
    if (preview[field] !== input.preview[field]) fail('CONFLICT', { reason: 'not the merge that was agreed to', field })
  }
  const { base, ours, theirs, tree } = preview
  if (base === theirs) return { commit: ours, parent: ours, preview }
  const person = { ...author, at: now }
  const commit = writeCommit(tx, home, {
    tree,
    parents: [ours, theirs],
    author: person,
    committer: person,
    message,
    trailers,
  })
  // what is merged brings its words along, and its name stands in the message
  const merged = getRef(tx, home, input.from)
  const words = input.words === true || merged?.words === true || merged?.outside === true
  advanceRef(tx, home, into, { expect: ours, to: commit, now, words })
  const labelOf = labelsOf(tx, home, readCommit(tx, home, ours).tree)
  recycleFiles(tx, home, {
    branch: into,
    commit,
    from: ours,
    files: preview.manifest.filter(({ op }) => op === 'delete').map(({ path }) => ({ path, label: labelOf(path) })),
    now,
  })
  return { commit, parent: ours, preview }
}

/** A preview, with what it puts together staged in `tx`. @throws as {@link previewMerge} */
export function computeMerge(tx: Transaction, { home, from, into }: MergeBranches): MergePreview {
  for (const branch of [from, into]) {
    validateBranch(branch)
    // notes have an index and a clock beside them
    if (branch === MEMORY) fail('PROTECTED', { home, branch, reason: 'notes are kept in step as notes' })
  }
  if (from === into) fail('INVALID_INPUT', { reason: 'a branch is not merged into itself', branch: into })
  if (isSnapshot(into)) fail('PROTECTED', { home, branch: into, reason: 'a snapshot does not move' })
  const [theirs, ours] = [headOf(tx, home, from), headOf(tx, home, into)]
  const base = commonAncestor(tx, home, ours, theirs) ?? null
  const treeOf = (commit: string) => readCommit(tx, home, commit).tree
  const before = treeOf(ours)
  const merged =
    base === theirs
      ? { tree: before, conflicts: [] }
      : mergeTrees(tx, home, {
          base: base === null ? null : treeOf(base),
          ours: before,
          theirs: treeOf(theirs),
          from,
          into,
        })
  const { conflicts } = merged
  const taken = manifestOf(tx, home, before, merged.tree)
  const isPushed = getRef(tx, home, from)?.agent === true
  const tree = isPushed ? labelledAsAgents(tx, home, { tree: merged.tree, manifest: taken }) : merged.tree
  const manifest = tree === merged.tree ? taken : manifestOf(tx, home, before, tree)
  return { base, ours, theirs, tree, digest: manifestDigest(manifest), manifest, conflicts }
}

const headOf = (view: View, home: string, branch: string): string =>
  getRef(view, home, branch)?.commit ?? fail('NOT_FOUND', { home, branch })
