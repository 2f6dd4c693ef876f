/**
 * Which objects hold a file's bytes, and taking them out of reach: every version of a path in every branch's
 * history. Trees and commits stay, so no id changes and history still verifies.
 *
 * Only marks and names; the bytes go by the store's erase routine.
 * @clause L3.4
 */
import { LIMITS, fail } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { CODES } from './entry.ts'
import { isErased, readCommit, readTree } from './objects.ts'
import { validatePath } from './paths.ts'
import { staleProjections } from './projection-memo.ts'
import { listRefs } from './refs.ts'
import { bodyOf, freeChildren, keysOf, pieceAt, piecesOf, storedAt } from './stored.ts'
import { FOLDER, isBlob } from './tree.ts'
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

/** A blob that is out of reach and still in the store. */
export type ErasedBlob = {
  /** as deflated in the store; of a blob in pieces, the last one */
  readonly stored: Uint8Array
  /** plain; of a blob too large to be held, nothing */
  readonly bytes: Uint8Array
}

/**
 * Put every version of a path out of reach: its blobs are neither read nor written from this transaction on,
 * and no branch takes a file of that path any more. A blob that the head of some branch needs under another
 * path stays.
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L3.4
 */
export async function eraseVersions(tx: Transaction, home: string, path: string): Promise<ErasedVersions> {
  const { oids, kept } = await findVersions(tx, home, path)
  // what stands on them as a delta could not be read any more, and goes on standing in the same commit
  for (const oid of oids) await freeChildren(tx, home, oid, new Set(oids))
  for (const mark of [`/${path}`, ...oids]) tx.put(key('erased', home, mark), new Uint8Array())
  staleProjections(tx, home)
  return { oids, kept }
}

/**
 * What {@link eraseVersions} would put out of reach, and what would stay. Changes nothing.
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L3.4
 */
export async function findVersions(view: View, home: string, path: string): Promise<ErasedVersions> {
  const refs = await listRefs(view, home)
  const heads = refs.map((ref) => ref.commit)
  const versions = versionsOf(view, home, validatePath(path), heads)
  const kept = versions.size === 0 ? [] : copiesOf(view, home, versions, refs).filter((copy) => copy.path !== path)
  const needed = new Set(kept.map((copy) => copy.oid))
  return { oids: [...versions].filter((oid) => !needed.has(oid)).sort(), kept }
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

/** Blobs that stand at the path in any commit that the heads lead to. */
function versionsOf(view: View, home: string, path: string, heads: readonly string[]): Set<string> {
  const names = path.split('/')
  const found = new Set<string>()
  /** a folder seen at its depth leads to the same again */
  const seen = new Set<string>()
  const descend = (tree: string, depth: number): void => {
    if (seen.has(`${depth} ${tree}`)) return
    seen.add(`${depth} ${tree}`)
    const entry = readTree(view, home, tree).find(({ name }) => name === names[depth])
    if (entry === undefined) return
    if (entry.mode === FOLDER) descend(entry.oid, depth + 1)
    else if (depth === names.length - 1 && isBlob(entry)) found.add(entry.oid)
  }
  for (const { commit } of walkCommits(view, home, heads)) descend(commit.tree, 0)
  return found
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
