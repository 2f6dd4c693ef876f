/**
 * L0 operations on branches as a whole: made, compared, merged, kept as a snapshot, removed, and what is in the
 * recycle area. A protected branch moves by an approval only. No operation moves or removes a snapshot.
 * @clause L0.1 L0.2 L0.3 L1.4
 */
import { LIMITS, dominates, fail, parseLabel, type Label } from '@csb/core'
import {
  MEMORY,
  applyMerge,
  createSnapshot,
  getRef,
  listRecycled,
  manifestOf,
  moveRef,
  previewMerge,
  readCommit,
  readForDiff,
  removeBranch,
  restoreBranch,
  restoreRecycled,
  unifiedDiff,
  type ManifestEntry,
} from '@csb/files'
import { labelOfFile } from '@csb/guard'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { takeIn } from '../session/bulk-reads.ts'
import { givesOutside, namesTold } from '../git/names.ts'
import { askGate } from '../gate/gates.ts'
import { checkReach, homeOf, locationOf, reaches, type Context, type Operation, type Parts } from '../operation.ts'

type Home = { readonly home?: string }
type Branch = Home & { readonly branch: string }
type Compared = Home & { readonly from: string; readonly to: string; readonly path?: string }
type Merging = Home & { readonly from: string; readonly into: string; readonly message?: string }
type Snapshot = Home & { readonly name: string; readonly of?: string }
type Restoring = Branch & { readonly path?: string; readonly as?: string; readonly deleted_by?: string }
type Page = Home & { readonly limit?: number; readonly cursor?: string }
type Shown = ManifestEntry & { readonly diff?: string }

const MAIN = 'main'

const on = (
  action: 'read' | 'write' | 'propose' | 'snapshot',
  branch: string,
  home: Home,
  parts: Pick<Parts, 'key' | 'identity'>,
) => ({
  location: locationOf(parts, homeOf(home, parts)),
  action,
  branch,
})

export const mergeOperations: readonly Operation[] = [
  {
    name: 'files.branch',
    input: 'FilesBranch',
    kind: 'write',
    open: 'lease',
    needs: (input: Branch, parts: Parts) => on('write', input.branch, input, parts),
    run: (context: Context, input: Branch & { from?: string }) => startBranch(context, input),
  },
  {
    name: 'files.removeBranch',
    input: 'FilesRemoveBranch',
    kind: 'write',
    open: 'lease',
    needs: (input: Branch, parts: Parts) => ({
      ...on('write', input.branch, input, parts),
      path: '/',
      below: true as const,
    }),
    run: (context: Context, input: Branch & { expect?: string }) => {
      const home = homeOf(input, context)
      return context.write(
        (tx) => {
          const commit =
            input.expect ?? getRef(tx, home, input.branch)?.commit ?? fail('NOT_FOUND', { branch: input.branch })
          removeBranch(tx, home, input.branch, { expect: commit, now: context.clock.now() })
          return { home, branch: input.branch, head: commit }
        },
        (removed) => removed,
      )
    },
  },
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
    run: (context: Context, input: Merging) => {
      checkReach(context, on('read', input.into, input, context))
      const { view } = context
      const preview = previewMerge(view, { home: homeOf(input, context), from: input.from, into: input.into })
      const manifest = preview.manifest.filter((entry) => isShown(context, input, [input.from, input.into], entry))
      const hidden = preview.manifest.length - manifest.length
      takeInNames(context, input, preview.theirs, manifest)
      // a conflict tells the names of files
      return { ...preview, manifest, hidden, conflicts: hidden === 0 ? preview.conflicts : [] }
    },
  },
  {
    name: 'files.merge',
    input: 'FilesMerge',
    kind: 'write',
    open: 'lease',
    needs: (input: Merging, parts: Parts) =>
      on(isProtected(parts, input) ? 'propose' : 'write', input.into, input, parts),
    run: (context: Context, input: Merging) => merge(context, input),
  },
  {
    name: 'files.snapshot',
    input: 'FilesSnapshot',
    kind: 'write',
    open: 'lease',
    needs: (input: Snapshot, parts: Parts) => on('snapshot', input.of ?? MAIN, input, parts),
    run: (context: Context, input: Snapshot) => {
      const home = homeOf(input, context)
      const of = branchOf(context, home, input.of ?? MAIN)
      const now = context.clock.now()
      return context.write(
        (tx) => {
          const outside = givesOutside(context, tx, input.name)
          return { home, of, ...createSnapshot(tx, home, { name: input.name, of, now, outside }) }
        },
        // of an older commit: it does not make one
        ({ branch, commit }) => ({ home, of, branch, head: commit }),
      )
    },
  },
  {
    name: 'files.recycle',
    input: 'FilesRecycle',
    kind: 'read',
    open: 'lease',
    needs: (input: Page, parts: Parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'list' as const,
    }),
    run: (context: Context, input: Page) => listDeleted(context, input),
  },
  {
    name: 'files.restore',
    input: 'FilesRestore',
    kind: 'write',
    open: 'lease',
    needs: (input: Restoring, parts: Parts) => ({
      ...on('write', input.branch, input, parts),
      path: `/${input.path ?? ''}`,
    }),
    run: (context: Context, input: Restoring) => restore(context, input),
  },
]

async function startBranch(context: Context, input: Branch & { readonly from?: string }) {
  const home = homeOf(input, context)
  const from = branchOf(context, home, input.from ?? MAIN)
  checkReach(context, on('read', from, input, context))
  return context.write(
    (tx) => {
      const to = getRef(tx, home, from)?.commit ?? fail('NOT_FOUND', { branch: from })
      const outside = givesOutside(context, tx, input.branch)
      moveRef(tx, home, input.branch, { expect: null, to, now: context.clock.now(), outside })
      return { home, branch: input.branch, from, head: to }
    },
    (made) => made,
  )
}

function compare(context: Context, input: Compared) {
  const home = homeOf(input, context)
  const { view } = context
  const branches = [input.from, input.to].map((branch) => branchOf(context, home, branch))
  for (const branch of branches) checkReach(context, on('read', branch, input, context))
  const [before, after] = branches.map((branch) => getRef(view, home, branch)?.commit ?? '')
  const treeOf = (commit = '') => readCommit(view, home, commit).tree
  const shown = manifestOf(view, home, treeOf(before), treeOf(after)).filter(
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
  return { home, from: before, to: after, items }
}

async function merge(context: Context, input: Merging) {
  const { from, into } = input
  const home = homeOf(input, context)
  checkReach(context, on('read', from, input, context))
  // also refuses what no approval could do
  const preview = previewMerge(context.view, { home, from, into })
  const action = isProtected(context, input) ? 'propose' : 'write'
  const changes = (entries: readonly ManifestEntry[]) => {
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
  const done = await context.write(
    (tx) => {
      const now = previewMerge(tx, { home, from, into })
      if (now.digest !== preview.digest) changes(now.manifest)
      return applyMerge(tx, {
        home,
        from,
        into,
        preview: now,
        author: authorOf(context),
        message: input.message ?? `merge ${from} into ${into}`,
        trailers: trailersOf(context),
        now: context.clock.now(),
      })
    },
    ({ commit, parent, preview: { digest, conflicts } }) => ({
      home,
      branch: into,
      from,
      parent,
      digest,
      conflicts: conflicts.length,
      ...(commit === parent ? {} : { commit }),
    }),
  )
  const { commit, parent } = done
  const { conflicts, digest, manifest } = done.preview
  const visible = manifest.filter((entry) => isShown(context, input, [from, into], entry))
  return {
    home,
    branch: into,
    commit,
    parent,
    digest,
    manifest: visible,
    conflicts: visible.length === manifest.length ? conflicts : [],
  }
}

async function listDeleted(context: Context, input: Page) {
  const home = homeOf(input, context)
  const { items, next } = await listRecycled(context.view, home, {
    now: context.clock.now(),
    limit: input.limit ?? LIMITS.listDefault,
    clearance: context.clearance,
    ...(input.cursor === undefined ? {} : { after: input.cursor }),
  })
  const isReached = ({ branch, path }: (typeof items)[number]) =>
    reaches(context, { ...on('read', branch, input, context), ...(path === null ? {} : { path: `/${path}` }) })
  const shown = namesTold(context, home, items.filter(isReached))
  for (const { branch, path, oid, label } of shown)
    takeIn(context, { home, path: `${branch}:${path ?? ''}`, oid, label: parseLabel(label) })
  return { items: shown, next_cursor: next }
}

async function restore(context: Context, input: Restoring) {
  const { branch, path, deleted_by: deletedBy } = input
  const home = homeOf(input, context)
  const now = context.clock.now()
  if (path === undefined) {
    const { as = branch } = input
    checkReach(context, { ...on('write', as, input, context), path: '/', below: true })
    const wanted = { now, as, ...(deletedBy === undefined ? {} : { head: deletedBy }) }
    return context.write(
      async (tx) => {
        const outside = as !== branch && givesOutside(context, tx, as)
        const { commit } = await restoreBranch(tx, home, branch, { ...wanted, outside })
        return { home, branch: as, of: branch, head: commit }
      },
      (done) => done,
    )
  }
  if (branch === MEMORY) fail('PROTECTED', { branch, reason: 'notes are restored as notes' })
  return context.write(
    async (tx) => {
      const { commit, parent, restored } = await restoreRecycled(tx, {
        home,
        branch,
        path,
        clearance: context.clearance,
        author: authorOf(context),
        message: `restore ${path}`,
        trailers: trailersOf(context),
        now,
        ...(deletedBy === undefined ? {} : { deletedBy }),
      })
      return { home, branch, path, commit, parent, label: restored.label, deleted_by: restored.commit }
    },
    ({ commit, parent, ...told }) => ({ ...told, parent, ...(commit === parent ? {} : { commit }) }),
  )
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
  if (!isVisible || !isReached || isLeftOut) return false
  // a name is content too
  for (const label of labels) takeIn(context, { home, path, oid: '', label })
  return true
}

/** A name is content too, also where nothing of its file is shown. */
function takeInNames(context: Context, input: Home, commit: string, entries: readonly ManifestEntry[]): void {
  const home = homeOf(input, context)
  for (const { path, label_old, label_new } of entries)
    for (const label of [label_old, label_new])
      if (label !== null) takeIn(context, { home, path, oid: commit, label: parseLabel(label) })
}

/** A lease names branches, and a note bears its own label wherever it lies: commits and notes are not taken. */
function branchOf(context: Context, home: string, branch: string): string {
  if (branch === MEMORY) fail('PROTECTED', { branch, reason: 'notes are kept as notes' })
  if (getRef(context.view, home, branch) === undefined) fail('NOT_FOUND', { branch })
  return branch
}

/** A home that is not here protects nothing. */
function isProtected(parts: Pick<Parts, 'store' | 'identity'>, input: Merging): boolean {
  return getRef(parts.store.view(), homeOf(input, parts), input.into)?.protected === true
}
