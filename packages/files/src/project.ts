/**
 * What a reader with a certain clearance sees of a commit: projected tree, projected parents, same author and time.
 * Commits that become empty are left out. The ids are those of ordinary git objects, equal on every node.
 *
 * Where nothing is hidden or forgotten in a commit and all behind it, it is the commit itself.
 * @clause L4.2
 */
import { fail, fromUtf8, utf8 } from '@csb/core'
import { prefix, type Store, type Transaction, type View } from '@csb/store'
import { commonAncestor } from './common-ancestor.ts'
import { hashOf, oidOf, readCommit, readObject, writeTree } from './objects.ts'
import { putWhole } from './stored.ts'
import { createTreeProjector, type Projection, type TreeProjector } from './project-tree.ts'
import { wordsSeen } from './project-words.ts'
import { seesEverything } from './sight.ts'
import { epochOf, readMemo, sweepMemo, writeMemo, type MemoWriter } from './projection-memo.ts'

/** Commits that one transaction projects. */
const STEP_COMMITS = 64

/**
 * Project a commit and all behind it, in bounded steps; what was worked out before is not worked out again.
 * @returns id of a commit of the same home, null where nothing of its history is seen
 * @throws NOT_FOUND, OBJECT_DAMAGED, CONFLICT where labels go on changing meanwhile
 * @clause L4.2
 */
export async function projectCommit(
  store: Store,
  projection: Projection,
  commit: string,
  signal?: AbortSignal,
): Promise<string | null> {
  const { home, clearance } = projection
  if (await isWhole(store.view(), projection)) {
    readCommit(store.view(), home, commit)
    return commit
  }
  const before = seenOf(store.view(), projection, commit)
  if (before !== undefined) return before
  for (let attempt = 0; attempt < 8; attempt++) {
    await sweepMemo(store, home)
    const view = store.view()
    const epoch = epochOf(view, home)
    const pending = pendingOf(view, projection, commit)
    let isCurrent = true
    for (let at = 0; at < pending.length && isCurrent; at += STEP_COMMITS) {
      signal?.throwIfAborted()
      const step = pending.slice(at, at + STEP_COMMITS)
      isCurrent = await store.transact((tx) => {
        if (epochOf(tx, home) !== epoch) return false
        projectAll(tx, projection, step)
        return true
      })
    }
    const seen = readMemo(store.view(), home, clearance).commit(commit)
    if (isCurrent && seen !== undefined) return seen
  }
  return fail('CONFLICT', { home, commit })
}

/** The same within a transaction, for a commit of which little is left to be projected. */
export async function projectWithin(tx: Transaction, projection: Projection, commit: string): Promise<string | null> {
  if (await isWhole(tx, projection)) return commit
  projectAll(tx, projection, pendingOf(tx, projection, commit))
  return readMemo(tx, projection.home, projection.clearance).commit(commit) ?? null
}

/** What was seen of a commit when it was projected; undefined where it was not. */
export const seenOf = (
  view: View,
  { home, clearance }: Omit<Projection, 'labelOf'>,
  commit: string,
): string | null | undefined => readMemo(view, home, clearance).commit(commit)

/**
 * Is little left to be projected of a commit and all behind it?
 * @param most commits at most
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function isNearlyProjected(
  view: View,
  { home, clearance }: Omit<Projection, 'labelOf'>,
  commit: string,
  most: number,
): boolean {
  const memo = readMemo(view, home, clearance)
  const seen = new Set([commit])
  const stack = memo.commit(commit) === undefined ? [commit] : []
  for (let oid = stack.pop(); oid !== undefined && seen.size <= most; oid = stack.pop()) {
    const left = readCommit(view, home, oid).parents.filter((one) => !seen.has(one) && memo.commit(one) === undefined)
    for (const parent of left) seen.add(parent)
    stack.push(...left)
  }
  return seen.size <= most
}

/** True where the projection is the identity: the reader sees everything, and nothing was forgotten. */
export async function isWhole(view: View, { home, clearance }: Projection): Promise<boolean> {
  if (!seesEverything(clearance)) return false
  for await (const _ of view.range({ prefix: prefix('erased', home), limit: 1 })) return false
  return true
}

/** Commits not projected yet, parents before children. */
function pendingOf(view: View, { home, clearance }: Projection, commit: string): string[] {
  const memo = readMemo(view, home, clearance)
  const order: string[] = []
  const seen = new Set<string>()
  const stack: { readonly oid: string; readonly parents: string[] }[] = []
  const enter = (oid: string): void => {
    if (seen.has(oid) || memo.commit(oid) !== undefined) return
    seen.add(oid)
    stack.push({ oid, parents: readCommit(view, home, oid).parents.toReversed() })
  }
  enter(commit)
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const parent = top.parents.pop()
    if (parent !== undefined) enter(parent)
    else {
      order.push(top.oid)
      stack.pop()
    }
  }
  return order
}

function projectAll(tx: Transaction, projection: Projection, commits: readonly string[]): void {
  const memo = writeMemo(tx, projection.home, projection.clearance)
  const trees = createTreeProjector(tx, projection, memo)
  for (const oid of commits) memo.keepCommit(oid, projectOne(tx, projection, { oid, memo, trees }))
}

type Desk = { readonly oid: string; readonly memo: MemoWriter; readonly trees: TreeProjector }

function projectOne(tx: Transaction, projection: Projection, { oid, memo, trees }: Desk): string | null {
  const { home } = projection
  const commit = readCommit(tx, home, oid)
  const shown = trees.project(commit.tree)
  const tree = shown ?? writeTree(tx, home, [])
  const mapped = commit.parents.map((parent) => memo.commit(parent) ?? null)
  const isSame = mapped.every((seen, at) => seen === commit.parents[at])
  if (isSame && tree === commit.tree) return oid
  const parents = isSame
    ? commit.parents
    : headsOf(
        tx,
        home,
        mapped.filter((seen) => seen !== null),
      )
  const first = commit.parents[0]
  const before = first === undefined ? null : readCommit(tx, home, first).tree
  const [only] = parents
  const wasEmpty = commit.parents.length === 1 && before === commit.tree
  if (only === undefined && shown === null) return null
  if (only !== undefined && parents.length === 1 && !wasEmpty && readCommit(tx, home, only).tree === tree) return only
  const words = wordsSeen(tx, projection, trees, { commit, parent: before })
  const lines = [
    `tree ${tree}`,
    ...parents.map((parent) => `parent ${parent}`),
    ...personLines(tx, home, oid),
    '',
    words.message,
    ...(words.trailers.length === 0 ? [] : ['', ...words.trailers.map(([name, value]) => `${name}: ${value}`)]),
    '',
  ]
  const body = utf8(lines.join('\n'))
  const made = oidOf(hashOf(tx, home), 'commit', body)
  putWhole(tx, home, made, 'commit', body)
  return made
}

/** Each parent once, and none that another leads to: a line of history of which nothing is seen joins unseen. */
function headsOf(view: View, home: string, parents: readonly string[]): string[] {
  const once = [...new Set(parents)]
  if (once.length < 2) return once
  return once.filter((old) => !once.some((head) => head !== old && commonAncestor(view, home, head, old) === old))
}

/** Author and committer as they are written, time zone and all. */
function personLines(view: View, home: string, oid: string): string[] {
  const text = fromUtf8(readObject(view, home, oid, 'commit')) ?? fail('OBJECT_DAMAGED', { home, oid })
  const header = text.split('\n\n', 1)[0]?.split('\n') ?? []
  return ['author ', 'committer '].map(
    (name) => header.find((line) => line.startsWith(name)) ?? fail('OBJECT_DAMAGED', { home, oid }),
  )
}
