/**
 * What a reader sees of a tree: files that it reaches and whose label its clearance covers, under their own ids; folders
 * that hold some;
 * of the labels those of paths it may know. What was forgotten is a fixed text. Nothing else is in it: no name, no id
 * and no size of what is hidden.
 *
 * A pure function of the tree, the reader's sight, the labels in force and what was forgotten.
 * @clause L4.2
 */
import { dominates, isNodeError, sha256Hex, utf8, type Label } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { LABELS_PATH, changeLabels, labelsOf, readLabels, type LabelReader } from './labels.ts'
import { isErased, writeBlob, writeTree } from './objects.ts'
import { isReserved, validatePath } from './paths.ts'
import type { MemoWriter } from './projection-memo.ts'
import { leadsOn, reachesPath, seesEverything, type Sight } from './sight.ts'
import { FILE, FOLDER, blobOf, isBlob, type TreeEntry } from './tree.ts'
import { createTreeReader } from './tree-reader.ts'

/** A file of some tree; `oid` is null where it is only named, `label` is what the tree says. */
export type RuledFile = {
  readonly home: string
  readonly path: string
  readonly oid: string | null
  readonly label: Label
}

/** The label in force for a file: rooms above know more than the tree. Never lower than what the tree says. */
export type LabelRule = (view: View, file: RuledFile) => Label

export type Projection = { readonly home: string; readonly clearance: Sight; readonly labelOf: LabelRule }

export type TreeProjector = {
  /** @returns id of the tree that is seen, null where nothing is */
  project(tree: string): string | null
  /** @param oid null: the path is only named */
  sees(tree: string, path: string, oid: string | null): boolean
  /** the same by labels alone, for a folder on the way */
  bears(tree: string, path: string): boolean
  /** true where `.csb/labels.json` of both trees differ in nothing that is hidden */
  seesLabelChange(before: string | null, after: string): boolean
  /** names in a folder of a tree of which nothing is seen; the folder need not be there */
  hiddenNames(tree: string, folder: string): string[]
  /** paths of hidden labels of a tree, and the names in them of which nothing is seen */
  hiddenLabelNames(tree: string): string[]
}

/** What stands where the bytes were forgotten. */
export const FORGOTTEN_TEXT = utf8('This was forgotten.\n')

const [RESERVED_FOLDER, LABELS_NAME] = LABELS_PATH.split('/') as [string, string]

/** What a file of labels says; undefined where it can not be read. */
type LabelFile = ReadonlyMap<string, unknown> | undefined

type Context = { readonly tree: string; readonly labels: string; readonly read: LabelReader }

export function createTreeProjector(tx: Transaction, projection: Projection, memo: MemoWriter): TreeProjector {
  const { home, clearance, labelOf } = projection
  const isFull = seesEverything(clearance)
  const { entriesOf, entryAt } = createTreeReader(tx, home)
  const contexts = new Map<string, Context>()
  const readers = new Map<string, LabelReader>()
  const files = new Map<string, LabelFile>()
  const known = new Map<string, LabelFile>()
  const roots = new Map<string, string | null>()

  const contextOf = (tree: string): Context => {
    const found = contexts.get(tree)
    if (found !== undefined) return found
    const labels = entryAt(tree, LABELS_PATH)?.oid ?? ''
    const read = readers.get(labels) ?? labelsOf(tx, home, tree)
    readers.set(labels, read)
    const context = { tree, labels, read }
    contexts.set(tree, context)
    return context
  }

  const covered = ({ read }: Context, path: string, oid: string | null): boolean =>
    isFull || dominates(clearance, labelOf(tx, { home, path, oid, label: read(path) }))

  const seesAt = (context: Context, path: string, oid: string | null): boolean =>
    isFull || (!isReserved(path) && reachesPath(clearance, path) && covered(context, path, oid))

  const labelsIn = (context: Context): LabelFile => {
    const found = files.has(context.labels) ? files.get(context.labels) : readLabels(tx, home, context.tree)
    files.set(context.labels, found)
    return found
  }

  const labelKeys = (tree: string): LabelFile => {
    if (known.has(tree)) return known.get(tree)
    const context = contextOf(tree)
    const isKnown = ([path]: [string, unknown]) => {
      const entry = isPath(path) ? entryAt(tree, path) : undefined
      return isPath(path) && seesAt(context, path, entry === undefined ? null : blobOf(entry))
    }
    const labels = labelsIn(context)
    const seen = labels === undefined ? undefined : new Map([...labels].filter(isKnown))
    known.set(tree, seen)
    return seen
  }

  const projectLabels = (context: Context, entry: TreeEntry): string | null => {
    const all = labelsIn(context)
    const seen = labelKeys(context.tree)
    if (all === undefined || seen === undefined) return null
    if (all.size === seen.size) return entry.oid
    const bytes = changeLabels(seen, [])
    return bytes === null ? null : writeBlob(tx, home, bytes)
  }

  const projectReserved = (context: Context, folder: TreeEntry): string | null => {
    if (folder.name !== RESERVED_FOLDER || folder.mode !== FOLDER) return null
    const entry = entriesOf(folder.oid).find(({ name }) => name === LABELS_NAME)
    if (entry === undefined || entry.mode === FOLDER) return null
    const oid = projectLabels(context, entry)
    return oid === null ? null : writeTree(tx, home, [{ mode: FILE, name: LABELS_NAME, oid }])
  }

  const projectEntry = (context: Context, entry: TreeEntry, above: string): TreeEntry | undefined => {
    const path = above + entry.name
    if (!isFull && above === '' && isReserved(path)) {
      const oid = projectReserved(context, entry)
      return oid === null ? undefined : { ...entry, oid }
    }
    if (entry.mode === FOLDER) {
      const oid = projectFolder(context, entry.oid, `${path}/`)
      return oid === null ? undefined : { ...entry, oid }
    }
    if (!seesAt(context, path, blobOf(entry))) return undefined
    return isBlob(entry) && isErased(tx, home, entry.oid)
      ? { mode: FILE, name: entry.name, oid: writeBlob(tx, home, FORGOTTEN_TEXT) }
      : entry
  }

  const projectFolder = (context: Context, tree: string, above: string): string | null => {
    const place = sha256Hex(`${context.labels}\0${above}\0${tree}`)
    if (!isFull && above !== '' && !leadsOn(clearance, above.slice(0, -1))) return null
    // the file of labels at the root speaks of paths that may be anywhere below: it is worked out each time
    const found = above === '' ? roots.get(tree) : memo.folder(place)
    if (found !== undefined) return found
    const entries = entriesOf(tree)
    const seen = entries.map((entry) => projectEntry(context, entry, above)).filter((entry) => entry !== undefined)
    const isSame = seen.length === entries.length && seen.every((entry, at) => isEqual(entry, entries[at]))
    const projected = isSame ? tree : writeTree(tx, home, seen)
    const shown = seen.length === 0 ? null : projected
    if (above === '') roots.set(tree, shown)
    else memo.keepFolder(place, shown)
    return shown
  }

  return {
    project: (tree) => projectFolder(contextOf(tree), tree, ''),
    sees: (tree, path, oid) => seesAt(contextOf(tree), path, oid),
    bears: (tree, path) => isFull || (!isReserved(path) && covered(contextOf(tree), path, null)),
    seesLabelChange: (before, after) => {
      if (isFull) return true
      const [old, now] = [before, after].map((tree) =>
        tree === null ? '[]' : hiddenLabels(labelsIn(contextOf(tree)), labelKeys(tree)),
      )
      return old !== undefined && now !== undefined && old === now
    },
    hiddenNames: (tree, folder) => {
      const context = contextOf(tree)
      const at = folder === '' ? { mode: FOLDER, oid: tree } : entryAt(tree, folder)
      if (isFull || at?.mode !== FOLDER) return []
      const above = folder === '' ? '' : `${folder}/`
      return entriesOf(at.oid)
        .filter((entry) => projectEntry(context, entry, above) === undefined)
        .map(({ name }) => name)
    },
    hiddenLabelNames: (tree) => {
      const seen = labelKeys(tree)
      if (isFull || seen === undefined) return []
      const shown = projectFolder(contextOf(tree), tree, '')
      const isShown = (path: string) => shown !== null && entryAt(shown, path) !== undefined
      return [...(labelsIn(contextOf(tree)) ?? new Map()).keys()]
        .filter((path) => !seen.has(path))
        .flatMap((path) => [
          path,
          ...segmentsOf(path)
            .filter((part) => !isShown(part.path))
            .map(({ name }) => name),
        ])
    },
  }
}

/** The labels that a reader does not know of, in one spelling; undefined where they can not be read. */
function hiddenLabels(all: LabelFile, seen: LabelFile): string | undefined {
  if (all === undefined || seen === undefined) return undefined
  return JSON.stringify([...all].filter(([path]) => !seen.has(path)).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function isPath(text: string): boolean {
  try {
    return validatePath(text) !== ''
  } catch (error) {
    if (isNodeError(error)) return false
    throw error
  }
}

const segmentsOf = (path: string): { name: string; path: string }[] => {
  const names = path.split('/')
  return names
    .map((name, depth) => ({ name, path: names.slice(0, depth + 1).join('/') }))
    .filter(({ name }) => name !== '')
}

const isEqual = (a: TreeEntry, b: TreeEntry | undefined): boolean =>
  a.mode === b?.mode && a.name === b.name && a.oid === b.oid
