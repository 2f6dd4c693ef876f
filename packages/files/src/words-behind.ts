/**
 * Whether what a new name is given to bears words of a session that had read from outside, though who gives the name has
 * not: by the branches and tags that are known to.
 * @clause L1.7
 */
import type { View } from '@csb/store'
import { createHistory } from './history.ts'
import { listRefs } from './refs.ts'
import { listTags, peel } from './tags.ts'

/**
 * True where one of the commits is behind a branch or tag that bears such words, and behind none that bears none.
 * @param oids commits, or tags that lead to one: what is named, and what new commits build on
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED
 * @clause L1.7
 */
export async function hasWordsBehind(view: View, home: string, oids: readonly string[]): Promise<boolean> {
  const all = [...(await listRefs(view, home)), ...(await listTags(view, home))]
  const headsOf = (isSpoken: boolean) =>
    all.filter(({ words }) => (words === true) === isSpoken).map(({ commit }) => commit)
  const spoken = headsOf(true)
  if (spoken.length === 0) return false
  const isBehindSpoken = createHistory(view, home, spoken)
  const isBehindPlain = createHistory(view, home, headsOf(false))
  return oids
    .map((oid) => peel(view, home, oid).commit)
    .some((commit) => isBehindSpoken(commit) && !isBehindPlain(commit))
}
