/**
 * All objects that heads lead to, each once, in one order on every node: what an object needs comes before it. Of
 * what was forgotten nothing comes.
 * @clause L0.4
 */
import { LIMITS, fail } from '@csb/core'
import type { View } from '@csb/store'
import type { ObjectKind } from './entry.ts'
import { isErased, readCommit, readTree } from './objects.ts'
import { FOLDER, isBlob } from './tree.ts'

export type Walked = { readonly kind: ObjectKind; readonly oid: string }

/** Where a walk begins: ids of commits, of objects of kind tag, inner ones first, and of blobs. Their order tells what comes when. */
export type WalkRoots = {
  readonly commits: readonly string[]
  readonly tags: readonly string[]
  readonly blobs: readonly string[]
}

/**
 * @param isForgotten which blobs do not come; default: those that are forgotten here
 * @throws NOT_FOUND, OBJECT_DAMAGED; TOO_LARGE above LIMITS.archiveObjects
 */
export function* walkObjects(
  view: View,
  home: string,
  { commits, tags, blobs }: WalkRoots,
  isForgotten = (oid: string): boolean => isErased(view, home, oid),
): Generator<Walked> {
  const seen = createOidSet()
  for (const oid of commitsOf(view, home, commits, seen)) {
    yield* treeObjects({ view, home, seen, isForgotten }, readCommit(view, home, oid).tree)
    yield { kind: 'commit', oid }
  }
  for (const oid of tags) if (seen.add(oid)) yield { kind: 'tag', oid }
  for (const oid of blobs) if (!isForgotten(oid) && seen.add(oid)) yield { kind: 'blob', oid }
}

/** Parents before children. */
function* commitsOf(view: View, home: string, heads: readonly string[], seen: OidSet): Generator<string> {
  for (const head of heads) {
    const stack: { readonly oid: string; readonly parents: string[] }[] = []
    const enter = (oid: string): void => {
      if (seen.add(oid)) stack.push({ oid, parents: readCommit(view, home, oid).parents.toReversed() })
    }
    enter(head)
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const parent = top.parents.pop()
      if (parent !== undefined) enter(parent)
      else {
        stack.pop()
        yield top.oid
      }
    }
  }
}

/** Entries before the folder that holds them, in its order. */
function* treeObjects({ view, home, seen, isForgotten }: Desk, root: string): Generator<Walked> {
  if (!seen.add(root)) return
  const stack = [{ oid: root, entries: readTree(view, home, root).toReversed() }]
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const entry = top.entries.pop()
    if (entry === undefined) {
      stack.pop()
      yield { kind: 'tree', oid: top.oid }
    } else if (entry.mode === FOLDER) {
      if (seen.add(entry.oid)) stack.push({ oid: entry.oid, entries: readTree(view, home, entry.oid).toReversed() })
    } else if (isBlob(entry) && !isForgotten(entry.oid) && seen.add(entry.oid)) {
      yield { kind: 'blob', oid: entry.oid }
    }
  }
}

type Desk = {
  readonly view: View
  readonly home: string
  readonly seen: OidSet
  readonly isForgotten: (oid: string) => boolean
}

type OidSet = { /** @returns false where it was there */ add(oid: string): boolean }

/** Ids as half as many characters of one byte each. */
function createOidSet(): OidSet {
  const seen = new Set<string>()
  return {
    add: (oid) => {
      const size = seen.size
      if (size >= LIMITS.archiveObjects) fail('TOO_LARGE', { maxObjects: LIMITS.archiveObjects })
      return seen.add(packOid(oid)).size > size
    },
  }
}

/** An id as a string of its bytes, for large sets. */
export const packOid = (oid: string): string => Buffer.from(oid, 'hex').toString('latin1')
