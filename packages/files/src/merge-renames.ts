/** Files that moved: equal bytes, or at least half of their lines. */
import { LIMITS, isNodeError } from '@csb/core'
import type { View } from '@csb/store'
import { linesOf } from './line-diff.ts'
import { objectSize, readBlob } from './objects.ts'
import { comparePaths, type Side, type TreeChange } from './tree-diff.ts'
import { LINK, SUBMODULE, type Mode } from './tree.ts'

type File = Side & { readonly path: string }
type Lines = { readonly counts: ReadonlyMap<string, number>; readonly total: number }
/** `alike` is the share of lines, 0 to 1. */
type Pair = { readonly from: File; readonly to: File; readonly alike: number }

/** What is like its own kind alone. */
const APART: readonly Mode[] = [LINK, SUBMODULE]
const LEAST_ALIKE = 0.5

/**
 * Which of the deleted files are found under a new path. A function of the changes alone, whatever the way there.
 * An empty file never moves: it is like every other.
 * @param least share of lines that a file keeps, up to 1 for equal bytes only
 * @returns new path to old path
 * @throws OBJECT_DAMAGED
 */
export function findRenames(
  view: View,
  home: string,
  changes: readonly TreeChange[],
  least = LEAST_ALIKE,
): Map<string, string> {
  const found = new Map<string, string>()
  const used = new Set<string>()
  const gone = () =>
    changes.flatMap(({ path, before, after }) =>
      before !== null && after === null && !used.has(path) ? [{ path, ...before }] : [],
    )
  const come = () =>
    changes.flatMap(({ path, before, after }) =>
      before === null && after !== null && !found.has(path) ? [{ path, ...after }] : [],
    )
  const take = (pairs: readonly Pair[]): void => {
    for (const { from, to } of pairs.toSorted(byLikeness)) {
      if (used.has(from.path) || found.has(to.path)) continue
      used.add(from.path)
      found.set(to.path, from.path)
    }
  }
  take(equalPairs(view, home, gone(), come()))
  if (least >= 1) return found
  const [left, right] = [gone(), come()]
  if (left.length * right.length <= LIMITS.mergeRenamePairs) take(similarPairs(view, home, left, right, least))
  return found
}

function equalPairs(view: View, home: string, gone: readonly File[], come: readonly File[]): Pair[] {
  const byOid = Map.groupBy(gone, ({ oid }) => oid)
  return come.flatMap((to) => {
    const same = (byOid.get(to.oid) ?? []).filter((from) =>
      APART.every((mode) => (from.mode === mode) === (to.mode === mode)),
    )
    if (same.length === 0 || sizeOf(view, home, to) === 0) return []
    return same.map((from) => ({ from, to, alike: 1 }))
  })
}

function similarPairs(view: View, home: string, gone: readonly File[], come: readonly File[], least: number): Pair[] {
  if (gone.length === 0 || come.length === 0) return []
  const read = (files: readonly File[]) =>
    files.flatMap((file) => {
      const size = sizeOf(view, home, file)
      const isRead = !APART.includes(file.mode) && size !== undefined && size <= LIMITS.mergeTextBytes
      const lines = isRead ? countLines(readBlob(view, home, file.oid)) : undefined
      return lines === undefined ? [] : [{ file, lines }]
    })
  const right = read(come)
  return read(gone).flatMap((from) =>
    right.flatMap((to) => {
      const alike = likenessOf(from.lines, to.lines)
      return alike < least ? [] : [{ from: from.file, to: to.file, alike }]
    }),
  )
}

/** Undefined for what is not here, forgotten or elsewhere: its id still tells that it is the same. */
function sizeOf(view: View, home: string, { mode, oid }: File): number | undefined {
  if (mode === SUBMODULE) return undefined
  try {
    return objectSize(view, home, oid)
  } catch (error) {
    if (isNodeError(error, 'FORGOTTEN')) return undefined
    throw error
  }
}

function countLines(bytes: Uint8Array): Lines | undefined {
  const lines = linesOf(bytes)
  if (lines === undefined || lines.length === 0) return undefined
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  return { counts, total: lines.length }
}

function likenessOf(a: Lines, b: Lines): number {
  const most = Math.max(a.total, b.total)
  let shared = 0
  for (const [line, count] of a.counts) shared += Math.min(count, b.counts.get(line) ?? 0)
  return shared / most
}

/** The likest first, then files that keep their name, then by path. */
const byLikeness = (a: Pair, b: Pair): number =>
  b.alike - a.alike ||
  Number(keepsName(b)) - Number(keepsName(a)) ||
  comparePaths(a.from.path, b.from.path) ||
  comparePaths(a.to.path, b.to.path)

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const keepsName = ({ from, to }: Pair): boolean => nameOf(from.path) === nameOf(to.path)
