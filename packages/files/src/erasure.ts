/**
 * Which objects hold a file's bytes, and taking them out of reach: every version of a path in all history. Trees and commits stay, so no id changes and history still verifies.
 *
 * Only marks and names; the bytes go by the store's erase routine.
 * @clause L3.4
 */
import { LIMITS, fail } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { CODES } from './entry.ts'
import { isErased, readCommit, readObject, readTree } from './objects.ts'
import { validatePath } from './paths.ts'
import { staleProjections } from './projection-memo.ts'
import { recycledOf } from './recycle.ts'
import { listRefs } from './refs.ts'
import { bodyOf, freeChildren, keysOf, pieceAt, piecesOf, storedAt } from './stored.ts'
import { listTags } from './tags.ts'
import { FOLDER, entriesNamed, isBlob, spelledOf } from './tree.ts'
import { walkCommits } from './walk.ts'

const EMPTY = new Uint8Array()

/** A file of a branch's head that needs the same bytes. */
export type LiveCopy = { readonly branch: string; readonly path: string; readonly oid: string }

export type ErasedVersions = {
  /** blobs that are out of reach once they are erased */
  readonly oids: readonly string[]
  /** files under other paths that hold the same bytes; these blobs stay */
  readonly kept: readonly LiveCopy[]
}

/** Heads behind which history was looked through, and for each path the blobs that were found there, kept ones too. */
export type Looked = { readonly heads: readonly string[]; readonly blobs: readonly (readonly string[])[] }

/** A blob that is out of reach and still in the store. */
export type ErasedBlob = {
  /** as deflated in the store; of a blob in pieces, the last one */
  readonly stored: Uint8Array
  /** plain; of a blob too large to be held, nothing */
  readonly bytes: Uint8Array
}

/**
 * Put every version of some paths out of reach: their blobs are neither read nor written from this transaction on,
 * and no branch takes a file of those paths any more. A blob that the head of some branch needs under another path
 * stays.
 * @param paths each once
 * @param looked what {@link lookThrough} found at the same paths before
 * @returns in the order of the paths
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L3.4
 */
export async function eraseVersions(
  tx: Transaction,
  home: string,
  paths: readonly string[],
  looked?: Looked,
): Promise<ErasedVersions[]> {
  const erased = await findVersions(tx, home, paths, looked)
  const gone = new Set(erased.flatMap(({ oids }) => oids))
  // what stands on them as a delta could not be read any more, and goes on standing in the same commit
  for (const oid of gone) await freeChildren(tx, home, oid, gone)
  for (const mark of [...paths.map((path) => `/${path}`), ...gone]) tx.put(key('erased', home, mark), EMPTY)
  staleProjections(tx, home)
  return erased
}

/**
 * Look through all history for what stood at some paths. It is walked once, however many paths there are; and of what
 * was looked through before, nothing is walked again: behind a commit nothing changes.
 * @param before what came of looking for the same paths
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L3.4
 */
export async function lookThrough(
  view: View,
  home: string,
  paths: readonly string[],
  before: Looked = { heads: [], blobs: [] },
): Promise<Looked> {
  for (const path of paths) validatePath(path)
  const heads = await headsOf(view, home, await listRefs(view, home))
  const found = versionsOf(view, home, paths, { heads, before })
  return { heads, blobs: found.map((oids) => [...oids].sort()) }
}

/**
 * What {@link eraseVersions} would put out of reach, and what would stay. Changes nothing.
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L3.4
 */
export async function findVersions(
  view: View,
  home: string,
  paths: readonly string[],
  looked?: Looked,
): Promise<ErasedVersions[]> {
  const refs = await listRefs(view, home)
  const versions = (await lookThrough(view, home, paths, looked)).blobs.map((oids) => new Set(oids))
  const wanted = new Set(versions.flatMap((oids) => [...oids]))
  const asked = new Set(paths)
  // what stands under a path that is forgotten as well keeps nothing
  const copies = (wanted.size === 0 ? [] : copiesOf(view, home, wanted, refs)).filter(
    ({ path }) => !asked.has(path) && !isErased(view, home, `/${path}`),
  )
  const needed = new Set(copies.map(({ oid }) => oid))
  return versions.map((oids) => ({
    oids: [...oids].filter((oid) => !needed.has(oid)).sort(),
    kept: copies.filter(({ oid }) => oids.has(oid)),
  }))
}

/**
 * What the erase routine has to be given of erased blobs: their keys, and the bytes of those that are still here.
 * @param oids blobs that {@link eraseVersions} put out of reach
 * @throws INVALID_INPUT where one of them was not, OBJECT_DAMAGED
 * @clause L3.4
 */
export function erasedBlobs(
  view: View,
  home: string,
  oids: readonly string[],
): { readonly keys: readonly string[]; readonly blobs: readonly ErasedBlob[] } {
  const blobs = oids.flatMap((oid) => {
    if (!isErased(view, home, oid)) fail('INVALID_INPUT', { reason: 'that blob was not erased', oid })
    return erasedBlob(view, home, oid) ?? []
  })
  return { keys: oids.flatMap((oid) => keysOf(view, home, oid)), blobs }
}

function erasedBlob(view: View, home: string, oid: string): ErasedBlob | undefined {
  const entry = storedAt(view, home, oid)
  if (entry === undefined) return undefined
  if (entry.code !== CODES.pieces) return { stored: entry.value, bytes: bodyOf(view, home, oid)?.body ?? EMPTY }
  const last = pieceAt(view, home, oid, piecesOf(entry, oid).count - 1)
  return { stored: last, bytes: entry.size > LIMITS.blobBytes ? EMPTY : (bodyOf(view, home, oid)?.body ?? EMPTY) }
}

/** All that leads into history: branches, tags, and heads that can be restored. */
async function headsOf(view: View, home: string, refs: readonly { readonly commit: string }[]): Promise<string[]> {
  const tags = await listTags(view, home)
  const removed = (await recycledOf(view, home)).filter(({ path }) => path === null)
  return [...new Set([...refs, ...tags, ...removed].map(({ commit }) => commit))]
}

/** One name of the wanted paths, and what is asked for below it, by name as its bytes are; `at`: which path ends here. */
type Step = { readonly id: number; readonly below: Map<string, Step>; at?: number }

/** For each path the blobs that stand there in any commit that the heads lead to, and those that were found before. */
function versionsOf(
  view: View,
  home: string,
  paths: readonly string[],
  { heads, before }: { readonly heads: readonly string[]; readonly before: Looked },
): Set<string>[] {
  const found = paths.map((_, at) => new Set(before.blobs[at] ?? []))
  const root = stepsOf(paths)
  /** a folder seen at its place leads to the same again */
  const seen = new Set<string>()
  const descend = (tree: string, step: Step): void => {
    const place = `${step.id} ${tree}`
    if (seen.has(place)) return
    seen.add(place)
    const body = readObject(view, home, tree, 'tree')
    for (const { mode, oid, as: next } of entriesNamed(body, tree.length / 2, step.below)) {
      if (mode === FOLDER) descend(oid, next)
      else if (next.at !== undefined && isBlob({ mode })) found[next.at]?.add(oid)
    }
  }
  for (const { commit } of walkCommits(view, home, heads, before.heads)) descend(commit.tree, root)
  return found
}

function stepsOf(paths: readonly string[]): Step {
  let count = 0
  const step = (): Step => ({ id: count++, below: new Map() })
  const root = step()
  for (const [at, path] of paths.entries()) {
    let last = root
    for (const name of path.split('/').map(spelledOf)) {
      const next = last.below.get(name) ?? step()
      last.below.set(name, next)
      last = next
    }
    last.at = at
  }
  return root
}

/** Where the heads of the branches hold one of these blobs. */
function copiesOf(
  view: View,
  home: string,
  wanted: ReadonlySet<string>,
  refs: readonly { readonly branch: string; readonly commit: string }[],
): LiveCopy[] {
  const memo = new Map<string, readonly { readonly path: string; readonly oid: string }[]>()
  const copiesIn = (tree: string): readonly { readonly path: string; readonly oid: string }[] => {
    const known = memo.get(tree)
    if (known !== undefined) return known
    const found = readTree(view, home, tree).flatMap(({ mode, name, oid }) => {
      if (mode === FOLDER) return copiesIn(oid).map((copy) => ({ path: `${name}/${copy.path}`, oid: copy.oid }))
      return isBlob({ mode }) && wanted.has(oid) ? [{ path: name, oid }] : []
    })
    memo.set(tree, found)
    return found
  }
  return refs.flatMap(({ branch, commit }) =>
    copiesIn(readCommit(view, home, commit).tree).map((copy) => ({ branch, ...copy })),
  )
}
