/**
 * L0 operations on two branches: compared, and merged one into the other. A protected branch moves by an approval only.
 * @clause L0.1 L0.2 L0.3
 */
import { LIMITS, dominates, parseLabel, type Label } from '@csb/core'
import {
  LABELS_PATH,
  applyMerge,
  getRef,
  labelsOn,
  manifestOf,
  previewMerge,
  readCommit,
  readForDiff,
  unifiedDiff,
  writeTree,
  type ManifestEntry,
} from '@csb/files'
import { labelOfFile } from '@csb/guard'
import { commitShown, commitToCompare, isPart, known, withoutIds, writeShown } from '../git/ids.ts'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { takeInWords, takeShown } from '../session/bulk-reads.ts'
import { speaksOutside } from '../git/names.ts'
import { askGate } from '../gate/gates.ts'
import { fileBranch, on, type Home } from '../git/reach.ts'
import { checkReach, homeOf, reaches, type Context, type Operation, type Parts } from '../operation.ts'

type Compared = Home & { readonly from: string; readonly to: string; readonly path?: string }
type Merging = Home & { readonly from: string; readonly into: string; readonly message?: string }
type Shown = ManifestEntry & { readonly diff?: string }

export const mergeOperations: readonly Operation[] = [
  {
    name: 'files.diff',
    input: 'FilesDiff',
    kind: 'read',
    open: 'lease',
    needs: (input: Compared, parts: Parts) => on('read', input.from, input, parts),
    run: (context: Context, input: Compared) => compare(context, input),
  },
  {
    name: 'files.preview',
    input: 'FilesPreview',
    kind: 'read',
    open: 'lease',
    needs: (input: Merging, parts: Parts) => on('read', input.from, input, parts),
    run: (context: Context, input: Merging) => withoutIds(context, () => showMerge(context, input)),
  },
  {
    name: 'files.merge',
    input: 'FilesMerge',
    kind: 'write',
    shows: true,
    open: 'lease',
    needs: (input: Merging, parts: Parts) =>
      on(isProtected(parts, input) ? 'propose' : 'write', input.into, input, parts),
    run: (context: Context, input: Merging) => withoutIds(context, () => merge(context, input)),
  },
]

async function compare(context: Context, input: Compared) {
  const home = homeOf(input, context)
  const { view } = context
  const branches = [input.from, input.to].map((branch) => fileBranch(context, home, branch))
  for (const branch of branches) checkReach(context, on('read', branch, input, context))
  const [before, after] = await Promise.all(
    branches.map((branch) => commitToCompare(context, home, getRef(view, home, branch)?.commit ?? '')),
  )
  const empty = before === undefined || after === undefined ? await emptyTree(context, home) : ''
  const treeOf = (commit: string | undefined) => (commit === undefined ? empty : readCommit(view, home, commit).tree)
  const labelsIn = (branch: string | undefined, tree: string) => labelsOn(view, home, branch ?? '', tree)
  const [old, now] = [treeOf(before), treeOf(after)]
  const inForce = [labelsIn(branches[0], old), labelsIn(branches[1], now)] as const
  const shown = manifestOf(context.store.view(), home, old, now, inForce).filter(
    ({ path, path_old = path }) =>
      input.path === undefined || [path, path_old].some((own) => `${own}/`.startsWith(`${input.path}/`)),
  )
  let left: number = LIMITS.diffTextBytes
  const items: Shown[] = []
  for (const entry of shown.filter((item) => isShown(context, input, branches, item))) {
    const bytes = (at: string | undefined, path: string, hash: string | null) =>
      hash === null || at === undefined ? null : readForDiff(view, { home, at, path })
    const size = (entry.size_old ?? 0) + (entry.size_new ?? 0)
    const isRead = entry.op !== 'label' && entry.op !== 'rename' && size <= left
    const diff = isRead
      ? unifiedDiff(bytes(before, entry.path, entry.sha256_old), bytes(after, entry.path, entry.sha256_new))
      : undefined
    left -= diff?.length ?? 0
    items.push(diff === undefined ? entry : { ...entry, diff })
  }
  takeInNames(context, input, after ?? '', items)
  // what went, and where to, was chosen by whoever committed there
  for (const branch of branches) if (getRef(view, home, branch)?.words === true) takeInWords(context, home, branch)
  return known({ home, from: before, to: after, items })
}

/** For a branch of which nothing is seen. */
const emptyTree = ({ store }: Context, home: string): Promise<string> => store.transact((tx) => writeTree(tx, home, []))

async function showMerge(context: Context, input: Merging) {
  checkReach(context, on('read', input.into, input, context))
  const home = homeOf(input, context)
  const done = previewMerge(context.view, { home, from: input.from, into: input.into })
  const manifest = done.manifest.filter((entry) => isShown(context, input, [input.from, input.into], entry))
  takeInNames(context, input, done.theirs, manifest)
  // the file of labels names what it labels: whether it changes is no answer to who sees a part
  const hidden = done.manifest.filter(({ path }) => path !== LABELS_PATH || !isPart(context)).length - manifest.length
  // a conflict tells the names of files
  const told = { manifest, hidden, conflicts: hidden === 0 ? done.conflicts : [] }
  if (!isPart(context)) return { ...done, ...told }
  const { base, ours, theirs } = done
  return known({
    ...told,
    base: base === null ? null : await commitShown(context, home, input.into, base),
    ours: await commitShown(context, home, input.into, ours),
    theirs: await commitShown(context, home, input.from, theirs),
  })
}

async function merge(context: Context, input: Merging) {
  const { from, into } = input
  const home = homeOf(input, context)
  checkReach(context, on('read', from, input, context))
  // also refuses what no approval could do
  const preview = previewMerge(context.view, { home, from, into })
  const action = isProtected(context, input) ? 'propose' : 'write'
  const changes = (manifest: readonly ManifestEntry[]) => {
    // a label that becomes another one is told with its file, and no merge makes one less strict
    const entries = manifest.filter(({ path }) => path !== LABELS_PATH)
    for (const { path, path_old: taken = path, label_new, label_old } of entries) {
      const label = parseLabel(label_new ?? label_old)
      checkReach(context, { ...on(action, into, input, context), path: `/${path}`, label })
      // a file that moves is taken away where it was
      if (taken !== path)
        checkReach(context, { ...on(action, into, input, context), path: `/${taken}`, label: parseLabel(label_old) })
    }
  }
  changes(preview.manifest)
  const isGated = context.principal.lease?.gates?.includes('merge') === true
  if (action === 'propose' || isGated) return askGate(context, { kind: 'merge', home, from, into })
  const { done, told } = await writeShown(
    context,
    home,
    [from, into],
    async (tx, ids) => {
      const now = previewMerge(tx, { home, from, into })
      if (now.digest !== preview.digest) changes(now.manifest)
      const made = applyMerge(tx, {
        home,
        from,
        into,
        preview: now,
        words: speaksOutside(context, tx),
        author: authorOf(context),
        message: input.message ?? `merge ${from} into ${into}`,
        trailers: trailersOf(context),
        now: context.clock.now(),
      })
      const [commit, parent] = [await ids.shown(made.commit), await ids.shown(made.parent)]
      return { done: made, told: { commit, parent } }
    },
    ({ done: { commit, parent, preview: merged } }) => ({
      home,
      branch: into,
      from,
      parent,
      digest: merged.digest,
      conflicts: merged.conflicts.length,
      ...(commit === parent ? {} : { commit }),
    }),
  )
  const { conflicts, digest, manifest } = done.preview
  const visible = manifest.filter((entry) => isShown(context, input, [from, into], entry))
  const hidden = manifest.filter(({ path }) => path !== LABELS_PATH || !isPart(context)).length - visible.length
  return known({
    home,
    branch: into,
    ...told,
    // it is over the file of labels too
    digest: isPart(context) ? undefined : digest,
    manifest: visible,
    conflicts: hidden === 0 ? conflicts : [],
  })
}

/** What may not be seen on both sides, lies beyond the lease, or is nothing it takes, is left out; the rest is read. */
function isShown(context: Context, input: Home, branches: readonly string[], entry: ManifestEntry): boolean {
  const { path, path_old: from = path, label_old: before, label_new: after } = entry
  const home = homeOf(input, context)
  const labelsOf = (own: string, told: string | null): Label[] =>
    told === null
      ? []
      : branches.map((branch) =>
          labelOfFile(context.view, { home, branch, path: own, oid: null, label: parseLabel(told) }),
        )
  const labels = [...labelsOf(from, before), ...labelsOf(path, after)]
  const isVisible = labels.every((label) => dominates(context.clearance, label))
  const isReached = branches.every((branch) =>
    [path, from].every((own) => reaches(context, { ...on('read', branch, input, context), path: `/${own}` })),
  )
  const isLeftOut =
    context.principal.lease?.external === 'deny' && labels.some((label) => label.integrity === 'external')
  const isOfLabels = path === LABELS_PATH && isPart(context)
  if (!isVisible || !isReached || isLeftOut || isOfLabels) return false
  // a name is content too
  for (const label of labels) takeShown(context, { home, path, oid: '', label })
  return true
}

/** A name is content too, also where nothing of its file is shown. */
function takeInNames(context: Context, input: Home, commit: string, entries: readonly ManifestEntry[]): void {
  const home = homeOf(input, context)
  for (const { path, label_old, label_new } of entries)
    for (const label of [label_old, label_new])
      if (label !== null) takeShown(context, { home, path, oid: commit, label: parseLabel(label) })
}

/** A home that is not here protects nothing. */
function isProtected(parts: Pick<Parts, 'store' | 'identity'>, input: Merging): boolean {
  return getRef(parts.store.view(), homeOf(input, parts), input.into)?.protected === true
}
