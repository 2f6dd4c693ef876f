/**
 * What is known of commits that a new name is given to, by the branches and tags that lead to them: whoever gives the
 * name need not have made them.
 * @clause L1.7
 */
import type { View } from '@csb/store'
import { createHistory } from './history.ts'
import { readCommit } from './objects.ts'
import { listRefs } from './refs.ts'
import { listTags, peel } from './tags.ts'
import { walkCommits } from './walk.ts'

export type MarksBehind = {
  readonly words: boolean
  readonly agent: boolean
  /** is that one behind a branch to which no session pushed? */
  isPlain(oid: string): boolean
}

type Head = { readonly commit: string }

/** Clocks of committers differ: so far behind it is still looked for a commit. */
const SLOP_MS = 24 * 60 * 60_000

/**
 * The marks of branches and tags that one of the commits is behind, where it is behind none without that mark.
 * @param oids commits that were here before, or tags that lead to one: what is named, and what new commits build on
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED
 * @clause L1.7, L3.2
 */
export async function marksBehind(view: View, home: string, oids: readonly string[]): Promise<MarksBehind> {
  const refs = await listRefs(view, home)
  const tags = await listTags(view, home)
  const commits = oids.map((oid) => peel(view, home, oid).commit)
  const isMarked = <T extends Head>(heads: readonly T[], isSo: (head: T) => boolean): boolean => {
    const marked = heads.filter(isSo)
    if (marked.length === 0) return false
    const plain = heads.filter((head) => !isSo(head))
    // to the end: dates are words of whoever made the commits
    const isInMarked = createHistory(
      view,
      home,
      marked.map(({ commit }) => commit),
    )
    return commits.some((commit) => !isNearlyBehind(view, home, plain, commit) && isInMarked(commit))
  }
  return {
    words: isMarked([...refs, ...tags], ({ words }) => words === true),
    // a tag says nothing of who pushed what it leads to
    agent: isMarked(refs, ({ agent }) => agent === true),
    isPlain: (oid) => {
      const plain = refs.filter(({ agent }) => agent !== true)
      return isNearlyBehind(view, home, plain, peel(view, home, oid).commit)
    },
  }
}

/** Where clocks ran far backwards it says no, and what is named bears a mark for nothing. */
function isNearlyBehind(view: View, home: string, heads: readonly Head[], wanted: string): boolean {
  if (heads.some(({ commit }) => commit === wanted)) return true
  const { at } = readCommit(view, home, wanted).committer
  const starts = heads.map(({ commit }) => commit)
  for (const { oid, commit } of walkCommits(view, home, starts)) {
    if (oid === wanted) return true
    if (commit.committer.at < at - SLOP_MS) return false
  }
  return false
}
