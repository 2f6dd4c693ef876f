/**
 * Both sides of what a merge changes, for a person to read: what is put together is stored nowhere before somebody has
 * agreed, so it is put together again beside the store. Changes nothing, and notes no reads.
 * @clause L1.7
 */
import { LIMITS, isNodeError, utf8 } from '@csb/core'
import type { View } from '@csb/store'
import { computeMerge, type MergeBranches } from './merge.ts'
import { objectSize, readBlob, readCommit } from './objects.ts'
import { getRef } from './refs.ts'
import { createScratch } from './scratch.ts'
import { FOLDER, SUBMODULE, submoduleText, submoduleWords } from './tree.ts'
import { entryAt } from './walk.ts'

/** What stands at a path on one side. */
export type SideText = {
  /** those whose digest a manifest names */
  readonly named: Uint8Array
  /** those that a person reads: other ones of a submodule, a line with its commit */
  readonly shown: Uint8Array
}

/** Undefined where nothing is there, or a folder, or it is too large to be read, or was forgotten. */
export type SideReader = (path: string) => SideText | undefined

/**
 * Readers of the files before and after a merge.
 * @param told `base`: head of `into` that the merge was told with; `tree`: its result
 */
export function mergeSides(
  view: View,
  branches: MergeBranches,
  told: { readonly base: string; readonly tree: string },
): { readonly before: SideReader; readonly after: SideReader } {
  const scratch = createScratch(view)
  // one that can not be merged any more still has a side that was there before
  quietly(() => computeMerge(scratch, branches))
  const { home } = branches
  const base = quietly(() => readCommit(view, home, told.base).tree)
  return {
    before: (path) => (base === undefined ? undefined : fileIn(view, home, base, path)),
    after: (path) => fileIn(scratch, home, told.tree, path),
  }
}

/** Reader of the files that a branch holds now. */
export function branchSide(view: View, home: string, branch: string): SideReader {
  const commit = getRef(view, home, branch)?.commit
  const tree = commit === undefined ? undefined : quietly(() => readCommit(view, home, commit).tree)
  return (path) => (tree === undefined ? undefined : fileIn(view, home, tree, path))
}

function fileIn(view: View, home: string, tree: string, path: string): SideText | undefined {
  return quietly(() => {
    const entry = entryAt(view, home, tree, path)
    if (entry === undefined || entry.mode === FOLDER) return undefined
    const { mode, oid } = entry
    if (mode === SUBMODULE) return { named: utf8(submoduleText(oid)), shown: utf8(submoduleWords(oid)) }
    if (objectSize(view, home, oid) > LIMITS.gateTextBytes) return undefined
    const bytes = readBlob(view, home, oid)
    return { named: bytes, shown: bytes }
  })
}

/** A text that can not be shown is no reason to show nothing. */
function quietly<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isNodeError(error)) return undefined
    throw error
  }
}
