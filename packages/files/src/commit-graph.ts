/** Commits as a walk needs them: parents, tree, time, each read once; and the newest first of a changing lot. */
import type { View } from '@csb/store'
import { readCommit } from './objects.ts'

export type GraphCommit = {
  readonly oid: string
  readonly tree: string
  readonly parents: readonly string[]
  /** ms since epoch */
  readonly at: number
  /** what a walk has learnt of it; bits of the walk's own */
  marks: number
}

export type CommitGraph = { commit(oid: string): GraphCommit }

/** @throws NOT_FOUND, OBJECT_DAMAGED when a commit is asked for */
export function createCommitGraph(view: View, home: string): CommitGraph {
  const known = new Map<string, GraphCommit>()
  return {
    commit: (oid) => {
      const found = known.get(oid)
      if (found !== undefined) return found
      const { tree, parents, committer } = readCommit(view, home, oid)
      const read = { oid, tree, parents, at: committer.at, marks: 0 }
      known.set(oid, read)
      return read
    },
  }
}

export type CommitQueue = {
  readonly size: number
  push(commit: GraphCommit): void
  /** the newest, or undefined */
  pop(): GraphCommit | undefined
  /** True where one of them has none of these marks. */
  hasWithout(marks: number): boolean
}

/** A heap by time. */
export function createCommitQueue(): CommitQueue {
  const heap: GraphCommit[] = []
  const timeAt = (at: number): number => heap[at]?.at ?? Number.NEGATIVE_INFINITY
  const swap = (a: number, b: number): void => {
    const [x, y] = [heap[a], heap[b]]
    if (x === undefined || y === undefined) return
    heap[a] = y
    heap[b] = x
  }
  return {
    get size() {
      return heap.length
    },
    push: (commit) => {
      heap.push(commit)
      for (let at = heap.length - 1; at > 0;) {
        const above = (at - 1) >> 1
        if (timeAt(above) >= timeAt(at)) return
        swap(above, at)
        at = above
      }
    },
    pop: () => {
      const top = heap[0]
      const last = heap.pop()
      if (top === undefined || last === undefined || heap.length === 0) return top
      heap[0] = last
      for (let at = 0; ;) {
        const left = 2 * at + 1
        const larger = timeAt(left + 1) > timeAt(left) ? left + 1 : left
        if (timeAt(larger) <= timeAt(at)) return top
        swap(at, larger)
        at = larger
      }
    },
    hasWithout: (marks) => heap.some((commit) => (commit.marks & marks) === 0),
  }
}
