/**
 * Git objects: blob, tree, commit, tag, each under the id git gives it. How they lie in the store is `stored.ts`'s.
 *
 * Every read is hashed again. A blob whose bytes were forgotten is neither read nor written any more.
 */
import { createHash, hash as digest } from 'node:crypto'
import { LIMITS, fail, isNodeError } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { decodeCommit, encodeCommit, type Commit } from './commit.ts'
import type { ObjectKind } from './entry.ts'
import { bodyOf, putWhole, shapeOf } from './stored.ts'
import { decodeTree, encodeTree, type TreeEntry } from './tree.ts'

/** The hash that a home's ids are made with. */
export type HashName = 'sha256' | 'sha1'

const OID_BYTES = { sha1: 20, sha256: 32 } as const
/** Below this one call of the hash with a copy is quicker than three without. */
const SMALL_BYTES = 64 * 1024

/**
 * @param home id of a home
 * @param bytes at most 64 MiB
 * @returns object id, hex
 * @throws TOO_LARGE; FORGOTTEN where exactly these bytes were forgotten in this home; NOT_FOUND without the home
 */
export function writeBlob(tx: Transaction, home: string, bytes: Uint8Array): string {
  if (bytes.byteLength > LIMITS.blobBytes) fail('TOO_LARGE', { maxBytes: LIMITS.blobBytes })
  const oid = oidOf(hashOf(tx, home), 'blob', bytes)
  if (isErased(tx, home, oid)) fail('FORGOTTEN', { home, oid })
  return put(tx, home, oid, 'blob', bytes)
}

/** @throws NOT_FOUND, FORGOTTEN, TOO_LARGE, OBJECT_DAMAGED where the stored bytes do not hash to the id */
export const readBlob = (view: View, home: string, oid: string): Uint8Array => readObject(view, home, oid, 'blob')

/**
 * Length of a blob without reading it. @throws NOT_FOUND, FORGOTTEN, OBJECT_DAMAGED
 */
export function objectSize(view: View, home: string, oid: string): number {
  if (isErased(view, home, oid)) fail('FORGOTTEN', { home, oid })
  return shapeOf(view, home, oid)?.bytes ?? fail('NOT_FOUND', { home, oid })
}

/**
 * @param entries in any order
 * @returns object id, hex
 * @throws INVALID_INPUT
 */
export function writeTree(tx: Transaction, home: string, entries: readonly TreeEntry[]): string {
  const name = hashOf(tx, home)
  const body = encodeTree(entries, OID_BYTES[name])
  return put(tx, home, oidOf(name, 'tree', body), 'tree', body)
}

/** Entries in git's order. @throws NOT_FOUND, OBJECT_DAMAGED */
export function readTree(view: View, home: string, oid: string): TreeEntry[] {
  const body = readObject(view, home, oid, 'tree')
  return orDamaged(oid, () => decodeTree(body, oid.length / 2))
}

/**
 * @returns object id, hex
 * @throws INVALID_INPUT, TOO_LARGE
 */
export function writeCommit(tx: Transaction, home: string, commit: Commit): string {
  const name = hashOf(tx, home)
  for (const oid of [commit.tree, ...commit.parents]) {
    if (!isOid(oid) || oid.length !== OID_BYTES[name] * 2)
      fail('INVALID_INPUT', { reason: 'not an object id of this home', oid })
  }
  const body = encodeCommit(commit)
  return put(tx, home, oidOf(name, 'commit', body), 'commit', body)
}

/** @throws NOT_FOUND, OBJECT_DAMAGED */
export function readCommit(view: View, home: string, oid: string): Commit {
  const body = readObject(view, home, oid, 'commit')
  return orDamaged(oid, () => decodeCommit(body))
}

/** The hash of a home's ids, also of one that an import is still bringing. @throws NOT_FOUND */
export const hashOf = (view: View, home: string): HashName =>
  [key('home', home), key('meta', 'incoming', home)]
    .map((row) => view.getJson<{ hash: HashName }>(row)?.hash)
    .find((hash) => hash !== undefined) ?? fail('NOT_FOUND', { home })

/** True for the hex of a SHA-1 or SHA-256 id. */
export const isOid = (text: string): boolean => /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text)

/** True where that blob was forgotten, or that path with a slash before it. */
export const isErased = (view: View, home: string, mark: string): boolean => view.has(key('erased', home, mark))

/** Id of a body, hex. */
export function oidOf(name: HashName, kind: ObjectKind, body: Uint8Array): string {
  const header = `${kind} ${body.byteLength}\0`
  if (body.byteLength >= SMALL_BYTES) return createHash(name).update(header).update(body).digest('hex')
  const framed = Buffer.allocUnsafe(header.length + body.byteLength)
  framed.write(header, 'latin1')
  framed.set(body, header.length)
  return digest(name, framed, 'hex')
}

/** The length of an id tells its hash: no id of the one is an id of the other. */
export const hashOfOid = (oid: string): HashName => (oid.length === OID_BYTES.sha1 * 2 ? 'sha1' : 'sha256')

/**
 * The body of an object of one kind.
 * @throws NOT_FOUND also where it is of another kind; FORGOTTEN, TOO_LARGE, OBJECT_DAMAGED
 */
export function readObject(view: View, home: string, oid: string, kind: ObjectKind): Buffer {
  // nothing but blobs is ever forgotten
  if (kind === 'blob' && isErased(view, home, oid)) fail('FORGOTTEN', { home, oid })
  const found = (isOid(oid) ? bodyOf(view, home, oid) : undefined) ?? fail('NOT_FOUND', { home, oid })
  if (oidOf(hashOfOid(oid), found.kind, found.body) !== oid) fail('OBJECT_DAMAGED', { home, oid })
  if (found.kind !== kind) fail('NOT_FOUND', { home, oid, wanted: kind, found: found.kind })
  return found.body
}

function put(tx: Transaction, home: string, oid: string, kind: ObjectKind, body: Uint8Array): string {
  putWhole(tx, home, oid, kind, body)
  return oid
}

/** Bytes that hash to their id but can not be read were stored by something that is not this code. */
function orDamaged<T>(oid: string, decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    if (!isNodeError(error, 'MALFORMED')) throw error
    return fail('OBJECT_DAMAGED', { oid, ...error.details }, error)
  }
}
