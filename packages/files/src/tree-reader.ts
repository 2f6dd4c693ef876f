/** Trees as they are decoded, kept for whoever asks for the same ones again and again. */
import type { View } from '@csb/store'
import { readTree } from './objects.ts'
import { FOLDER, type TreeEntry } from './tree.ts'

/** Entries that are kept: some 20 MB. */
const KEPT_ENTRIES = 100_000

export type TreeReader = {
  /** as {@link readTree} has them */
  entriesOf(tree: string): readonly TreeEntry[]
  /** The entry at a path of a root tree, or undefined. */
  entryAt(tree: string, path: string): TreeEntry | undefined
}

/** What is kept holds as long as the view does: an id stands for the same entries always. @throws as {@link readTree} */
export function createTreeReader(view: View, home: string): TreeReader {
  const kept = new Map<string, { readonly entries: readonly TreeEntry[]; readonly names: Map<string, TreeEntry> }>()
  let count = 0
  const get = (oid: string) => {
    const known = kept.get(oid)
    if (known !== undefined) return known
    const entries = readTree(view, home, oid)
    const tree = { entries, names: new Map(entries.map((entry) => [entry.name, entry])) }
    if (count > KEPT_ENTRIES) {
      kept.clear()
      count = 0
    }
    kept.set(oid, tree)
    count += entries.length
    return tree
  }
  return {
    entriesOf: (tree) => get(tree).entries,
    entryAt: (tree, path) => {
      let at: TreeEntry = { mode: FOLDER, name: '', oid: tree }
      for (const name of path.split('/')) {
        const next = at.mode === FOLDER ? get(at.oid).names.get(name) : undefined
        if (next === undefined) return undefined
        at = next
      }
      return at
    },
  }
}
