/**
 * Snapshots: a name for a commit that stays. It costs one row. Nothing moves or removes one: there is no function
 * that could.
 * @clause L1.4
 */
import { fail } from '@csb/core'
import type { Transaction } from '@csb/store'
import { validateBranch } from './paths.ts'
import { getRef, marksIn, resolveCommit, snapshotRef, startRef } from './refs.ts'

export type CreateSnapshot = {
  /** becomes the branch `snapshots/<name>` */
  readonly name: string
  /** branch or commit */
  readonly of: string
  /** ms since epoch */
  readonly now: number
  /** who gives it its name has read from outside */
  readonly outside?: boolean
}

/**
 * Keep what a branch holds now under a name.
 * @throws CONFLICT where the name is taken, NOT_FOUND, INVALID_INPUT
 * @clause L1.4
 */
export function createSnapshot(
  tx: Transaction,
  home: string,
  { name, of, now, outside = false }: CreateSnapshot,
): { readonly branch: string; readonly commit: string } {
  const branch = validateBranch(snapshotRef(name))
  const commit = resolveCommit(tx, home, of)
  const taken = getRef(tx, home, branch)
  if (taken !== undefined) fail('CONFLICT', { home, branch, head: taken.commit })
  const marks = marksIn(getRef(tx, home, of))
  startRef(tx, home, branch, { commit, protected: true, updatedAt: now, ...(outside ? { outside } : {}), ...marks })
  return { branch, commit }
}
