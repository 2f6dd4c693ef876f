/**
 * Which commits a client gets, and where its history ends: what it wants without what it has, no deeper than it asks,
 * and never across a commit that holds what was forgotten. There history begins for whoever comes new; no id changes.
 * @clause L0.5 L3.4
 */
import { fail } from '@csb/core'
import { prefix, type View } from '@csb/store'
import { createCommitGraph, createCommitQueue, type CommitGraph, type GraphCommit } from './commit-graph.ts'
import { isErased, readTree } from './objects.ts'
import { kindAt } from './stored.ts'
import { peel } from './tags.ts'
import { FOLDER, isBlob } from './tree.ts'

export type FetchRequest = {
  /** commits or tags */
  readonly wants: readonly string[]
  /** what the client says it has; what is not here is passed over */
  readonly haves: readonly string[]
  /** commits behind which the client has nothing */
  readonly shallow: readonly string[]
  /** so many commits deep; `relative`: beyond where the client's history ends */
  readonly depth?: number
  readonly relative?: boolean
  /** no commit before, ms since epoch */
  readonly since?: number
  /** no commit that these lead to */
  readonly not?: readonly string[]
}

export type FetchPlan = {
  /** newest first */
  readonly commits: readonly GraphCommit[]
  /** objects of kind tag that were asked for */
  readonly tags: readonly string[]
  /** commits that the client has and whose objects need not be sent */
  readonly edges: readonly GraphCommit[]
  /** commits behind which the client will have nothing */
  readonly shallow: readonly string[]
  /** commits behind which it will have something from now on */
  readonly unshallow: readonly string[]
}

const HAS = 1
const WANTED = 2
/** Clocks of committers differ: so far behind the oldest wanted commit it is still looked whether the client has more. */
const SLOP_MS = 24 * 60 * 60_000

/**
 * @throws NOT_FOUND, OBJECT_DAMAGED; FORGOTTEN where a commit that is wanted itself holds what was forgotten
 */
export async function planFetch(view: View, home: string, request: FetchRequest): Promise<FetchPlan> {
  const graph = createCommitGraph(view, home)
  const isCut = await createForgetBoundary(view, home)
  const peeled = request.wants.map((want) => peel(view, home, want))
  const wants = [...new Set(peeled.map(({ commit }) => commit))].map((oid) => graph.commit(oid))
  const has = createClientHistory(graph, view, home, request)
  const isDeepening = request.depth !== undefined || request.since !== undefined || (request.not ?? []).length > 0
  const { reached, hidden } = isDeepening
    ? { reached: reachByDepth(graph, wants, request, isCut), hidden: [] }
    : reachNew(graph, wants, has, isCut)
  has.walk(oldestOf(isDeepening ? reached : hidden))
  const commits = [...reached].filter(({ marks }) => (marks & HAS) === 0)
  const lost = commits.find(({ tree }) => isCut(tree))
  if (lost !== undefined) fail('FORGOTTEN', { home, oid: lost.oid })
  /** Its parents stay away: asked for less deep, or they hold what was forgotten and the client never had them. */
  const isEnd = ({ parents }: GraphCommit): boolean =>
    parents.some((oid) => {
      const parent = graph.commit(oid)
      return !reached.has(parent) && ((parent.marks & HAS) === 0 || (isDeepening && !isCut(parent.tree)))
    })
  const clientShallow = new Set(request.shallow)
  const shallow = new Set(
    [...reached].filter((one) => isEnd(one) && (isDeepening || !has.ends.has(one.oid))).map(({ oid }) => oid),
  )
  const edges = new Set(has.tips)
  for (const { parents } of commits) {
    for (const oid of parents) if ((graph.commit(oid).marks & HAS) !== 0) edges.add(graph.commit(oid))
  }
  return {
    commits: commits.sort((a, b) => b.at - a.at),
    tags: [...new Set(peeled.flatMap(({ tags }) => tags))],
    edges: [...edges],
    shallow: [...shallow].filter((oid) => !clientShallow.has(oid)),
    unshallow: isDeepening
      ? commonOf(view, home, request.shallow).filter((oid) => reached.has(graph.commit(oid)) && !shallow.has(oid))
      : [],
  }
}

/** Which of these ids are commits here. */
export const commonOf = (view: View, home: string, haves: readonly string[]): string[] =>
  haves.filter((oid) => kindAt(view, home, oid) === 'commit')

/**
 * True where every want leads to something the client has, so that nothing is won by asking on.
 * @param limit commits that are looked at, at most; beyond it the answer is no
 */
export function isEnough(
  view: View,
  home: string,
  wants: readonly string[],
  common: readonly string[],
  limit: number,
): boolean {
  const graph = createCommitGraph(view, home)
  const goals = new Set(common)
  let left = limit
  return wants.every((want) => {
    const queue = createCommitQueue()
    const seen = new Set<string>()
    queue.push(graph.commit(peel(view, home, want).commit))
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      if (goals.has(next.oid)) return true
      if (left-- <= 0) return false
      for (const oid of next.parents) {
        if (seen.has(oid)) continue
        seen.add(oid)
        queue.push(graph.commit(oid))
      }
    }
    return false
  })
}

/** True where something of a home was ever forgotten. */
export async function hasForgotten(view: View, home: string): Promise<boolean> {
  for await (const _ of view.range({ prefix: prefix('erased', home), limit: 1 })) return true
  return false
}

/**
 * Whether a tree holds what was forgotten, and so can not be sent whole.
 * @returns asks for the id of a root tree
 */
export async function createForgetBoundary(view: View, home: string): Promise<(tree: string) => boolean> {
  if (!(await hasForgotten(view, home))) return () => false
  const known = new Map<string, boolean>()
  const holds = (tree: string): boolean => {
    const found = known.get(tree)
    if (found !== undefined) return found
    const entries = readTree(view, home, tree)
    const answer = entries.some((entry) =>
      entry.mode === FOLDER ? holds(entry.oid) : isBlob(entry) && isErased(view, home, entry.oid),
    )
    known.set(tree, answer)
    return answer
  }
  return holds
}

/** What the client has: marks, from its tips back to where its history ends. */
function createClientHistory(graph: CommitGraph, view: View, home: string, request: FetchRequest) {
  const ends = new Set(request.shallow)
  const tips = [...new Set(commonOf(view, home, request.haves))].map((oid) => graph.commit(oid))
  const queue = createCommitQueue()
  for (const tip of tips) {
    tip.marks |= HAS
    queue.push(tip)
  }
  const seen = new Set(tips)
  return {
    tips,
    ends,
    /** Mark what it has, as far back as `since` and a little more. */
    walk: (since: number): void => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (next.at < since - SLOP_MS) return
        if (ends.has(next.oid)) continue
        for (const oid of next.parents) {
          const parent = graph.commit(oid)
          parent.marks |= HAS
          if (seen.has(parent)) continue
          seen.add(parent)
          queue.push(parent)
        }
      }
    },
  }
}

/** From the wants back until everything left is the client's. Hidden is what holds the forgotten, and all behind it. */
function reachNew(
  graph: CommitGraph,
  wants: readonly GraphCommit[],
  has: { readonly tips: readonly GraphCommit[]; readonly ends: ReadonlySet<string> },
  isCut: (tree: string) => boolean,
): { reached: Set<GraphCommit>; hidden: GraphCommit[] } {
  const reached = new Set<GraphCommit>()
  const hidden: GraphCommit[] = []
  const queue = createCommitQueue()
  for (const tip of has.tips) queue.push(tip)
  for (const want of wants) {
    want.marks |= WANTED
    queue.push(want)
  }
  while (queue.hasWithout(HAS)) {
    const next = queue.pop()
    if (next === undefined) break
    const isTheirs = (next.marks & HAS) !== 0
    if (!isTheirs) reached.add(next)
    // what the client has only up to here it has as a root
    if (has.ends.has(next.oid)) continue
    for (const oid of next.parents) {
      const parent = graph.commit(oid)
      if (!isTheirs && isCut(parent.tree)) {
        hidden.push(parent)
        continue
      }
      const before = parent.marks
      parent.marks |= next.marks
      if (parent.marks !== before) queue.push(parent)
    }
  }
  for (const commit of reached) if ((commit.marks & HAS) !== 0) reached.delete(commit)
  return { reached, hidden }
}

const oldestOf = (commits: Iterable<GraphCommit>): number => {
  let oldest = Number.POSITIVE_INFINITY
  for (const { at } of commits) oldest = Math.min(oldest, at)
  return oldest
}

/** From the wants back as deep as is asked, through what the client has as well. */
function reachByDepth(
  graph: CommitGraph,
  wants: readonly GraphCommit[],
  { depth = Number.POSITIVE_INFINITY, relative = false, since, not = [], shallow }: FetchRequest,
  isCut: (tree: string) => boolean,
): Set<GraphCommit> {
  const ends = new Set(relative ? shallow : [])
  const excluded = ancestorsOf(graph, not)
  const best = new Map<GraphCommit, number>()
  const isOut = (commit: GraphCommit): boolean =>
    (since !== undefined && commit.at < since) || excluded.has(commit.oid) || isCut(commit.tree)
  let frontier = wants
    .filter((want) => !isOut(want) || isCut(want.tree))
    .map((commit) => ({ commit, left: relative ? Number.POSITIVE_INFINITY : depth }))
  while (frontier.length > 0) {
    const next: typeof frontier = []
    for (const { commit, left } of frontier) {
      if ((best.get(commit) ?? 0) >= left) continue
      best.set(commit, left)
      const below = ends.has(commit.oid) ? depth : left - 1
      if (below <= 0) continue
      for (const oid of commit.parents) {
        const parent = graph.commit(oid)
        if (!isOut(parent)) next.push({ commit: parent, left: below })
      }
    }
    frontier = next
  }
  return new Set(best.keys())
}

function ancestorsOf(graph: CommitGraph, tips: readonly string[]): Set<string> {
  const found = new Set<string>()
  const rest = [...tips]
  for (let oid = rest.pop(); oid !== undefined; oid = rest.pop()) {
    if (found.has(oid)) continue
    found.add(oid)
    rest.push(...graph.commit(oid).parents)
  }
  return found
}
