/**
 * Take a home in from an archive. Its objects are stored as they come, where nobody sees them; the home, its branches
 * and all else appear in one transaction once the digest at the end was right. An import that is broken off leaves
 * objects that the next one removes first.
 * @clause L0.4
 */
import { createHash } from 'node:crypto'
import { Readable, pipeline } from 'node:stream'
import { createDeflate } from 'node:zlib'
import { LIMITS, fail, isNodeError, random, toHex } from '@csb/core'
import { key, prefix, type Store, type Transaction } from '@csb/store'
import { createObjectCheck, kindOfByte, type ObjectCheck } from './archive-check.ts'
import { rootsOf } from './archive-export.ts'
import { openArchive, parseLine, type ArchiveReader, type FrameKind } from './archive-format.ts'
import { readHeld, type HeldLines } from './archive-lines.ts'
import { walkObjects } from './archive-walk.ts'
import { writePieces } from './blob-stream.ts'
import type { Home } from './homes.ts'
import { keepRecycled } from './recycle.ts'
import { objectSize, readBlob } from './objects.ts'
import { putPiecesEntry, putWhole } from './stored.ts'
import { peel } from './tags.ts'
import { SUBMODULE } from './tree.ts'

export type ImportRules = {
  /** Check what a record says of a commit. @throws MALFORMED */
  checkEvidence(value: unknown, commit: string): void
  /** Write state and record in one batch; `work` makes the home appear. */
  write(work: (tx: Transaction) => Promise<Imported>): Promise<Imported>
  /** Stage what rooms above make of the home once its branches are there. */
  finish(tx: Transaction, home: Home, tombstones: readonly unknown[]): Promise<void>
  /** told now and then */
  onProgress?(objects: number): void
}

export type Imported = {
  readonly home: Home
  readonly objects: number
  readonly branches: number
  /** `sha256:` of the archive but its last frame */
  readonly digest: string
}

const DROP_ROWS = 2_000
const STAGED = ['object', 'piece', 'deltaChild', 'foreignRecord'] as const

/**
 * @param source the archive's bytes, in pieces of any size
 * @throws MALFORMED where it is no whole archive that was not changed; ALREADY_HERE where the home is
 *   here; CONFLICT where another import of it has begun since; TOO_LARGE, DISK_FULL
 * @clause L0.4
 */
export async function importArchive(
  store: Store,
  source: AsyncIterable<Uint8Array>,
  rules: ImportRules,
): Promise<Imported> {
  const reader = await openArchive(source)
  const { held, first } = await readHeld(reader)
  const { home } = held
  const session = await beginImport(store, home)
  try {
    const arrival = createArrival(store, held, session, rules)
    await takeObjects(reader, first, arrival)
    const objects = arrival.check.count
    await arrival.flush()
    const done = { home, objects, branches: held.refs.length, digest: reader.digest() }
    checkHeads(store, held, arrival)
    return await rules.write(async (tx) => {
      requireSession(tx, home.id, session)
      await appear(tx, held, rules)
      return done
    })
  } catch (error) {
    await abandon(store, home.id, session)
    throw error
  }
}

type Arrival = {
  readonly check: ObjectCheck
  /** hash over ids in the order in which they came */
  readonly order: () => string
  object(reader: ArchiveReader, bytes: number): Promise<void>
  evidence(value: unknown): void
  flush(): Promise<void>
}

/** Objects, and what a record says of the commit that came last, until the end. */
async function takeObjects(
  reader: ArchiveReader,
  first: { readonly kind: FrameKind; readonly bytes: number } | undefined,
  arrival: Arrival,
): Promise<void> {
  for (let frame = first; frame !== undefined; frame = await reader.next()) {
    if (frame.kind === 'object') await arrival.object(reader, frame.bytes)
    else if (frame.kind === 'evidence') {
      if (frame.bytes > LIMITS.archiveLineBytes) fail('MALFORMED', { reason: 'a line that is too long' })
      arrival.evidence(parseLine(await reader.take(frame.bytes)))
    } else fail('MALFORMED', { reason: 'frames out of order' })
  }
}

function createArrival(store: Store, held: HeldLines, session: string, rules: ImportRules): Arrival {
  const { home, forgotten } = held
  /** small blobs that came and are not stored yet: a tree may need to look at them */
  const recent = new Map<string, Uint8Array>()
  const bodyOf = (oid: string): Uint8Array => {
    const body = recent.get(oid)
    if (body !== undefined) return body
    const view = store.view()
    // what is neither is on its way in pieces
    const isSmall = view.has(key('object', home.id, oid)) && objectSize(view, home.id, oid) <= LIMITS.gitFileBytes
    return isSmall ? readBlob(view, home.id, oid) : fail('TOO_LARGE', { maxBytes: LIMITS.gitFileBytes, oid })
  }
  const check = createObjectCheck(home.hash, forgotten, bodyOf)
  const order = createHash('sha256')
  const oidBytes = home.hash === 'sha1' ? 20 : 32
  let staged: ((tx: Transaction) => Promise<void> | void)[] = []
  let stagedBytes = 0
  let commit: string | undefined

  const flush = async (): Promise<void> => {
    const batch = staged
    staged = []
    stagedBytes = 0
    await store.transact(async (tx) => {
      requireSession(tx, home.id, session)
      for (const stage of batch) await stage(tx)
    })
    recent.clear()
    rules.onProgress?.(check.count)
  }
  const stage = (work: (tx: Transaction) => Promise<void> | void, bytes: number): void => {
    staged.push(work)
    stagedBytes += bytes
  }

  const large = async (reader: ArchiveReader, oid: string, bytes: number): Promise<void> => {
    const hash = createHash(home.hash).update(`blob ${bytes}\0`)
    const hashed = async function* () {
      for await (const piece of reader.pieces(bytes)) {
        hash.update(piece)
        yield piece
      }
    }
    const deflate = createDeflate()
    pipeline(Readable.from(hashed()), deflate, () => undefined)
    const pieces = await writePieces(store, home.id, oid, deflate as AsyncIterable<Uint8Array>)
    if (hash.digest('hex') !== oid) fail('MALFORMED', { reason: 'an object that is not what its id says', oid })
    check.add(oid)
    stage((tx) => putPiecesEntry(tx, home.id, oid, bytes, pieces), 0)
  }

  return {
    check,
    order: () => order.copy().digest('hex'),
    flush,
    object: async (reader, bytes) => {
      const size = bytes - 1 - oidBytes
      if (size < 0) fail('MALFORMED', { reason: 'an object that is too short' })
      const [byte] = await reader.take(1)
      const kind = kindOfByte(byte)
      const oid = toHex(await reader.take(oidBytes))
      if (size > (kind === 'blob' ? LIMITS.objectBytes : LIMITS.blobBytes)) fail('TOO_LARGE', { oid, bytes: size })
      check.announce(kind, oid)
      order.update(oid)
      commit = kind === 'commit' ? oid : undefined
      if (kind === 'blob' && size > LIMITS.pieceBlobBytes) await large(reader, oid, size)
      else {
        const body = await reader.take(size)
        check.check(kind, oid, body)
        if (kind === 'blob') recent.set(oid, body)
        stage((tx) => putWhole(tx, home.id, oid, kind, body), size + oidBytes)
      }
      if (stagedBytes >= LIMITS.archiveBatchBytes || staged.length >= LIMITS.collectStepObjects) await flush()
    },
    evidence: (value) => {
      const { commit: of, evidence, ...rest } = (value ?? {}) as { commit?: unknown; evidence?: unknown }
      if (of === undefined || of !== commit || Object.keys(rest).length > 0)
        fail('MALFORMED', { reason: 'evidence of another commit' })
      rules.checkEvidence(evidence, commit)
      const row = key('foreignRecord', home.id, commit)
      stage((tx) => tx.putJson(row, evidence), LIMITS.commitMessageChars)
      commit = undefined
    },
  }
}

/** Branches lead to commits that came, and to all that came, in its order: an export of it has the same bytes. */
function checkHeads(store: Store, held: HeldLines, { check, order }: Arrival): void {
  const { home, refs, tags, recycled, forgotten } = held
  for (const { branch, commit } of refs)
    if (!check.hasCommit(commit)) fail('MALFORMED', { reason: 'a branch whose commit did not come', branch })
  for (const { path, mode, oid } of recycled) {
    const isHere = mode === SUBMODULE || (path === null ? check.hasCommit(oid) : check.hasBlob(oid))
    if (!isHere) fail('MALFORMED', { reason: 'something recycled that did not come', path, oid })
  }
  const walked = createHash('sha256')
  const view = store.view()
  for (const { name, oid, commit } of tags)
    if (!check.hasCommit(commit) || peel(view, home.id, oid).commit !== commit)
      fail('MALFORMED', { reason: 'a tag of another commit', tag: name })
  for (const { oid } of walkObjects(view, home.id, rootsOf(view, held), (blob) => forgotten.has(blob)))
    walked.update(oid)
  if (walked.digest('hex') !== order()) fail('MALFORMED', { reason: 'objects that no branch needs, or out of order' })
}

/** The home as it was, in one batch. */
async function appear(tx: Transaction, held: HeldLines, rules: ImportRules): Promise<void> {
  const { home } = held
  if (tx.has(key('home', home.id))) fail('ALREADY_HERE', { home: home.id })
  tx.del(incomingKey(home.id))
  tx.putJson(key('home', home.id), home)
  for (const { branch, ...ref } of held.refs) tx.putJson(key('ref', home.id, branch), ref)
  for (const { name, ...tag } of held.tags) tx.putJson(key('tag', home.id, name), tag)
  for (const entry of held.recycled) keepRecycled(tx, home.id, entry)
  for (const mark of held.forgotten) tx.put(key('erased', home.id, mark), new Uint8Array())
  await rules.finish(tx, home, held.tombstones)
}

/** A later import of the same home takes the place of one that was broken off, and of one that still goes on. */
async function beginImport(store: Store, home: Home): Promise<string> {
  const session = toHex(random(16))
  await store.transact((tx) => {
    if (tx.has(key('home', home.id))) fail('ALREADY_HERE', { home: home.id })
    tx.putJson(incomingKey(home.id), { hash: home.hash, session })
  })
  await dropStaged(store, home.id, session)
  return session
}

async function abandon(store: Store, home: string, session: string): Promise<void> {
  try {
    await dropStaged(store, home, session)
    await store.transact((tx) => {
      requireSession(tx, home, session)
      tx.del(incomingKey(home))
    })
  } catch (error) {
    // somebody else's import has begun, or the disk is full: the next import removes what is left
    if (!isNodeError(error)) throw error
  }
}

async function dropStaged(store: Store, home: string, session: string): Promise<void> {
  for (const table of STAGED) {
    for (let dropped = DROP_ROWS; dropped === DROP_ROWS;) {
      dropped = await store.transact(async (tx) => {
        requireSession(tx, home, session)
        let count = 0
        for await (const [row] of tx.range({ prefix: prefix(table, home), limit: DROP_ROWS })) {
          tx.del(row)
          count++
        }
        return count
      })
    }
  }
}

/** @throws CONFLICT where another import of the home has begun since, or has made it */
function requireSession(tx: Transaction, home: string, session: string): void {
  const found = tx.getJson<{ session?: unknown }>(incomingKey(home))
  if (found?.session !== session) fail('CONFLICT', { reason: 'another import of that home has begun', home })
}

const incomingKey = (home: string): string => key('meta', 'incoming', home)
