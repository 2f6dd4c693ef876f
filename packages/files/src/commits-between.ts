/** What one line of history has that another has not. */
import { fail } from '@csb/core'
import type { View } from '@csb/store'
import type { Commit } from './commit.ts'
import { readCommit } from './objects.ts'

type Visit = { readonly oid: string; readonly commit: Commit; isKnown: boolean }

/**
 * Commits that `from` leads to and `without` does not, newest first. Looks no further back than the two part, unless
 * clocks ran backwards; then a commit that both have may be named.
 * @param range `limit`: more than that is too many
 * @throws TOO_LARGE, NOT_FOUND, OBJECT_DAMAGED
 */
export function commitsBetween(
  view: View,
  home: string,
  range: { readonly from: string; readonly without: string; readonly limit: number },
): string[] {
  const visits = new Map<string, Visit>()
  const frontier: Visit[] = []
  const visit = (oid: string, isKnown: boolean): void => {
    const before = visits.get(oid)
    if (before !== undefined) {
      if (isKnown && !before.isKnown) spread(before)
      return
    }
    const next = { oid, commit: readCommit(view, home, oid), isKnown }
    visits.set(oid, next)
    frontier.push(next)
  }
  /** It is known after all, and so is everything behind it that was seen. */
  const spread = (start: Visit): void => {
    const rest = [start]
    for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
      next.isKnown = true
      for (const parent of next.commit.parents) {
        const above = visits.get(parent)
        if (above?.isKnown === false) rest.push(above)
      }
    }
  }
  visit(range.without, true)
  visit(range.from, false)
  while (frontier.some(({ isKnown }) => !isKnown)) {
    const at = frontier.reduce((best, one, i) => (timeOf(one) > timeOf(frontier[best]) ? i : best), 0)
    const [next] = frontier.splice(at, 1)
    for (const parent of next?.commit.parents ?? []) visit(parent, next?.isKnown === true)
    if (visits.size > range.limit * 2) fail('TOO_LARGE', { maxCommits: range.limit })
  }
  const found = [...visits.values()].filter(({ isKnown }) => !isKnown)
  if (found.length > range.limit) fail('TOO_LARGE', { maxCommits: range.limit })
  return found.sort((a, b) => timeOf(b) - timeOf(a) || (a.oid < b.oid ? -1 : 1)).map(({ oid }) => oid)
}

const timeOf = (visit: Visit | undefined): number => visit?.commit.committer.at ?? 0
