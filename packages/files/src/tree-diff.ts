/** What differs between two trees, file by file. Folders that are alike are not read. */
import type { View } from '@csb/store'
import { readTree } from './objects.ts'
import { FOLDER, modeOf, type Mode, type TreeEntry } from './tree.ts'

/** A file as a tree has it, or a submodule. */
export type Side = { readonly mode: Mode; readonly oid: string }

/** A file of one path, before and after; null where there is none. */
export type TreeChange = { readonly path: string; readonly before: Side | null; readonly after: Side | null }

/** Order of paths as everything signed has it: by their UTF-8 bytes. */
export const comparePaths = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

export const isSameSide = (a: Side | null, b: Side | null): boolean =>
  a === null || b === null ? a === b : a.oid === b.oid && modeOf(a.mode) === modeOf(b.mode)

/**
 * @param before object id of a root tree; null: an empty one
 * @param after the same
 * @returns changed files in byte order of their paths; a file that became a folder is gone, and others are new
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function diffTrees(view: View, home: string, before: string | null, after: string | null): TreeChange[] {
  const found: TreeChange[] = []
  const compare = (old: string | null, now: string | null, above: string): void => {
    if (old === now) return
    const left = entriesOf(view, home, old)
    const right = entriesOf(view, home, now)
    for (const name of new Set([...left.keys(), ...right.keys()])) {
      const a = left.get(name)
      const b = right.get(name)
      const path = above + name
      const change = { path, before: fileOf(a), after: fileOf(b) }
      if (!isSameSide(change.before, change.after)) found.push(change)
      compare(folderOf(a), folderOf(b), `${path}/`)
    }
  }
  compare(before, after, '')
  return found.sort((a, b) => comparePaths(a.path, b.path))
}

const entriesOf = (view: View, home: string, tree: string | null): Map<string, TreeEntry> =>
  new Map((tree === null ? [] : readTree(view, home, tree)).map((entry) => [entry.name, entry]))

const fileOf = (entry: TreeEntry | undefined): Side | null =>
  entry === undefined || entry.mode === FOLDER ? null : { mode: entry.mode, oid: entry.oid }

const folderOf = (entry: TreeEntry | undefined): string | null => (entry?.mode === FOLDER ? entry.oid : null)
