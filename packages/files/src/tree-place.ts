/** Put files of known ids into a tree, or take them out: nothing of their bytes is read or written. */
import type { Transaction } from '@csb/store'
import { readTree, writeTree } from './objects.ts'
import { FOLDER } from './tree.ts'
import type { Side } from './tree-diff.ts'
import { checkFresh } from './twins.ts'

type Placement = { readonly names: readonly string[]; readonly side: Side | null }

/**
 * @param tree object id of the root tree
 * @param placements path to what stands there afterwards, null for nothing; no path lies below a file
 * @returns id of the new root tree
 * @throws NOT_FOUND, OBJECT_DAMAGED; INVALID_INPUT where a new name is another one's twin
 */
export function placeFiles(
  tx: Transaction,
  home: string,
  tree: string,
  placements: ReadonlyMap<string, Side | null>,
): string {
  const list = [...placements].map(([path, side]) => ({ names: path.split('/'), side }))
  return placeIn(tx, home, { tree, above: '' }, list) ?? writeTree(tx, home, [])
}

type Folder = { readonly tree: string | null; readonly above: string }

/** Null where nothing is left: git keeps no empty folders. */
function placeIn(tx: Transaction, home: string, { tree, above }: Folder, list: readonly Placement[]): string | null {
  const entries = new Map((tree === null ? [] : readTree(tx, home, tree)).map((entry) => [entry.name, entry]))
  const fresh: string[] = []
  for (const [name, own] of Map.groupBy(list, ({ names }) => names[0] ?? '')) {
    const here = own.find(({ names }) => names.length === 1)
    const below = own
      .filter(({ names }) => names.length > 1)
      .map(({ names, side }) => ({ names: names.slice(1), side }))
    const before = entries.get(name)
    const folder = before?.mode === FOLDER ? before.oid : null
    const after = below.length === 0 ? folder : placeIn(tx, home, { tree: folder, above: `${above}${name}/` }, below)
    if (here !== undefined && here.side !== null) entries.set(name, { name, ...here.side })
    else if (after !== null) entries.set(name, { name, mode: FOLDER, oid: after })
    else if (here !== undefined || folder !== null) entries.delete(name)
    if (before === undefined && entries.has(name)) fresh.push(name)
  }
  checkFresh(entries.values(), fresh, above)
  return entries.size === 0 ? null : writeTree(tx, home, [...entries.values()])
}
