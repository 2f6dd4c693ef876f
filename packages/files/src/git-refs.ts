/**
 * Names as git spells them, and what a push may do to them: branches under `refs/heads/`, snapshots and tags beside
 * them, and `refs/for/<branch>`, which is no name but a way to propose. A branch whose head holds what was forgotten
 * can not be sent and is not shown, and no push makes one.
 * @clause L0.2 L0.5 L1.4
 */
import { fail } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { createForgetBoundary } from './fetch-plan.ts'
import { MAIN, MEMORY } from './homes.ts'
import { isErased, readCommit, readTree } from './objects.ts'
import { validateBranch } from './paths.ts'
import { keepHead, removeBranch } from './recycle.ts'
import { getRef, isSnapshot, listRefs, moveRef } from './refs.ts'
import { createTag, dropTag, getTag, listTags, peel } from './tags.ts'
import { FOLDER, isBlob } from './tree.ts'
import { walkCommits } from './walk.ts'

export type GitRef = {
  readonly name: string
  readonly oid: string
  /** what a tag leads to, where that is another object */
  readonly peeled?: string
  /** its name was given by a session that had read from outside */
  readonly outside?: true
  /** commits behind it were made by a session that had read from outside */
  readonly words?: true
}

/** What a name of git stands for here. `branch` is also how a lease names it. */
export type GitName =
  | { readonly kind: 'branch'; readonly branch: string }
  | { readonly kind: 'snapshot'; readonly branch: string }
  | { readonly kind: 'tag'; readonly branch: string; readonly tag: string }
  | { readonly kind: 'proposal'; readonly branch: string }

/** One line of a push; null: nothing there before, or nothing after. */
export type RefChange = { readonly name: string; readonly from: string | null; readonly to: string | null }

/** Where `HEAD` leads. */
export const HEAD_REF = `refs/heads/${MAIN}`

/** Clocks of committers differ: so far behind it is still looked for a commit. */
const SLOP_MS = 24 * 60 * 60_000
/** First parts of branch names that other operations write. */
const KEPT_APART = ['snapshots', 'tags', 'proposals', 'handoff']

/**
 * @throws INVALID_INPUT where the name is none; DENIED where nothing of that kind can be pushed
 */
export function parseGitName(name: string): GitName {
  const [, area, rest = ''] = /^refs\/(heads|tags|snapshots|for)\/(.+)$/.exec(name) ?? []
  if (area === undefined)
    return fail('DENIED', {
      reason: 'only branches, tags and refs/for/ are pushed',
      name: name.slice(0, 200).toWellFormed(),
    })
  validateBranch(rest)
  if (area === 'snapshots') return { kind: 'snapshot', branch: `snapshots/${rest}` }
  if (area === 'tags') return { kind: 'tag', branch: `tags/${rest}`, tag: rest }
  return area === 'for' ? { kind: 'proposal', branch: rest } : { kind: 'branch', branch: rest }
}

/** What can be fetched, by name. @throws NOT_FOUND without the home, OBJECT_DAMAGED */
export async function listGitRefs(view: View, home: string): Promise<(GitRef & { readonly branch: string })[]> {
  const isCut = await createForgetBoundary(view, home)
  const isWhole = (commit: string): boolean => !isCut(readCommit(view, home, commit).tree)
  const branches = (await listRefs(view, home))
    .filter(({ commit }) => isWhole(commit))
    .map(({ branch, commit, outside, words }) => ({
      name: `refs/${isSnapshot(branch) ? '' : 'heads/'}${branch}`,
      oid: commit,
      branch,
      ...(outside === undefined ? {} : { outside }),
      ...(words === undefined ? {} : { words }),
    }))
  const tags = (await listTags(view, home))
    .filter(({ commit }) => isWhole(commit))
    .map(({ name, oid, commit, words }) => ({
      name: `refs/tags/${name}`,
      oid,
      branch: `tags/${name}`,
      ...(oid === commit ? {} : { peeled: commit }),
      ...(words === undefined ? {} : { words }),
    }))
  return [...branches, ...tags].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * Do one line of a push. Its objects are here, or staged. The head of a branch that goes, or moves to other history, is
 * kept in the recycle area.
 * @param by when, in ms since epoch; whether who gives a new name has read from outside; whether what it is given to bears
 *   words of somebody who has
 * @throws PROTECTED, CONFLICT, NOT_FOUND, INVALID_INPUT
 * @clause L0.2 L1.4
 */
export function changeRef(
  tx: Transaction,
  home: string,
  { name, from, to }: RefChange,
  by: { readonly now: number; readonly outside: boolean; readonly words?: boolean; readonly agent?: boolean },
): void {
  const { now, words = false } = by
  const asked = parseGitName(name)
  checkRef(tx, home, asked)
  if (asked.kind === 'tag') {
    if (to === null) dropTag(tx, home, asked.tag, from ?? '')
    else createTag(tx, home, asked.tag, { oid: to, now, words })
  } else if (to === null) removeBranch(tx, home, asked.branch, { expect: from ?? '', now })
  else {
    moveRef(tx, home, asked.branch, { expect: from, to, ...by })
    if (from !== null && !isForward(tx, home, from, to))
      keepHead(tx, home, asked.branch, { head: from, now, ref: getRef(tx, home, asked.branch) })
  }
}

/**
 * Refuse what no push may do, before its objects are read.
 * @throws PROTECTED with the reason
 * @clause L0.2 L1.4
 */
export function checkRef(view: View, home: string, asked: GitName): void {
  const { kind, branch } = asked
  if (kind === 'snapshot') fail('PROTECTED', { branch, reason: 'a snapshot is not made, moved or removed by a push' })
  if (kind !== 'branch') return
  // notes have an index and a clock beside them: they are written as notes
  if (branch === MEMORY) fail('PROTECTED', { branch, reason: 'notes are written as notes' })
  if (KEPT_APART.includes(branch.split('/')[0] ?? ''))
    fail('PROTECTED', { branch, reason: 'that name is kept for the node' })
  if (getRef(view, home, branch)?.protected === true) fail('PROTECTED', { branch, advice: 'propose' })
}

/**
 * Refuse what could be pushed and never fetched again, nor pushed to: a head that still holds what was forgotten. Older
 * commits behind it may.
 * @param to a commit, or a tag that leads to one
 * @throws FORGOTTEN with a path of it; NOT_FOUND, OBJECT_DAMAGED
 */
export async function checkWhole(view: View, home: string, to: string): Promise<void> {
  const isCut = await createForgetBoundary(view, home)
  const { commit } = peel(view, home, to)
  const { tree } = readCommit(view, home, commit)
  if (!isCut(tree)) return
  fail('FORGOTTEN', { home, commit, path: forgottenPath(view, home, tree, isCut), advice: 'head' })
}

/** What a name stands for now, or null. */
export function currentOid(view: View, home: string, asked: GitName): string | null {
  if (asked.kind === 'tag') return getTag(view, home, asked.tag)?.oid ?? null
  return getRef(view, home, asked.branch)?.commit ?? null
}

/** The first one below a folder that holds such. */
function forgottenPath(view: View, home: string, folder: string, isCut: (tree: string) => boolean): string {
  for (const { mode, name, oid } of readTree(view, home, folder)) {
    if (mode === FOLDER && isCut(oid)) return `${name}/${forgottenPath(view, home, oid, isCut)}`
    if (isBlob({ mode }) && isErased(view, home, oid)) return name
  }
  return ''
}

/** Whether one commit leads back to another. Where clocks ran far backwards it says no, and a head is kept for nothing. */
function isForward(view: View, home: string, from: string, to: string): boolean {
  const { at } = readCommit(view, home, from).committer
  for (const { oid, commit } of walkCommits(view, home, [to])) {
    if (oid === from) return true
    if (commit.committer.at < at - SLOP_MS) return false
  }
  return false
}
