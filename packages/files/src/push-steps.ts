/**
 * What pushed commits change, file by file: for a push onto a projection, whose commits can not be taken as they are
 * because what they build on is not what is stored.
 * @clause L4.2
 */
import { fail } from '@csb/core'
import type { View } from '@csb/store'
import type { Change } from './edit.ts'
import { createHistory } from './history.ts'
import { readCommit } from './objects.ts'
import { diffTrees } from './tree-diff.ts'

/** One commit's changes; a branch is moved by these instead of to the commit. */
export type PushedStep = {
  readonly message: string
  readonly trailers: Readonly<Record<string, string>>
  /** blobs that come along, or are in what the commits build on */
  readonly changes: readonly Change[]
}

/** More commits than this become one step: all steps of a push are one transaction. */
const MOST_STEPS = 100

/**
 * The commit that a line of new commits stands on, along first parents.
 * @param view with what came
 * @param isNew for ids of new commits
 * @returns undefined where the line has no commit of before
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function groundOf(view: View, home: string, tip: string, isNew: (oid: string) => boolean): string | undefined {
  let at: string | undefined = tip
  while (at !== undefined && isNew(at)) at = readCommit(view, home, at).parents[0]
  return at
}

/**
 * The steps from a commit to the tip of new ones: each commit of the line of first parents, or all in one where that
 * line does not lead there, as after a merge of what others wrote meanwhile.
 * @param view with what came
 * @param on commit behind the tip
 * @param isNew for ids of new commits
 * @throws CONFLICT where `on` is not behind the tip; NOT_FOUND, OBJECT_DAMAGED
 */
export function stepsOf(
  view: View,
  home: string,
  { on, tip, isNew }: { readonly on: string; readonly tip: string; readonly isNew: (oid: string) => boolean },
): PushedStep[] {
  if (tip === on) return []
  const line: string[] = []
  for (let at: string | undefined = tip; at !== undefined && at !== on && isNew(at);) {
    line.push(at)
    at = readCommit(view, home, at).parents[0]
    if (at === on && line.length <= MOST_STEPS)
      return line.toReversed().map((oid, i, all) => stepOf(view, home, all[i - 1] ?? on, oid))
  }
  if (!createHistory(view, home, [tip])(on))
    fail('CONFLICT', { reason: 'not built on what the branch holds', commit: tip })
  return [stepOf(view, home, on, tip)]
}

function stepOf(view: View, home: string, from: string, to: string): PushedStep {
  const { tree, message, trailers } = readCommit(view, home, to)
  const changes = diffTrees(view, home, readCommit(view, home, from).tree, tree)
  return { message, trailers, changes: changes.map(({ path, after }) => ({ path, bytes: after })) }
}
