/**
 * Change files of a tree. Only the trees on the changed paths are written anew; all others keep their ids
 * and are not even read.
 */
import { fail } from '@csb/core'
import type { Transaction } from '@csb/store'
import { checkGitFile, gitFileOf } from './git-files.ts'
import { isErased, readTree, writeBlob, writeTree } from './objects.ts'
import { kindAt } from './stored.ts'
import type { Side } from './tree-diff.ts'
import { EXECUTABLE, FILE, FOLDER, SUBMODULE, type Mode, type TreeEntry } from './tree.ts'
import { checkFresh } from './twins.ts'

/** Write a file: its bytes, or a blob that is stored already and its mode. With null: delete it. */
export type Change = { readonly path: string; readonly bytes: Uint8Array | Side | null }

/** What became of a path: object ids before and after, null where there is none. */
export type Changed = { readonly path: string; readonly before: string | null; readonly after: string | null }

type Node = {
  readonly path: string
  readonly children: Map<string, Node>
  /** what happens to a file of this very path */
  change?: Change['bytes']
  /** some path below is written, not only deleted */
  writesBelow: boolean
}

/**
 * @param tree object id of the root tree
 * @param changes valid paths
 * @returns id of the new root tree, and what differs, in path order
 * @throws INVALID_INPUT where a path is changed twice, a file would stand where a folder is or the reverse, or a new name
 *   is another one's twin; NOT_FOUND, FORGOTTEN where a blob that should be stored is not
 */
export function editTree(
  tx: Transaction,
  home: string,
  tree: string,
  changes: readonly Change[],
): { tree: string; changed: Changed[] } {
  const changed: Changed[] = []
  const edited = editFolder(tx, home, tree, planOf(changes), changed) ?? writeTree(tx, home, [])
  changed.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { tree: edited, changed }
}

function planOf(changes: readonly Change[]): Node {
  const root: Node = { path: '', children: new Map(), writesBelow: false }
  for (const { path, bytes } of changes) {
    let node = root
    const segments = path.split('/')
    for (const [depth, name] of segments.entries()) {
      if (bytes !== null) node.writesBelow = true
      const child = node.children.get(name) ?? {
        path: segments.slice(0, depth + 1).join('/'),
        children: new Map(),
        writesBelow: false,
      }
      node.children.set(name, child)
      node = child
    }
    if (node.change !== undefined) fail('INVALID_INPUT', { reason: 'a path is changed twice', path })
    node.change = bytes
  }
  return root
}

/** Null where nothing is left: git keeps no empty folders. */
function editFolder(tx: Transaction, home: string, tree: string | null, plan: Node, changed: Changed[]): string | null {
  const entries = new Map((tree === null ? [] : readTree(tx, home, tree)).map((entry) => [entry.name, entry]))
  const fresh: string[] = []
  let touched = false
  for (const [name, node] of plan.children) {
    const before = entries.get(name)
    const after = editEntry(tx, home, name, before, node, changed)
    if (after?.oid === before?.oid && after?.mode === before?.mode) continue
    touched = true
    if (after === undefined) entries.delete(name)
    else entries.set(name, after)
    if (before === undefined) fresh.push(name)
  }
  checkFresh(entries.values(), fresh, plan.path === '' ? '' : `${plan.path}/`)
  if (entries.size === 0) return null
  return touched || tree === null ? writeTree(tx, home, [...entries.values()]) : tree
}

function editEntry(
  tx: Transaction,
  home: string,
  name: string,
  before: TreeEntry | undefined,
  node: Node,
  changed: Changed[],
): TreeEntry | undefined {
  const { path, change } = node
  const folder = before?.mode === FOLDER ? before : undefined
  const file = before?.mode === FOLDER ? undefined : before
  if (folder !== undefined && change === null) fail('INVALID_INPUT', { reason: 'a folder, not a file', path })
  if (file !== undefined && change !== null && node.writesBelow)
    fail('INVALID_INPUT', { reason: 'a file, not a folder', path })
  const folderOid = folder?.oid ?? null
  const below = node.children.size === 0 ? folderOid : editFolder(tx, home, folderOid, node, changed)
  const kept = below === null ? undefined : ({ mode: FOLDER, name, oid: below } as const)
  if (change === undefined) return kept ?? file
  if (change === null) {
    if (file !== undefined) changed.push({ path, before: file.oid, after: null })
    return kept
  }
  if (kept !== undefined) fail('INVALID_INPUT', { reason: 'a folder, not a file', path })
  const own = gitFileOf(name)
  if (own !== undefined && change instanceof Uint8Array) checkGitFile(own, change, path)
  const { mode, oid } =
    change instanceof Uint8Array
      ? { mode: modeAfter(file), oid: writeBlob(tx, home, change) }
      : storedFile(tx, home, change)
  if (oid !== file?.oid) changed.push({ path, before: file?.oid ?? null, after: oid })
  return { mode, name, oid }
}

/** Bytes that are written are no link and no submodule, whatever stood there. */
const modeAfter = (file: TreeEntry | undefined): Mode => (file?.mode === EXECUTABLE ? EXECUTABLE : FILE)

function storedFile(tx: Transaction, home: string, file: Side): Side {
  if (file.mode === SUBMODULE) return file
  if (isErased(tx, home, file.oid)) fail('FORGOTTEN', { home, oid: file.oid })
  if (kindAt(tx, home, file.oid) !== 'blob') fail('NOT_FOUND', { home, oid: file.oid, wanted: 'blob' })
  return file
}
