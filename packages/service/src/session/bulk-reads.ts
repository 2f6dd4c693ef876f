/**
 * What a session sees of whole branches at once, by a clone or an export: each branch is read as one thing then, and what
 * lies there from outside taints all the same. By the labels of each branch, those of files that are gone from it too,
 * since its history goes along.
 * @clause L1.5, L1.7
 */
import { MOST_RESTRICTIVE, OWNER_PRIVATE, dominates, joinLabels, parseLabel, type Label } from '@csb/core'
import { MEMORY, listRefs, listTags, readCommit, readLabels, recycledOf, type Export } from '@csb/files'
import { listStates } from '@csb/memory'
import type { ReadEntry } from '@csb/store'
import { isOfOwner, readHere } from './foreign-home.ts'
import { isSession } from './session.ts'
import { heard, refuseOutside } from './taint.ts'
import type { Context } from '../operation.ts'

/**
 * Taint the session with what branches and tags hold from outside and it may see. Durable before the next bytes are
 * answered.
 * @param isSeen by the name of a branch, of a tag as a lease names it: `tags/<name>`
 * @throws DENIED where its lease takes nothing from outside; NOT_FOUND without the home
 */
export async function takeInBranches(
  context: Context,
  home: string,
  isSeen: (branch: string) => boolean,
): Promise<void> {
  if (!isSession(context)) return
  const view = context.store.view()
  const isForeign = !isOfOwner(context, view, home)
  // a tag may lead to what no branch does any more
  const tags = (await listTags(view, home)).map(({ name, ...tag }) => ({ ...tag, branch: `tags/${name}` }))
  for (const { branch, commit, words } of [...(await listRefs(view, home)), ...tags]) {
    if (!isSeen(branch)) continue
    takeInCommit(context, home, branch, commit)
    if (words === true || isForeign) takeInWords(context, home, branch)
    if (branch === MEMORY)
      for await (const { path, oid, label } of listStates(view, home))
        takeShown(context, { home, path, oid, label: parseLabel(label) })
  }
  refuseOutside(context)
}

/**
 * The same for all that an export holds: the recycle area and the names of branches go along.
 * @param begun what it is made from, which need not be what is there now; omitted: what is there now
 * @throws DENIED where its lease takes nothing from outside; NOT_FOUND without the home
 */
export async function takeInHome(context: Context, home: string, begun?: Export): Promise<void> {
  if (!isSession(context)) return
  const view = context.store.view()
  // all that somebody else's home holds is from outside, what no label speaks of as well
  const isForeign = !isOfOwner(context, view, home)
  const { refs, tags, recycled } = begun ?? {
    refs: await listRefs(view, home),
    tags: await listTags(view, home),
    recycled: await recycledOf(view, home),
  }
  for (const { branch, outside, words } of [...refs, ...recycled])
    if (outside === true || words === true || isForeign) takeInWords(context, home, branch)
  for (const { name, words } of tags) if (words === true || isForeign) takeInWords(context, home, `tags/${name}`)
  for (const { branch, path, oid, label } of recycled) {
    if (path === null) takeInCommit(context, home, branch, oid)
    else takeShown(context, { home, path: `${branch}:${path}`, oid, label: parseLabel(label) })
  }
  for (const { branch, commit } of refs) takeInCommit(context, home, branch, commit)
  for (const { name, commit } of tags) takeInCommit(context, home, `tags/${name}`, commit)
  await takeInBranches(context, home, (branch) => branch === MEMORY)
}

/** A name that was given, or commits that were made, by a session that had read from outside. @param branch or tag */
export function takeInWords(context: Context, home: string, branch: string): void {
  takeShown(context, { ...heard(context, branch), home })
}

/** By the labels in its tree. */
function takeInCommit(context: Context, home: string, branch: string, commit: string): void {
  const view = context.store.view()
  const labels = readLabels(view, home, readCommit(view, home, commit).tree)
  const named =
    labels === undefined
      ? [['', MOST_RESTRICTIVE] as const]
      : [...labels].map(([path, text]) => [path, parseLabel(text)] as const)
  for (const [path, label] of named) takeShown(context, { home, path: `${branch}:${path}`, oid: commit, label })
  noteBranch(context, { home, branch, commit }, [OWNER_PRIVATE, ...named.map(([, label]) => label)])
}

/** Into the list of what was read, as one thing: the branch as it is. What of it is from outside is taken in by itself. */
function noteBranch(
  { view, clearance }: Context,
  { home, branch, commit }: { readonly home: string; readonly branch: string; readonly commit: string },
  labels: readonly Label[],
): void {
  const label = joinLabels(labels.filter((one) => one.integrity !== 'external' && dominates(clearance, one)))
  view.noteRead({ home, path: `${branch}:`, oid: commit, label })
}

/** Taint the session with one thing that it is shown, though it did not read it. */
export function takeShown({ clearance, outside, identity, store }: Context, shown: ReadEntry): void {
  const entry = readHere({ identity }, store.view(), shown)
  if (entry.label.integrity === 'external' && dominates(clearance, entry.label)) outside.push(entry)
}
