/** Ways through what is stored: to a path of a tree, and through history. */
import type { View } from '@csb/store'
import type { Commit } from './commit.ts'
import { readCommit, readTree } from './objects.ts'
import { FOLDER, type TreeEntry } from './tree.ts'

/**
 * The entry at a path, or undefined.
 * @param tree object id of a root tree
 * @throws NOT_FOUND, OBJECT_DAMAGED where a tree on the way is
 */
export function entryAt(view: View, home: string, tree: string, path: string): TreeEntry | undefined {
  let at: TreeEntry = { mode: FOLDER, name: '', oid: tree }
  for (const name of path.split('/')) {
    if (at.mode !== FOLDER) return undefined
    const next = readTree(view, home, at.oid).find((entry) => entry.name === name)
    if (next === undefined) return undefined
    at = next
  }
  return at
}

/**
 * All commits that the heads lead to, each once, newest first as `git log` has them.
 * @param heads object ids
 * @param until neither these commits nor what only they lead to
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function* walkCommits(
  view: View,
  home: string,
  heads: readonly string[],
  until: readonly string[] = [],
): Generator<{ oid: string; commit: Commit }> {
  const seen = new Set(until)
  const fresh = new Set(heads.filter((oid) => !seen.has(oid)))
  for (const oid of fresh) seen.add(oid)
  const frontier = [...fresh].map((oid) => ({ oid, commit: readCommit(view, home, oid) }))
  while (frontier.length > 0) {
    const at = frontier.reduce((best, { commit }, i) => (commit.committer.at > timeOf(frontier[best]) ? i : best), 0)
    const [next] = frontier.splice(at, 1)
    if (next === undefined) return
    yield next
    for (const parent of next.commit.parents) {
      if (seen.has(parent)) continue
      seen.add(parent)
      frontier.push({ oid: parent, commit: readCommit(view, home, parent) })
    }
  }
}

const timeOf = (item: { commit: Commit } | undefined): number => item?.commit.committer.at ?? 0
