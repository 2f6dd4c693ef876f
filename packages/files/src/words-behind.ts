/**
 * What is known of commits that a new name is given to, by the branches and tags that lead to them: whoever gives the
 * name need not have made them.
 * @clause L1.7
 */
import type { View } from '@csb/store'
import { createHistory } from './history.ts'
import { listRefs } from './refs.ts'
import { listTags, peel } from './tags.ts'

export type MarksBehind = {
  readonly words: boolean
  readonly agent: boolean
  /** is that one behind a branch to which no session pushed? */
  isPlain(oid: string): boolean
}

/**
 * The marks of branches and tags that one of the commits is behind, where it is behind none without that mark.
 * @param oids commits, or tags that lead to one: what is named, and what new commits build on
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED
 * @clause L1.7, L3.2
 */
export async function marksBehind(view: View, home: string, oids: readonly string[]): Promise<MarksBehind> {
  const refs = await listRefs(view, home)
  const tags = await listTags(view, home)
  const commits = oids.map((oid) => peel(view, home, oid).commit)
  const isBehind = (heads: readonly { readonly commit: string }[]) =>
    createHistory(
      view,
      home,
      heads.map(({ commit }) => commit),
    )
  const isMarked = <T extends { readonly commit: string }>(
    heads: readonly T[],
    isSo: (head: T) => boolean,
  ): boolean => {
    const marked = heads.filter(isSo)
    if (marked.length === 0) return false
    const [inMarked, inPlain] = [isBehind(marked), isBehind(heads.filter((head) => !isSo(head)))]
    return commits.some((commit) => inMarked(commit) && !inPlain(commit))
  }
  const isInPlain = isBehind(refs.filter(({ agent }) => agent !== true))
  return {
    words: isMarked([...refs, ...tags], ({ words }) => words === true),
    // a tag says nothing of who pushed what it leads to
    agent: isMarked(refs, ({ agent }) => agent === true),
    isPlain: (oid) => isInPlain(peel(view, home, oid).commit),
  }
}
