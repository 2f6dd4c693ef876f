/**
 * What a change does to each file, so that a person can judge it and a signature can bind it: contents by SHA-256,
 * whatever hash the home uses, or by object id where they are too large, and both labels. Any byte or label that differs gives another digest.
 */
import { isUtf8 } from 'node:buffer'
import { LIMITS, canonicalize, digestOf, formatLabel, isNodeError, sha256Hex, utf8, type Label } from '@csb/core'
import type { View } from '@csb/store'
import { labelsOf, readLabels, type LabelReader } from './labels.ts'
import { findRenames } from './merge-renames.ts'
import { objectSize, readBlob, readTree } from './objects.ts'
import { comparePaths, diffTrees, type Side, type TreeChange } from './tree-diff.ts'
import { FOLDER, SUBMODULE, modeOf, submoduleText, type Mode } from './tree.ts'
import { entryAt } from './walk.ts'

/** One file. What it is before is null where it is new, afterwards where it is gone. The content of a submodule is the line git shows. */
export type ManifestEntry = {
  /** `rename`: the same bytes under another path; `label`: nothing but the label */
  readonly op: 'add' | 'change' | 'delete' | 'rename' | 'label'
  readonly path: string
  /** of a rename only */
  readonly path_old?: string
  readonly mode_old: Mode | null
  readonly mode_new: Mode | null
  /** hex; null also where the bytes were forgotten, or are too many to be held */
  readonly sha256_old: string | null
  readonly sha256_new: string | null
  /** object ids, of a file too large for the other hash only */
  readonly oid_old?: string
  readonly oid_new?: string
  /** in bytes */
  readonly size_old: number | null
  readonly size_new: number | null
  /** as {@link formatLabel} spells them */
  readonly label_old: string | null
  readonly label_new: string | null
  /** its bytes are no text on one of its sides, or too many to be looked at */
  readonly opaque?: true
}

type Content = {
  readonly sha256: string | null
  readonly size: number | null
  readonly oid?: string
  readonly isOpaque?: true
}

/**
 * @param before object id of a root tree
 * @param after the same
 * @param labels in force on either side; omitted: what the trees say
 * @returns entries in byte order of their paths
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function manifestOf(
  view: View,
  home: string,
  before: string,
  after: string,
  labels: readonly [LabelReader, LabelReader] = [labelsOf(view, home, before), labelsOf(view, home, after)],
): ManifestEntry[] {
  const changes = diffTrees(view, home, before, after)
  const renames = findRenames(view, home, changes, 1)
  const moved = new Set(renames.values())
  const [labelOld, labelNew] = labels
  const contents = new Map<string, Content>()
  const contentOf = (side: Side | null): Content => {
    if (side === null) return { sha256: null, size: null }
    const place = `${side.mode} ${side.oid}`
    const content = contents.get(place) ?? readContent(view, home, side)
    contents.set(place, content)
    return content
  }
  const entry = (
    op: ManifestEntry['op'],
    { path, before: old, after: now }: TreeChange,
    from = path,
  ): ManifestEntry => {
    const [left, right] = [contentOf(old), contentOf(now)]
    return {
      op,
      path,
      ...(from === path ? {} : { path_old: from }),
      mode_old: old === null ? null : modeOf(old.mode),
      mode_new: now === null ? null : modeOf(now.mode),
      sha256_old: left.sha256,
      sha256_new: right.sha256,
      ...(left.oid === undefined ? {} : { oid_old: left.oid }),
      ...(right.oid === undefined ? {} : { oid_new: right.oid }),
      size_old: left.size,
      size_new: right.size,
      label_old: old === null ? null : formatLabel(labelOld(from)),
      label_new: now === null ? null : formatLabel(labelNew(path)),
      ...(left.isOpaque === true || right.isOpaque === true ? { opaque: true } : {}),
    }
  }
  const sideBefore = new Map(changes.map((change) => [change.path, change.before]))
  const files = changes
    .filter(({ path, after: now }) => now !== null || !moved.has(path))
    .map((change) => {
      const from = renames.get(change.path)
      if (from !== undefined) return entry('rename', { ...change, before: sideBefore.get(from) ?? null }, from)
      if (change.before === null) return entry('add', change)
      return entry(change.after === null ? 'delete' : 'change', change)
    })
  const touched = new Set(changes.map(({ path }) => path))
  const labelled = labelledPaths(view, home, before, after)
    .filter(({ path }) => !touched.has(path) && formatLabel(labelOld(path)) !== formatLabel(labelNew(path)))
    .map(({ path, side }) => entry('label', { path, before: side, after: side }))
  return [...files, ...labelled].sort((a, b) => comparePaths(a.path, b.path))
}

/** A file of which nothing but the label becomes another. @throws NOT_FOUND, OBJECT_DAMAGED */
export function relabelEntry(
  view: View,
  home: string,
  { path, side }: { readonly path: string; readonly side: Side },
  labels: { readonly before: Label; readonly after: Label },
): ManifestEntry {
  const { sha256, size, oid, isOpaque } = readContent(view, home, side)
  const mode = modeOf(side.mode)
  return {
    op: 'label',
    path,
    mode_old: mode,
    mode_new: mode,
    sha256_old: sha256,
    sha256_new: sha256,
    ...(oid === undefined ? {} : { oid_old: oid, oid_new: oid }),
    size_old: size,
    size_new: size,
    label_old: formatLabel(labels.before),
    label_new: formatLabel(labels.after),
    ...(isOpaque === true ? { opaque: true } : {}),
  }
}

/** `sha256:<hex>` over the RFC 8785 text of the entries. */
export const manifestDigest = (manifest: readonly ManifestEntry[]): string => digestOf(canonicalize(manifest))

function readContent(view: View, home: string, { mode, oid }: Side): Content {
  try {
    const size = mode === SUBMODULE ? 0 : objectSize(view, home, oid)
    if (size > LIMITS.blobBytes) return { sha256: null, size, oid, isOpaque: true }
    const bytes = mode === SUBMODULE ? utf8(submoduleText(oid)) : readBlob(view, home, oid)
    const content = { sha256: sha256Hex(bytes), size: bytes.byteLength }
    return isUtf8(bytes) ? content : { ...content, isOpaque: true }
  } catch (error) {
    if (isNodeError(error, 'FORGOTTEN')) return { sha256: null, size: null }
    throw error
  }
}

/** Files of the new tree under every path whose own label is another; all of them where labels can not be read. */
function labelledPaths(view: View, home: string, before: string, after: string): { path: string; side: Side }[] {
  const [old, now] = [readLabels(view, home, before), readLabels(view, home, after)]
  if (old === undefined && now === undefined) return []
  if (old === undefined || now === undefined) return filesBelow(view, home, after, '')
  const found = new Map<string, Side>()
  for (const path of new Set([...old.keys(), ...now.keys()])) {
    if (old.get(path) === now.get(path)) continue
    const at = entryAt(view, home, after, path)
    if (at === undefined) continue
    const files = at.mode === FOLDER ? filesBelow(view, home, at.oid, `${path}/`) : [{ path, side: at }]
    for (const file of files) found.set(file.path, { mode: file.side.mode, oid: file.side.oid })
  }
  return [...found].map(([path, side]) => ({ path, side }))
}

function filesBelow(view: View, home: string, tree: string, above: string): { path: string; side: Side }[] {
  return readTree(view, home, tree).flatMap(({ mode, name, oid }) =>
    mode === FOLDER ? filesBelow(view, home, oid, `${above}${name}/`) : [{ path: above + name, side: { mode, oid } }],
  )
}
