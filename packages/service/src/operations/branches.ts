/**
 * L0 operations on branches as names: made, removed, kept as a snapshot, and what of them and of their files is in the
 * recycle area. No operation moves or removes a snapshot.
 * @clause L0.2 L0.3 L1.4
 */
import { LIMITS, fail, parseLabel } from '@csb/core'
import {
  MAIN,
  MEMORY,
  createSnapshot,
  getRef,
  listRecycled,
  moveRef,
  recycledOf,
  removeBranch,
  restoreBranch,
  restoreRecycled,
  type Recycled,
} from '@csb/files'
import { commitShown, isPart, known, writeShown, type IdReader } from '../git/ids.ts'
import { givesOutside, isFromOutside, marksOf, namesTold } from '../git/names.ts'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { takeShown } from '../session/bulk-reads.ts'
import { fileBranch, on, type Home } from '../git/reach.ts'
import { checkReach, homeOf, locationOf, reaches, type Context, type Operation, type Parts } from '../operation.ts'

type Branch = Home & { readonly branch: string }
type Snapshot = Home & { readonly name: string; readonly of?: string }
type Restoring = Branch & { readonly path?: string; readonly as?: string; readonly deleted_by?: string }
type Page = Home & { readonly limit?: number; readonly cursor?: string }

export const branchOperations: readonly Operation[] = [
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
    run: (context: Context, input: Branch & { expect?: string }) => dropBranch(context, input),
  },
  {
    name: 'files.snapshot',
    input: 'FilesSnapshot',
    kind: 'write',
    open: 'lease',
    needs: (input: Snapshot, parts: Parts) => on('snapshot', input.of ?? MAIN, input, parts),
    run: (context: Context, input: Snapshot) => keepSnapshot(context, input),
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
  const from = fileBranch(context, home, input.from ?? MAIN)
  checkReach(context, on('read', from, input, context))
  const { branch } = input
  const { told } = await writeShown(
    context,
    home,
    [from],
    async (tx, ids) => {
      const { commit: to, words = false, agent = false } = getRef(tx, home, from) ?? fail('NOT_FOUND', { branch: from })
      const outside = givesOutside(context, tx, branch)
      moveRef(tx, home, branch, { expect: null, to, now: context.clock.now(), outside, words, agent })
      return { to, told: known({ home, branch, from, head: await ids.shown(to) }) }
    },
    ({ to }) => ({ home, branch, from, head: to }),
  )
  return told
}

async function dropBranch(context: Context, input: Branch & { readonly expect?: string }) {
  const home = homeOf(input, context)
  const { branch } = input
  const { told } = await writeShown(
    context,
    home,
    [branch],
    async (tx, ids) => {
      const head = getRef(tx, home, branch)?.commit ?? fail('NOT_FOUND', { branch })
      const expect = input.expect === undefined ? head : await ids.meant(branch, input.expect)
      removeBranch(tx, home, branch, { expect, now: context.clock.now() })
      return { head, told: known({ home, branch, head: await ids.shown(head) }) }
    },
    ({ head }) => ({ home, branch, head }),
  )
  return told
}

async function keepSnapshot(context: Context, input: Snapshot) {
  const home = homeOf(input, context)
  const of = fileBranch(context, home, input.of ?? MAIN)
  const now = context.clock.now()
  const { told } = await writeShown(
    context,
    home,
    [of],
    async (tx, ids) => {
      const outside = givesOutside(context, tx, input.name)
      const made = createSnapshot(tx, home, { name: input.name, of, now, outside })
      return { made, told: known({ home, of, ...made, commit: await ids.shown(made.commit) }) }
    },
    // of an older commit: it does not make one
    ({ made: { branch, commit } }) => ({ home, of, branch, head: commit }),
  )
  return told
}

async function listDeleted(context: Context, input: Page) {
  const home = homeOf(input, context)
  const isDenied = context.principal.lease?.external === 'deny'
  // a lease that does not reach it, or reads nothing from outside, is not told that it is there
  const isTold = ({ branch, path, label, ...row }: Recycled): boolean =>
    reaches(context, { ...on('read', branch, input, context), ...(path === null ? {} : { path: `/${path}` }) }) &&
    !(isDenied && (isFromOutside(context, home, row) || parseLabel(label).integrity === 'external'))
  const { items, next } = await listRecycled(context.view, home, {
    now: context.clock.now(),
    limit: input.limit ?? LIMITS.listDefault,
    clearance: context.clearance,
    isTold,
    ...(input.cursor === undefined ? {} : { after: input.cursor }),
  })
  const shown = []
  for (const item of namesTold(context, home, items)) {
    const { branch, path, oid, label } = item
    takeShown(context, { home, path: `${branch}:${path ?? ''}`, oid, label: parseLabel(label) })
    const commit = await commitShown(context, home, branch, item.commit)
    shown.push(known({ ...item, commit, oid: path === null ? commit : oid }))
  }
  return { items: shown, next_cursor: next }
}

async function restore(context: Context, input: Restoring) {
  const { branch, path } = input
  const home = homeOf(input, context)
  if (path === undefined) return restoreWhole(context, input)
  if (branch === MEMORY) fail('PROTECTED', { branch, reason: 'notes are restored as notes' })
  const deletedBy = await deletionMeant(context, home, input)
  const { told } = await writeShown(
    context,
    home,
    [branch],
    async (tx, ids) => {
      await checkMeant(ids, home, input, deletedBy)
      const { restored, ...done } = await restoreRecycled(tx, {
        home,
        branch,
        path,
        clearance: context.clearance,
        ...marksOf(context, tx, branch),
        author: authorOf(context),
        message: `restore ${path}`,
        trailers: trailersOf(context),
        now: context.clock.now(),
        ...(deletedBy === undefined ? {} : { deletedBy }),
      })
      const [commit, parent] = [await ids.shown(done.commit), await ids.shown(done.parent)]
      const what = { home, branch, path, label: restored.label }
      const by = await ids.shown(restored.commit)
      return { done, restored, told: known({ ...what, commit, parent, deleted_by: by }) }
    },
    ({ done: { commit, parent }, restored }) => ({
      home,
      branch,
      path,
      label: restored.label,
      deleted_by: restored.commit,
      parent,
      ...(commit === parent ? {} : { commit }),
    }),
  )
  return told
}

async function restoreWhole(context: Context, input: Restoring) {
  const { branch, as = branch } = input
  const home = homeOf(input, context)
  checkReach(context, { ...on('write', as, input, context), path: '/', below: true })
  const now = context.clock.now()
  const head = await deletionMeant(context, home, input)
  const { told } = await writeShown(
    context,
    home,
    [],
    async (tx, ids) => {
      await checkMeant(ids, home, input, head)
      const outside = as !== branch && givesOutside(context, tx, as)
      const { commit } = await restoreBranch(tx, home, branch, {
        now,
        as,
        outside,
        ...(head === undefined ? {} : { head }),
      })
      return { commit, told: known({ home, branch: as, of: branch, head: await ids.shown(commit) }) }
    },
    ({ commit }) => ({ home, branch: as, of: branch, head: commit }),
  )
  return told
}

/**
 * The merge, or the head of the branch, that is meant by one that was shown. Looked for before anything is written: of each
 * that it may be, all that is seen is worked out.
 * @throws NOT_FOUND
 */
async function deletionMeant(
  context: Context,
  home: string,
  { branch, path, deleted_by: told }: Restoring,
): Promise<string | undefined> {
  if (told === undefined || !isPart(context)) return told
  const isMeant = (entry: Recycled): boolean =>
    path === undefined ? entry.path === null && entry.branch === branch : entry.path === path
  for (const { commit } of (await recycledOf(context.store.view(), home)).filter(isMeant).toReversed())
    if ((await commitShown(context, home, branch, commit)) === told) return commit
  return fail('NOT_FOUND', { home, branch, deleted_by: told })
}

/** It is still what was shown; whether it is still there is asked by whatever restores it. @throws NOT_FOUND */
async function checkMeant(
  ids: IdReader,
  home: string,
  { branch, deleted_by: told }: Restoring,
  meant: string | undefined,
): Promise<void> {
  if (meant === undefined || ids.isWhole || (await ids.shown(meant)) === told) return
  fail('NOT_FOUND', { home, branch, deleted_by: told })
}
