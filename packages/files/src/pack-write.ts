/**
 * A pack for a client: what is stored, one entry after another. A delta goes as it lies there where its base goes
 * along or the client has it; otherwise the object is made whole. Nothing else is inflated but trees and commits.
 */
import { createHash } from 'node:crypto'
import { fail, turn } from '@csb/core'
import { key, type View } from '@csb/store'
import { CODES, encodeHeader } from './entry.ts'
import type { FetchPlan } from './fetch-plan.ts'
import { hashOf, isErased, readObject, type HashName } from './objects.ts'
import { createObjectView } from './object-view.ts'
import { createOidList, type OidList } from './oid-list.ts'
import { bodyOf, parseEntry, pieceAt, piecesOf, wholeEntry, type StoredEntry } from './stored.ts'
import { listTags, peel } from './tags.ts'

/** Entries of an earlier pack without tags, and the ids of what is in them: they go first, and none of it goes twice. */
export type PackStart = {
  readonly oids: OidList
  readonly entries: Iterable<Uint8Array>
}

export type OutgoingPack = {
  /** of all that goes, the start as well */
  readonly oids: OidList
  /** how many of them are of kind tag */
  readonly tags: number
  /**
   * What stands between head and checksum, in chunks of 64 KiB and more, the start first.
   * @throws OBJECT_DAMAGED, FORGOTTEN where something was forgotten meanwhile
   */
  entries(): Iterable<Uint8Array>
}

export type PackOptions = {
  /** deltas on what the client has are understood */
  readonly thin: boolean
  /** ids of objects of kind tag that go along, with those they name, where their commits are sent */
  readonly includeTags: ReadonlySet<string>
  /** All of it lies behind what is asked for, and the plan is of what does not. */
  readonly start?: PackStart
}

const HEAD_BYTES = 12
const CHUNK_BYTES = 64 * 1024
/** After so many commits others have their turn, and what was read is let go of. */
const TURN = 32
const FOLDER_DIGIT = 0x34
const LINK_DIGIT = 0x36
const SPACE = 0x20

/** Find out which objects go. @throws NOT_FOUND, OBJECT_DAMAGED */
export async function packFor(view: View, home: string, plan: FetchPlan, options: PackOptions): Promise<OutgoingPack> {
  const { start } = options
  const oidBytes = hashOf(view, home) === 'sha1' ? 20 : 32
  const theirs = start?.oids ?? createOidList(oidBytes)
  const sent = createOidList(oidBytes)
  // a walk wants bodies that are remembered, what goes out is what lies there
  const seen = createObjectView(view, home)
  if (start === undefined)
    for (const { tree } of plan.edges) markTree(seen, home, Buffer.from(tree, 'hex'), theirs, undefined)
  for (const { oid } of plan.commits) {
    // where clocks ran far backwards a plan has commits that lie behind the start after all
    const commit = Buffer.from(oid, 'hex')
    if (start === undefined || start.oids.find(commit) < 0) sent.add(commit)
  }
  for (const [at, { tree }] of plan.commits.entries()) {
    markTree(seen, home, Buffer.from(tree, 'hex'), sent, theirs)
    if (at % TURN === TURN - 1) await turn()
  }
  const isSent = (oid: string): boolean =>
    sent.find(Buffer.from(oid, 'hex')) >= 0 || (start?.oids.find(Buffer.from(oid, 'hex')) ?? -1) >= 0
  const tags = options.includeTags.size === 0 ? [] : await listTags(view, home)
  const along = tags.filter(({ oid, commit }) => options.includeTags.has(oid) && isSent(commit))
  const named = new Set([...plan.tags, ...along.flatMap(({ oid }) => peel(view, home, oid).tags)])
  for (const oid of named) sent.add(Buffer.from(oid, 'hex'))
  const bases = options.thin || start !== undefined ? theirs : undefined
  return {
    oids: start === undefined ? sent : start.oids.with(sent),
    tags: named.size,
    entries: function* () {
      yield* start?.entries ?? []
      yield* chunked(entriesOf(view, home, sent, bases))
    },
  }
}

/** A pack of so many objects: its head, its entries, its checksum. */
export function* packBytes(hash: HashName, objects: number, entries: Iterable<Uint8Array>): Generator<Uint8Array> {
  const sum = createHash(hash)
  const head = Buffer.alloc(HEAD_BYTES)
  head.write('PACK')
  head.writeUInt32BE(2, 4)
  head.writeUInt32BE(objects, 8)
  sum.update(head)
  yield head
  for (const chunk of entries) {
    sum.update(chunk)
    yield chunk
  }
  yield sum.digest()
}

/**
 * A tree and all below it, each object once.
 * @param but what is left out with all below it
 */
export function markTree(view: View, home: string, root: Uint8Array, into: OidList, but: OidList | undefined): void {
  const rest: Uint8Array[] = [root]
  for (let tree = rest.pop(); tree !== undefined; tree = rest.pop()) {
    if ((but?.find(tree) ?? -1) >= 0) continue
    const before = into.size
    if (into.add(tree) < before) continue
    const body = readObject(view, home, Buffer.from(tree).toString('hex'), 'tree')
    for (let at = 0; at < body.byteLength;) {
      const oid = body.indexOf(0, at) + 1
      const isKnown = into.find(body, oid) >= 0
      // git spells a folder's mode 40000, all others with six digits
      if (body[at] === FOLDER_DIGIT && !isKnown) rest.push(body.subarray(oid, oid + root.byteLength))
      else if (!isKnown && !isLinkElsewhere(body, at) && (but?.find(body, oid) ?? -1) < 0) into.add(body, oid)
      at = oid + root.byteLength
    }
  }
}

const isLinkElsewhere = (body: Buffer, at: number): boolean => body[at + 1] === LINK_DIGIT && body[at + 6] === SPACE

function* entriesOf(view: View, home: string, sent: OidList, theirs: OidList | undefined): Generator<Uint8Array> {
  for (let number = 0; number < sent.size; number++) {
    const oid = sent.hex(number)
    const entry = entryOf(view, home, oid)
    if (entry.code === CODES.pieces) yield* piecesEntry(view, home, oid, entry)
    else if (entry.base === undefined || isThere(entry.base, sent, theirs)) yield entry.value
    else yield rebuilt(view, home, oid)
  }
}

/** As stored. */
function entryOf(view: View, home: string, oid: string): StoredEntry {
  const value = view.get(key('object', home, oid))
  if (value === undefined) {
    return fail(isErased(view, home, oid) ? 'FORGOTTEN' : 'OBJECT_DAMAGED', { home, oid, reason: 'object missing' })
  }
  return parseEntry(value, oid.length / 2)
}

const isThere = (base: string, sent: OidList, theirs: OidList | undefined): boolean => {
  const oid = Buffer.from(base, 'hex')
  return sent.find(oid) >= 0 || (theirs?.find(oid) ?? -1) >= 0
}

function rebuilt(view: View, home: string, oid: string): Uint8Array {
  const { kind, body } = bodyOf(view, home, oid) ?? fail('OBJECT_DAMAGED', { home, oid, reason: 'object missing' })
  return wholeEntry(kind, body)
}

function* piecesEntry(view: View, home: string, oid: string, entry: StoredEntry): Generator<Uint8Array> {
  yield encodeHeader(CODES.blob, entry.size)
  const { count } = piecesOf(entry, oid)
  for (let at = 0; at < count; at++) yield pieceAt(view, home, oid, at)
}

/** Small entries together. */
function* chunked(entries: Iterable<Uint8Array>): Generator<Uint8Array> {
  let held: Uint8Array[] = []
  let heldBytes = 0
  for (const entry of entries) {
    if (heldBytes === 0 && entry.byteLength >= CHUNK_BYTES) {
      yield entry
      continue
    }
    held.push(entry)
    heldBytes += entry.byteLength
    if (heldBytes < CHUNK_BYTES) continue
    yield Buffer.concat(held)
    held = []
    heldBytes = 0
  }
  if (heldBytes > 0) yield Buffer.concat(held)
}
