/**
 * Git objects in the store: blob, tree, commit, each under the id git gives it, in git's loose form
 * (`zlib("kind size\0" + body)`), so that a value can be written out as a file of `.git/objects` as it is.
 *
 * Every read is hashed again. A blob whose bytes were forgotten is neither read nor written any more.
 */
import { hash as digest } from 'node:crypto'
import { deflateSync, inflateSync } from 'node:zlib'
import { LIMITS, fail, isNodeError, utf8 } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { decodeCommit, encodeCommit, type Commit } from './commit.ts'
import { decodeTree, encodeTree, type TreeEntry } from './tree.ts'

export type ObjectKind = 'blob' | 'tree' | 'commit'
/** The hash that a home's ids are made with. */
export type HashName = 'sha256' | 'sha1'

const OID_BYTES = { sha1: 20, sha256: 32 } as const
const HEADER_BYTES = 64
const KINDS = ['blob', 'tree', 'commit'] as const

/**
 * @param home id of a home
 * @param bytes at most 64 MiB
 * @returns object id, hex
 * @throws TOO_LARGE; FORGOTTEN where exactly these bytes were forgotten in this home; NOT_FOUND without the home
 */
export function writeBlob(tx: Transaction, home: string, bytes: Uint8Array): string {
  if (bytes.byteLength > LIMITS.blobBytes) fail('TOO_LARGE', { maxBytes: LIMITS.blobBytes })
  const raw = frame('blob', bytes)
  const oid = digest(hashOf(tx, home), raw, 'hex')
  if (isErased(tx, home, oid)) fail('FORGOTTEN', { home, oid })
  return put(tx, home, oid, raw)
}

/** @throws NOT_FOUND, FORGOTTEN, OBJECT_DAMAGED where the stored bytes do not hash to the id */
export const readBlob = (view: View, home: string, oid: string): Uint8Array => readObject(view, home, oid, 'blob')

/**
 * @param entries in any order
 * @returns object id, hex
 * @throws INVALID_INPUT
 */
export function writeTree(tx: Transaction, home: string, entries: readonly TreeEntry[]): string {
  const name = hashOf(tx, home)
  const raw = frame('tree', encodeTree(entries, OID_BYTES[name]))
  return put(tx, home, digest(name, raw, 'hex'), raw)
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
  const raw = frame('commit', encodeCommit(commit))
  return put(tx, home, digest(name, raw, 'hex'), raw)
}

/** @throws NOT_FOUND, OBJECT_DAMAGED */
export function readCommit(view: View, home: string, oid: string): Commit {
  const body = readObject(view, home, oid, 'commit')
  return orDamaged(oid, () => decodeCommit(body))
}

/**
 * An object of any kind as git hashes it, without its header.
 * @throws NOT_FOUND, FORGOTTEN, OBJECT_DAMAGED where the stored bytes do not hash to the id
 */
export function readBody(view: View, home: string, oid: string): { kind: ObjectKind; body: Uint8Array } {
  if (isErased(view, home, oid)) fail('FORGOTTEN', { home, oid })
  const stored = (isOid(oid) ? view.get(key('object', home, oid)) : undefined) ?? fail('NOT_FOUND', { home, oid })
  const raw = rawOf(stored, oid)
  // the length of an id tells its hash: no id of the one is an id of the other
  if (digest(oid.length === OID_BYTES.sha1 * 2 ? 'sha1' : 'sha256', raw, 'hex') !== oid)
    fail('OBJECT_DAMAGED', { home, oid })
  const start = raw.indexOf(0) + 1
  const header = raw.toString('latin1', 0, start - 1)
  const kind = KINDS.find((known) => header === `${known} ${raw.byteLength - start}`)
  if (kind === undefined) return fail('OBJECT_DAMAGED', { home, oid, reason: 'header' })
  return { kind, body: raw.subarray(start) }
}

/**
 * Write an object of any kind as it came, for rooms that checked its form.
 * @param body what git hashes after its header
 * @returns object id, hex
 * @throws TOO_LARGE, FORGOTTEN, NOT_FOUND without the home
 */
export function writeBody(tx: Transaction, home: string, kind: ObjectKind, body: Uint8Array): string {
  if (kind === 'blob') return writeBlob(tx, home, body)
  const raw = frame(kind, body)
  return put(tx, home, digest(hashOf(tx, home), raw, 'hex'), raw)
}

/** The hash of a home's ids. @throws NOT_FOUND */
export const hashOf = (view: View, home: string): HashName =>
  view.getJson<{ hash: HashName }>(key('home', home))?.hash ?? fail('NOT_FOUND', { home })

/** True for the hex of a SHA-1 or SHA-256 id. */
export const isOid = (text: string): boolean => /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text)

/** True where that blob was forgotten, or that path with a slash before it. */
export const isErased = (view: View, home: string, mark: string): boolean => view.has(key('erased', home, mark))

/** `kind size\0` and the body: what git hashes. */
const frame = (kind: ObjectKind, body: Uint8Array): Buffer =>
  Buffer.concat([utf8(`${kind} ${body.byteLength}\0`), body])

function put(tx: Transaction, home: string, oid: string, raw: Uint8Array): string {
  const at = key('object', home, oid)
  if (!tx.has(at)) tx.put(at, deflateSync(raw))
  return oid
}

function readObject(view: View, home: string, oid: string, kind: ObjectKind): Uint8Array {
  const { kind: found, body } = readBody(view, home, oid)
  if (found !== kind) fail('NOT_FOUND', { home, oid, wanted: kind, found })
  return body
}

/** What was deflated: `kind size\0` and the body. @throws OBJECT_DAMAGED */
export function rawOf(stored: Uint8Array, oid: string): Buffer {
  try {
    return inflateSync(stored, { maxOutputLength: LIMITS.blobBytes + HEADER_BYTES })
  } catch (error) {
    return fail('OBJECT_DAMAGED', { oid, reason: 'not deflated' }, error)
  }
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
