/**
 * Branches: names for commits, moved by compare-and-swap. A protected one does not move here at all.
 * @clause L0.1 L0.2
 */
import { fail } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { hashOf, isOid, readCommit } from './objects.ts'
import { validateBranch } from './paths.ts'

export type Ref = {
  /** object id of the head */
  readonly commit: string
  /** moves only by an approved merge */
  readonly protected: boolean
  /** ms since epoch */
  readonly updatedAt: number
}

export type MoveRef = {
  /** the head the caller saw; null: the branch must not exist yet */
  readonly expect: string | null
  readonly to: string
  /** ms since epoch */
  readonly now: number
}

export const getRef = (view: View, home: string, branch: string): Ref | undefined =>
  view.getJson<Ref>(key('ref', home, branch))

/** All branches of a home, by name. @throws NOT_FOUND without the home, OBJECT_DAMAGED */
export async function listRefs(view: View, home: string): Promise<({ branch: string } & Ref)[]> {
  hashOf(view, home)
  const start = prefix('ref', home)
  const refs: ({ branch: string } & Ref)[] = []
  for await (const [k] of view.range({ prefix: start })) {
    const branch = k.slice(start.length)
    refs.push({ branch, ...headOf(view, home, branch) })
  }
  return refs
}

/**
 * Move a branch, or make one.
 * @throws PROTECTED, CONFLICT with the head that is there, NOT_FOUND where `to` is no commit of the home, INVALID_INPUT
 * @clause L0.2
 */
export function moveRef(tx: Transaction, home: string, branch: string, { expect, to, now }: MoveRef): Ref {
  validateBranch(branch)
  const ref = getRef(tx, home, branch)
  if (ref?.protected === true) fail('PROTECTED', { home, branch })
  const head = ref?.commit ?? null
  if (head !== expect) fail('CONFLICT', { home, branch, expect, head })
  readCommit(tx, home, to)
  const moved: Ref = { commit: to, protected: false, updatedAt: now }
  tx.putJson(key('ref', home, branch), moved)
  return moved
}

/** Stage a branch as a new home has it. For {@link createHome} only: it asks nothing. */
export function startRef(tx: Transaction, home: string, branch: string, ref: Ref): void {
  tx.putJson(key('ref', home, branch), ref)
}

/**
 * The commit that a branch name or a commit id stands for.
 * @throws NOT_FOUND
 */
export function resolveCommit(view: View, home: string, at: string): string {
  if (!isOid(at)) return headOf(view, home, at).commit
  readCommit(view, home, at)
  return at
}

const headOf = (view: View, home: string, branch: string): Ref =>
  getRef(view, home, branch) ?? fail('NOT_FOUND', { home, branch: branch.slice(0, 200) })
