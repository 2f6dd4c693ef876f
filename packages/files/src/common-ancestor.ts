/** Where two lines of history parted. */
import type { View } from '@csb/store'
import type { Commit } from './commit.ts'
import { readCommit } from './objects.ts'
import { comparePaths } from './tree-diff.ts'

type Visit = { readonly oid: string; readonly commit: Commit; sides: number }

const OURS = 1
const THEIRS = 2
const BOTH = OURS | THEIRS
/** Behind a common ancestor: no better one. */
const BEHIND = 4

/**
 * The best common ancestor of two commits: one that no other is behind; of several the newest, then by id.
 * @returns undefined where they have none
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function commonAncestor(view: View, home: string, ours: string, theirs: string): string | undefined {
  if (ours === theirs) return ours
  const visits = new Map<string, Visit>()
  const frontier: Visit[] = []
  const paint = (oid: string, sides: number): void => {
    const known = visits.get(oid)
    if (known !== undefined && (known.sides & sides) === sides) return
    const visit = known ?? { oid, commit: readCommit(view, home, oid), sides: 0 }
    visit.sides |= sides
    visits.set(oid, visit)
    // a clock that ran backwards can bring a commit up twice: it then passes on what it has learnt since
    if (!frontier.includes(visit)) frontier.push(visit)
  }
  paint(ours, OURS)
  paint(theirs, THEIRS)
  const found = new Set<Visit>()
  const best = () => [...found].filter((visit) => (visit.sides & BEHIND) === 0)
  // of several, a clock that ran backwards may have hidden that one is behind another: then all history tells
  while (frontier.some((visit) => (visit.sides & BEHIND) === 0) || best().length > 1) {
    const next = takeNewest(frontier)
    if (next === undefined) break
    const isCommon = (next.sides & BOTH) === BOTH
    if (isCommon && (next.sides & BEHIND) === 0) found.add(next)
    for (const parent of next.commit.parents) paint(parent, isCommon ? next.sides | BEHIND : next.sides)
  }
  return best().sort(byAge)[0]?.oid
}

function takeNewest(frontier: Visit[]): Visit | undefined {
  let best = 0
  for (const [index, visit] of frontier.entries()) {
    const newest = frontier[best]
    if (newest !== undefined && byAge(visit, newest) < 0) best = index
  }
  return frontier.splice(best, 1)[0]
}

const byAge = (a: Visit, b: Visit): number =>
  b.commit.committer.at - a.commit.committer.at || comparePaths(a.oid, b.oid)
