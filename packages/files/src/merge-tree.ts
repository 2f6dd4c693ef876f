/**
 * The tree that comes of a merge: every file resolved by itself, then put where its name is free. Where two files
 * want one name, or a file the name of a folder, one of them is named after the branch it comes from.
 */
import { fail, formatLabel, joinLabels, type Label } from '@csb/core'
import type { Transaction } from '@csb/store'
import { LABELS_PATH } from './labels.ts'
import { itemsOf, resolveItem, type ConflictKind, type MergeItem, type Wanted } from './merge-items.ts'
import { mergeLabels, type MergeLabels } from './merge-labels.ts'
import { isErased } from './objects.ts'
import { checkPlaced, isWatched } from './placed-check.ts'
import { comparePaths, isSameSide, type Side } from './tree-diff.ts'
import { placeFiles } from './tree-place.ts'
import { FOLDER, isBlob } from './tree.ts'
import { entryAt } from './walk.ts'

/** Something that a person has to look at: which file it was about, and the files that were kept. */
export type Conflict = { readonly kind: ConflictKind; readonly path: string; readonly kept: readonly string[] }

export type MergeTrees = {
  /** object ids of root trees; base null: the lines of history have nothing in common */
  readonly base: string | null
  readonly ours: string
  readonly theirs: string
  /** names of the two branches, for files that are kept beside others */
  readonly from: string
  readonly into: string
}

type Placed = { readonly wanted: Wanted; readonly label: Label }
type Moved = Placed & { readonly kind: ConflictKind }

/** Most file systems take no longer name. In UTF-8 bytes. */
const NAME_BYTES = 255

/**
 * Merge three trees.
 * @returns object id of the root tree, and conflicts in byte order of their paths
 * @throws FORGOTTEN where the merge would bring back what was forgotten; INVALID_INPUT, TOO_LARGE where a file does
 *   harm at its new place; OBJECT_DAMAGED
 */
export function mergeTrees(
  tx: Transaction,
  home: string,
  input: MergeTrees,
): { readonly tree: string; readonly conflicts: readonly Conflict[] } {
  const labels = mergeLabels(tx, home, input)
  const placed = new Map<string, Placed>()
  const moved: Moved[] = []
  const conflicts: Conflict[] = []
  const open: (Pick<Conflict, 'kind' | 'path'> & { readonly wanted: readonly Wanted[] })[] = []
  const edits = new Map<string, Side | null>()
  for (const item of itemsOf(tx, home, input)) {
    if (item.ours !== null) edits.set(item.ours.path, null)
    const { wanted, conflict } = resolveItem(tx, home, item)
    for (const one of wanted) {
      const file = { wanted: one, label: labelOf(labels, item, one) }
      if (one.isConflict) moved.push({ ...file, kind: conflict ?? 'content' })
      else put(placed, moved, file)
    }
    const isNamed = conflict !== null && !wanted.some(({ isConflict }) => isConflict)
    if (isNamed) open.push({ kind: conflict, path: originOf(item), wanted })
  }
  moved.push(...takeFoldersApart(placed))
  for (const { kind, ...file } of moved.sort((a, b) => comparePaths(a.wanted.path, b.wanted.path))) {
    const { path, isTheirs } = file.wanted
    const name = freeName(path, isTheirs ? input.from : input.into, (next) =>
      isTaken(tx, home, input, placed, edits, next),
    )
    placed.set(name, file)
    conflicts.push({ kind, path, kept: placed.has(path) ? [path, name] : [name] })
  }
  // under which name each was kept is known only now: one may have given way to a folder or to another file
  const names = new Map([...placed].map(([path, { wanted }]) => [wanted, path]))
  for (const { kind, path, wanted } of open) {
    conflicts.push({ kind, path, kept: wanted.map((one) => names.get(one) ?? one.path) })
  }
  const required = new Map<string, Label>()
  for (const [path, { wanted, label }] of placed) {
    refuseForgotten(tx, home, input.ours, path, wanted.side)
    // one side moves a file, the other writes what does harm at its new place
    if (isWatched(wanted.side, path) && !isThere(tx, home, input, path, wanted.side))
      checkPlaced(tx, home, wanted.side, path)
    edits.set(path, wanted.side)
    required.set(path, label)
  }
  edits.set(LABELS_PATH, labels.write(required))
  conflicts.sort((a, b) => comparePaths(a.path, b.path) || (a.kind < b.kind ? -1 : 1))
  return { tree: placeFiles(tx, home, input.ours, edits), conflicts }
}

const originOf = ({ base, ours, theirs }: MergeItem): string => (base ?? ours ?? theirs)?.path ?? ''

/**
 * What a file of the result bears at least: the labels of the files it is made of. The other branch counts where its
 * bytes do, and where it changed the label; a file it renamed keeps the label it has in the branch merged into.
 */
function labelOf(labels: MergeLabels, { base, ours, theirs }: MergeItem, { side }: Wanted): Label {
  const own = ours ?? base
  const parts = own === null ? [] : [labels.ours(own.path)]
  if (theirs === null) return joinLabels(parts)
  const label = labels.theirs(theirs.path)
  const isUsed = ours === null || !isSameSide(side, ours.side)
  const isChanged = base === null || formatLabel(labels.base(base.path)) !== formatLabel(label)
  return joinLabels(isUsed || isChanged ? [...parts, label] : parts)
}

/** The other branch's file gives way; of two equal files one is enough. */
function put(placed: Map<string, Placed>, moved: Moved[], file: Placed): void {
  const { path } = file.wanted
  const other = placed.get(path)
  if (other === undefined) {
    placed.set(path, file)
  } else if (isSameSide(other.wanted.side, file.wanted.side)) {
    placed.set(path, { ...other, label: joinLabels([other.label, file.label]) })
  } else {
    const isFirst = file.wanted.isTheirs || !other.wanted.isTheirs
    placed.set(path, isFirst ? other : file)
    moved.push({ ...(isFirst ? file : other), kind: 'path' })
  }
}

/** A file whose path is also a folder of other files. */
function takeFoldersApart(placed: Map<string, Placed>): Moved[] {
  const found: Moved[] = []
  for (const folder of new Set([...placed.keys()].flatMap(foldersOf))) {
    const file = placed.get(folder)
    if (file === undefined) continue
    placed.delete(folder)
    found.push({ ...file, kind: 'path' })
  }
  return found
}

/** Only what one of the two sides has can stand in a way: a file that neither touched is in both. */
function isTaken(
  tx: Transaction,
  home: string,
  { ours }: MergeTrees,
  placed: ReadonlyMap<string, Placed>,
  edits: ReadonlyMap<string, Side | null>,
  path: string,
): boolean {
  if (placed.has(path) || [...placed.keys()].some((other) => other.startsWith(`${path}/`))) return true
  const entry = entryAt(tx, home, ours, path)
  return entry !== undefined && (entry.mode === FOLDER || !edits.has(path))
}

/** `notes/plan.md` from branch `runs/7` is `notes/plan (from runs-7).md`. */
function freeName(path: string, branch: string, isUsed: (path: string) => boolean): string {
  const slash = path.lastIndexOf('/') + 1
  const name = path.slice(slash)
  const dot = name.lastIndexOf('.')
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  for (let count = 1; ; count++) {
    const mark = ` (from ${branch.replaceAll('/', '-')}${count === 1 ? '' : ` ${count}`})${extension}`
    const next = path.slice(0, slash) + cut(stem, NAME_BYTES - Buffer.byteLength(mark)) + mark
    if (!isUsed(next)) return next
  }
}

/** As much of a name as fits, by whole characters. */
function cut(text: string, maxBytes: number): string {
  let kept = ''
  let size = 0
  for (const char of text) {
    size += Buffer.byteLength(char)
    if (size > maxBytes) break
    kept += char
  }
  return kept
}

function foldersOf(path: string): string[] {
  const names = path.split('/')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('/'))
}

/** @throws FORGOTTEN */
function refuseForgotten(tx: Transaction, home: string, ours: string, path: string, side: Side): void {
  const isForgotten = (isBlob(side) && isErased(tx, home, side.oid)) || isErased(tx, home, `/${path}`)
  if (isForgotten && entryAt(tx, home, ours, path)?.oid !== side.oid) fail('FORGOTTEN', { home, path })
}

/** True where one of the sides has exactly this in that place. */
const isThere = (tx: Transaction, home: string, { ours, theirs }: MergeTrees, path: string, side: Side): boolean =>
  [ours, theirs].some((tree) => isSameSide(entryAt(tx, home, tree, path) ?? null, side))
