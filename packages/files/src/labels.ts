/**
 * Labels of files, kept in the tree itself: `.csb/labels.json`, path or folder to label, keys sorted.
 *
 * A file bears the join of its own label and those of the folders above it; where none is named, the owner's
 * private. A label belongs to the path and stays when the file goes. A file of labels that can not be read
 * makes everything most restrictive, never public.
 * @clause L3.2
 */
import {
  MOST_RESTRICTIVE,
  OWNER_PRIVATE,
  formatLabel,
  fromUtf8,
  joinLabels,
  parseBounded,
  parseLabel,
  utf8,
  LIMITS,
  type Label,
} from '@csb/core'
import type { View } from '@csb/store'
import { readBlob } from './objects.ts'
import { entryAt } from './walk.ts'

export const LABELS_PATH = '.csb/labels.json'

/** Set a path's label, or take it away with null. */
export type LabelChange = { readonly path: string; readonly label: Label | null }

/** Label of a path of one tree. */
export type LabelReader = (path: string) => Label

/** @param tree object id of a root tree */
export const labelsOf = (view: View, home: string, tree: string): LabelReader =>
  labelReader(readLabels(view, home, tree))

/** @param labels as {@link readLabels} has them */
export function labelReader(labels: ReadonlyMap<string, unknown> | undefined): LabelReader {
  return (path) => {
    if (labels === undefined) return MOST_RESTRICTIVE
    const segments = path.split('/')
    const found = segments
      .map((_, index) => labels.get(segments.slice(0, index + 1).join('/')))
      .filter((text) => text !== undefined)
    return found.length === 0 ? OWNER_PRIVATE : joinLabels(found.map(parseLabel))
  }
}

/**
 * The bytes of the file of labels after the changes; null where none is left.
 * A file that can not be read is not repaired: its content would be lost.
 * @throws OBJECT_DAMAGED
 */
export function changeLabels(
  current: ReadonlyMap<string, unknown>,
  changes: readonly LabelChange[],
): Uint8Array | null {
  const labels = new Map(current)
  for (const { path, label } of changes) {
    if (label === null) labels.delete(path)
    else labels.set(path, formatLabel(label))
  }
  if (labels.size === 0) return null
  const sorted = [...labels].sort(([a], [b]) => (a < b ? -1 : 1))
  return utf8(`${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
}

/** Undefined where there is a file of labels that can not be read. */
export function readLabels(view: View, home: string, tree: string): ReadonlyMap<string, unknown> | undefined {
  const entry = entryAt(view, home, tree, LABELS_PATH)
  if (entry === undefined) return new Map()
  try {
    const text = fromUtf8(readBlob(view, home, entry.oid)) ?? ''
    const value = parseBounded(text, LIMITS.blobBytes, 2)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return new Map(Object.entries(value))
  } catch {
    return undefined
  }
}
