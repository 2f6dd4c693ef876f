/**
 * One file through a merge: what it was, what either side made of it, what becomes of it. A conflict never loses
 * a byte: both sides are kept, the other branch's under a name that says so.
 */
import { LIMITS, isNodeError } from '@csb/core'
import type { Transaction } from '@csb/store'
import { checkGitFile, gitFileOf } from './git-files.ts'
import { findRenames } from './merge-renames.ts'
import { objectSize, readBlob, writeBlob } from './objects.ts'
import { mergeText } from './text-merge.ts'
import { LABELS_PATH } from './labels.ts'
import { comparePaths, diffTrees, isSameSide, type Side } from './tree-diff.ts'
import { FILE, LINK, SUBMODULE, modeOf, type Mode } from './tree.ts'

/** Where a side has a file. */
export type At = { readonly path: string; readonly side: Side }

/** A file of the base, or a path that is new. Null: not there. */
export type MergeItem = { readonly base: At | null; readonly ours: At | null; readonly theirs: At | null }

/** What a file of the result is, and whose name gives way where two want the same. */
export type Wanted = At & { readonly isTheirs: boolean; readonly isConflict: boolean }

/** Why both sides, or the one that is left, were kept. */
export type ConflictKind = 'content' | 'added' | 'deleted' | 'renamed' | 'path'

export type Resolved = { readonly wanted: readonly Wanted[]; readonly conflict: ConflictKind | null }

/** What is no text, whatever its bytes. */
const APART: readonly Mode[] = [LINK, SUBMODULE]

/**
 * All files that one side or the other touched, in byte order of their paths. The file of labels is none of them.
 * @param trees object ids of root trees; base null: an empty one
 * @throws OBJECT_DAMAGED
 */
export function itemsOf(
  tx: Transaction,
  home: string,
  trees: { readonly base: string | null; readonly ours: string; readonly theirs: string },
): MergeItem[] {
  const [ours, theirs] = [sideOf(tx, home, trees.base, trees.ours), sideOf(tx, home, trees.base, trees.theirs)]
  const old = new Map([...ours.touched, ...theirs.touched])
  const fresh = new Set([...ours.fresh.keys(), ...theirs.fresh.keys()])
  return [
    ...[...old].map(([path, side]) => ({
      base: { path, side },
      ours: ours.at(path, side),
      theirs: theirs.at(path, side),
    })),
    ...[...fresh].map((path) => ({
      base: null,
      ours: ours.fresh.get(path) ?? null,
      theirs: theirs.fresh.get(path) ?? null,
    })),
  ].sort((a, b) => comparePaths(pathOf(a), pathOf(b)))
}

/** What becomes of one file. @throws OBJECT_DAMAGED, FORGOTTEN where both sides changed what was forgotten */
export function resolveItem(tx: Transaction, home: string, { base, ours, theirs }: MergeItem): Resolved {
  if (ours === null || theirs === null) {
    const left = ours ?? theirs
    if (left === null || isSameAt(left, base)) return { wanted: [], conflict: null }
    return { wanted: [want(left, ours === null)], conflict: base === null ? null : 'deleted' }
  }
  const path = pathIn(base, ours, theirs)
  const merged = mergeSides(tx, home, [base?.side ?? null, ours.side, theirs.side], path ?? ours.path)
  if (path === undefined) {
    const [left, right] = [merged ?? ours.side, merged ?? theirs.side]
    return {
      wanted: [want({ ...ours, side: left }, false), want({ ...theirs, side: right }, true)],
      conflict: 'renamed',
    }
  }
  if (merged !== undefined)
    return {
      wanted: [
        want(
          { path, side: merged },
          isSameAt(theirs, { path, side: merged }) && !isSameAt(ours, { path, side: merged }),
        ),
      ],
      conflict: null,
    }
  return {
    wanted: [want({ path, side: ours.side }, false), { path, side: theirs.side, isTheirs: true, isConflict: true }],
    conflict: base === null ? 'added' : 'content',
  }
}

const isSameAt = (a: At | null, b: At | null): boolean =>
  a?.path === b?.path && isSameSide(a?.side ?? null, b?.side ?? null)

const want = (at: At, isTheirs: boolean): Wanted => ({ ...at, isTheirs, isConflict: false })

const pathOf = ({ base, ours, theirs }: MergeItem): string => (base ?? ours ?? theirs)?.path ?? ''

/** Undefined where both sides moved it, each elsewhere. */
function pathIn(base: At | null, ours: At, theirs: At): string | undefined {
  if (ours.path === theirs.path || theirs.path === base?.path) return ours.path
  return ours.path === base?.path ? theirs.path : undefined
}

/** One side against the base: what it touched of the old, what is new in it, and where it has an old file. */
function sideOf(tx: Transaction, home: string, base: string | null, tree: string) {
  const changes = diffTrees(tx, home, base, tree).filter(({ path }) => path !== LABELS_PATH)
  const renames = findRenames(tx, home, changes)
  const afters = new Map(changes.map(({ path, after }) => [path, after === null ? null : { path, side: after }]))
  const moved = new Map([...renames].map(([to, from]) => [from, afters.get(to) ?? null]))
  return {
    touched: changes.flatMap(({ path, before }) => (before === null ? [] : [[path, before] as const])),
    fresh: new Map(
      changes.flatMap(({ path, before, after }) =>
        before !== null || after === null || renames.has(path) ? [] : [[path, { path, side: after }] as const],
      ),
    ),
    at: (path: string, side: Side): At | null => {
      if (moved.has(path)) return moved.get(path) ?? null
      return afters.has(path) ? (afters.get(path) ?? null) : { path, side }
    },
  }
}

/** Content and mode of three, each by itself. Undefined where they stand against each other. */
function mergeSides(
  tx: Transaction,
  home: string,
  [base, ours, theirs]: readonly [Side | null, Side, Side],
  path: string,
): Side | undefined {
  if (isSameSide(ours, theirs) || isSameSide(theirs, base)) return ours
  if (isSameSide(ours, base)) return theirs
  const before = base === null ? undefined : modeOf(base.mode)
  const mode = choose(before, modeOf(ours.mode), modeOf(theirs.mode)) ?? (base === null ? FILE : undefined)
  if (mode === undefined || [ours, theirs].some((side) => !isAlike(side.mode, mode))) return undefined
  const oid = choose(base?.oid, ours.oid, theirs.oid)
  if (oid !== undefined) return { mode, oid }
  if (base === null || APART.includes(mode) || APART.includes(base.mode)) return undefined
  const [old, left, right] = [base, ours, theirs].map((side) => bytesOf(tx, home, side.oid))
  if (old === undefined || left === undefined || right === undefined) return undefined
  const bytes = mergeText(old, left, right)
  return bytes === undefined || !isSound(bytes, path) ? undefined : { mode, oid: writeBlob(tx, home, bytes) }
}

/** Files are alike, executable or not; a link or a submodule is like its own kind alone. */
const isAlike = (a: Mode, b: Mode): boolean => a === b || (!APART.includes(a) && !APART.includes(b))

/** Two halves that are sound may together tell git what neither does. */
function isSound(bytes: Uint8Array, path: string): boolean {
  const own = gitFileOf(path.slice(path.lastIndexOf('/') + 1))
  try {
    if (own !== undefined) checkGitFile(own, bytes, path)
    return true
  } catch (error) {
    if (isNodeError(error)) return false
    throw error
  }
}

/** The one of three that counts: what both have, or what only one changed. */
function choose<T>(base: T | undefined, ours: T, theirs: T): T | undefined {
  if (ours === theirs || theirs === base) return ours
  return ours === base ? theirs : undefined
}

/** Undefined for what was forgotten, and for what is too large to be compared by lines. */
function bytesOf(tx: Transaction, home: string, oid: string): Uint8Array | undefined {
  try {
    return objectSize(tx, home, oid) > LIMITS.mergeTextBytes ? undefined : readBlob(tx, home, oid)
  } catch (error) {
    if (isNodeError(error, 'FORGOTTEN')) return undefined
    throw error
  }
}
