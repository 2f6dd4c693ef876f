/** Which branches hold some commits. All history is walked once, however many branches and commits there are. */
import type { View } from '@csb/store'
import { readCommit } from './objects.ts'
import { listRefs } from './refs.ts'
import { diffTrees } from './tree-diff.ts'
import { walkCommits } from './walk.ts'

export type Holding = {
  /** branches whose history leads to one of them, sorted */
  readonly branches: readonly string[]
  /** how many of them some branch leads to */
  readonly commits: number
}

/**
 * @param commits object ids; those that are not in this home count for nothing
 * @param without paths: commits that changed nothing else are passed over
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED
 */
export async function branchesHolding(
  view: View,
  home: string,
  commits: ReadonlySet<string>,
  without: ReadonlySet<string>,
): Promise<Holding> {
  if (commits.size === 0) return { branches: [], commits: 0 }
  const refs = await listRefs(view, home)
  const heads = refs.map(({ commit }) => commit)
  const parents = new Map<string, readonly string[]>()
  const wanted = new Set<string>()
  for (const { oid, commit } of walkCommits(view, home, heads)) {
    parents.set(oid, commit.parents)
    if (commits.has(oid) && changesOther(view, home, commit, without)) wanted.add(oid)
  }
  const leading = descendants(parents, wanted)
  const branches = refs.filter(({ commit }) => leading.has(commit)).map(({ branch }) => branch)
  return { branches: branches.sort(), commits: wanted.size }
}

function changesOther(
  view: View,
  home: string,
  { tree, parents }: { readonly tree: string; readonly parents: readonly string[] },
  without: ReadonlySet<string>,
): boolean {
  const [first] = parents
  const before = first === undefined ? null : readCommit(view, home, first).tree
  return diffTrees(view, home, before, tree).some(({ path, after }) => after !== null && !without.has(path))
}

/** Some commits and all that lead to them. */
function descendants(parents: ReadonlyMap<string, readonly string[]>, wanted: ReadonlySet<string>): Set<string> {
  const children = new Map<string, string[]>()
  for (const [oid, above] of parents)
    for (const parent of above) children.set(parent, [...(children.get(parent) ?? []), oid])
  const found = new Set(wanted)
  // a set gives out what is added to it on the way
  for (const oid of found) for (const child of children.get(oid) ?? []) found.add(child)
  return found
}
