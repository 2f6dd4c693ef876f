/**
 * A home as one stream of bytes: what its branches lead to, the branches, the recycle area, what was forgotten by name,
 * and of the record what made its commits. The bytes are a function of these as they stood when it began, so that an
 * export that was broken off goes on where it ended.
 *
 * Of what was forgotten no byte is in it. What is in the recycle area comes along with its label and its date.
 * @clause L0.4
 */
import { createHash } from 'node:crypto'
import { LIMITS, canonicalize, delay, fail, sha256Hex } from '@csb/core'
import { key, prefix, tail, type Store, type Transaction, type View } from '@csb/store'
import { streamBlob } from './blob-stream.ts'
import { DIGEST_BYTES, FRAME_HEAD_BYTES, MAGIC, frameHead, lineFrame } from './archive-format.ts'
import { walkObjects, type WalkRoots } from './archive-walk.ts'
import { CODES, type ObjectKind } from './entry.ts'
import { getHome, type Home } from './homes.ts'
import { objectSize, readObject } from './objects.ts'
import { pinObjects, unpin } from './pins.ts'
import { isGone, recycledOf, type Recycled } from './recycle.ts'
import { listRefs, type Ref } from './refs.ts'
import { listTags, peel, type Tag } from './tags.ts'
import { comparePaths } from './tree-diff.ts'
import { SUBMODULE, isBlob } from './tree.ts'

/** What rooms above know of a home, as JSON values. */
export type ExportSources = {
  /** signed lines of what was forgotten, in one order */
  tombstones(view: View, home: string): AsyncIterable<unknown>
  /** the entry of this node's record that made a commit; undefined where there is none */
  evidence(view: View, commit: string): unknown
}

/** An export that has begun. */
export type Export = {
  /** digest of what it is made from; equal where nothing has changed */
  readonly id: string
  readonly home: Home
  readonly refs: readonly ({ readonly branch: string } & Ref)[]
  readonly tags: readonly ({ readonly name: string } & Tag)[]
  /** what can be restored, in the order of the recycle area */
  readonly recycled: readonly Recycled[]
  /** digest of the names of what was forgotten */
  readonly forgotten: string
  /** length of the whole archive */
  readonly bytes: number
  readonly objects: number
}

/** Steps between which others get their turn. */
const STEP_OBJECTS = 200

/** Writes the batch that an export begins with, and whatever else belongs into it. */
type WriteBatch = (work: (tx: Transaction) => Promise<Export>) => Promise<Export>

/**
 * Begin an export, or find the one that began with the same state. For a day nothing of it is collected: it is held
 * from the moment on at which it is told what it is made from, before anything of it is measured. Where it is not begun
 * nothing is held.
 * @param now ms since epoch
 * @param write default: a transaction of the store
 * @throws NOT_FOUND, OBJECT_DAMAGED, TOO_LARGE; CONFLICT where something was forgotten meanwhile; what `write` throws
 * @clause L0.4
 */
export async function beginExport(
  store: Store,
  home: string,
  sources: ExportSources,
  { now, write = (work) => store.transact(work) }: { readonly now: number; readonly write?: WriteBatch },
): Promise<Export> {
  const { begun, known } = await store.transact(async (tx) => {
    const state = await stateOf(tx, home, sources)
    const found = findExport(tx, home, state.id)
    if (found === undefined) holdExport(tx, state, now)
    return { begun: state, known: found }
  })
  try {
    const made = known ?? { ...begun, ...(await measure(store, begun, sources)) }
    return await write(async (tx) => {
      // its length is that of what is sent
      await checkForgotten(tx, made, sources)
      tx.putJson(key('export', home, made.id), made)
      holdExport(tx, made, now)
      return made
    })
  } catch (error) {
    await store.transact((tx) => {
      if (findExport(tx, home, begun.id) === undefined) unpin(tx, home, pinOf(begun))
    })
    throw error
  }
}

/** @throws NOT_FOUND where no such export has begun; CONFLICT where something was forgotten since */
export async function resumeExport(store: Store, home: string, sources: ExportSources, id: string): Promise<Export> {
  const view = store.view()
  const found = findExport(view, home, id) ?? fail('NOT_FOUND', { home, export: id })
  await checkForgotten(view, found, sources)
  return found
}

/**
 * The bytes of an export.
 * @param offset bytes that are there already
 * @throws FORGOTTEN where something of it was meanwhile; NOT_FOUND, OBJECT_DAMAGED; INVALID_INPUT for an offset behind
 *   its end
 * @clause L0.4
 */
export async function* streamExport(
  store: Store,
  begun: Export,
  sources: ExportSources,
  offset = 0,
): AsyncGenerator<Uint8Array> {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > begun.bytes)
    fail('INVALID_INPUT', { field: 'offset', bytes: begun.bytes })
  // what comes before the offset is made all the same: the digest at the end is over all of it
  const hash = createHash('sha256')
  let skip = offset
  let held: Uint8Array[] = []
  let heldBytes = 0
  const flush = (): Uint8Array => {
    const chunk = held.length === 1 && held[0] !== undefined ? held[0] : Buffer.concat(held)
    held = []
    heldBytes = 0
    return chunk
  }
  const hold = (part: Uint8Array): void => {
    const rest = part.subarray(skip)
    skip -= Math.min(skip, part.byteLength)
    if (rest.byteLength === 0) return
    held.push(rest)
    heldBytes += rest.byteLength
  }
  for await (const part of partsOf(store, begun, sources)) {
    hash.update(part)
    hold(part)
    if (heldBytes >= LIMITS.bulkChunkBytes) yield flush()
  }
  hold(Buffer.concat([frameHead('end', DIGEST_BYTES), hash.digest()]))
  if (heldBytes > 0) yield flush()
}

const findExport = (view: View, home: string, id: string): Export | undefined =>
  view.getJson<Export>(key('export', home, id))

type Begun = Pick<Export, 'id' | 'home' | 'refs' | 'tags' | 'recycled' | 'forgotten'>

const pinOf = ({ id }: Begun): string => `export-${id}`

/** What an export of a home is made from now. */
async function stateOf(view: View, home: string, sources: ExportSources): Promise<Begun> {
  const row = getHome(view, home)
  const refs = (await listRefs(view, home)).sort((a, b) => comparePaths(a.branch, b.branch))
  const tags = (await listTags(view, home)).sort((a, b) => comparePaths(a.name, b.name))
  const forgotten = await digestForgotten(view, home, sources)
  const recycled = (await recycledOf(view, home)).filter((entry) => !isGone(view, home, entry))
  const id = sha256Hex(canonicalize({ home: row, refs, tags, recycled, forgotten }))
  return { id, home: row, refs, tags, recycled, forgotten }
}

/** Nothing of it is collected, whatever goes from the recycle area or off a branch. */
function holdExport(tx: Transaction, begun: Begun, now: number): void {
  const { home, refs, tags, recycled } = begun
  const kept = recycled.filter(({ mode }) => mode !== SUBMODULE)
  const oids = [...refs.map(({ commit }) => commit), ...[...tags, ...kept].map(({ oid }) => oid)]
  pinObjects(tx, home.id, { id: pinOf(begun), kind: 'export', oids, until: now + LIMITS.exportMs })
}

/** @throws CONFLICT */
async function checkForgotten(view: View, { id, home, forgotten }: Begun, sources: ExportSources): Promise<void> {
  if ((await digestForgotten(view, home.id, sources)) !== forgotten)
    fail('CONFLICT', { export: id, reason: 'something was forgotten since' })
}

async function* partsOf(store: Store, begun: Begun, sources: ExportSources): AsyncGenerator<Uint8Array> {
  const view = store.view()
  const { id: home } = begun.home
  yield* headParts(view, begun, sources)
  let count = 0
  for (const { kind, oid } of walkObjects(view, home, rootsOf(view, begun))) {
    if (kind === 'blob') {
      yield objectHead(kind, oid, objectSize(view, home, oid))
      yield* streamBlob(view, home, oid)
    } else {
      const body = readObject(view, home, oid, kind)
      yield objectHead(kind, oid, body.byteLength)
      yield body
    }
    const evidence = kind === 'commit' ? evidenceFrame(view, home, oid, sources) : undefined
    if (evidence !== undefined) yield evidence
    if (++count % STEP_OBJECTS === 0) await delay(0)
  }
}

async function* headParts(
  view: View,
  { home, refs, tags, recycled }: Begun,
  sources: ExportSources,
): AsyncGenerator<Uint8Array> {
  yield MAGIC
  yield lineFrame('home', home)
  for (const ref of refs) yield lineFrame('ref', ref)
  for (const tag of tags) yield lineFrame('tag', tag)
  for (const entry of recycled) yield lineFrame('recycled', entry)
  for await (const mark of marksOf(view, home.id)) yield lineFrame('forgotten', { mark })
  for await (const tombstone of sources.tombstones(view, home.id)) yield lineFrame('tombstone', tombstone)
}

/** How long it will be: lengths are known without the bytes. */
async function measure(store: Store, begun: Begun, sources: ExportSources): Promise<Pick<Export, 'bytes' | 'objects'>> {
  const view = store.view()
  const home = begun.home.id
  let bytes = FRAME_HEAD_BYTES + DIGEST_BYTES
  let objects = 0
  let held = 0
  for await (const part of headParts(view, begun, sources)) {
    bytes += part.byteLength
    held += part.byteLength
    // nobody could take it in
    if (held > LIMITS.archiveHeldBytes) fail('TOO_LARGE', { maxBytes: LIMITS.archiveHeldBytes, of: 'lines' })
  }
  for (const { kind, oid } of walkObjects(view, home, rootsOf(view, begun))) {
    bytes += FRAME_HEAD_BYTES + 1 + oid.length / 2 + objectSize(view, home, oid)
    if (kind === 'commit') bytes += evidenceFrame(view, home, oid, sources)?.byteLength ?? 0
    if (++objects % STEP_OBJECTS === 0) await delay(0)
  }
  return { bytes, objects }
}

/** What this node's record says of a commit, or what came with it. */
function evidenceFrame(view: View, home: string, commit: string, sources: ExportSources): Buffer | undefined {
  const evidence = view.getJson<unknown>(key('foreignRecord', home, commit)) ?? sources.evidence(view, commit)
  return evidence === undefined ? undefined : lineFrame('evidence', { commit, evidence })
}

function objectHead(kind: ObjectKind, oid: string, bytes: number): Buffer {
  const name = Buffer.from(oid, 'hex')
  const head = frameHead('object', 1 + name.byteLength + bytes)
  return Buffer.concat([head, Buffer.from([CODES[kind]]), name])
}

async function* marksOf(view: View, home: string): AsyncGenerator<string> {
  for await (const [row] of view.range({ prefix: prefix('erased', home) })) yield tail(row, 'erased', home)
}

async function digestForgotten(view: View, home: string, sources: ExportSources): Promise<string> {
  const hash = createHash('sha256')
  for await (const mark of marksOf(view, home)) hash.update(`${mark}\n`)
  for await (const tombstone of sources.tombstones(view, home)) hash.update(`${canonicalize(tombstone)}\n`)
  return hash.digest('hex')
}

/** @throws NOT_FOUND, OBJECT_DAMAGED */
export function rootsOf(
  view: View,
  { home, refs, tags, recycled }: Pick<Begun, 'home' | 'refs' | 'tags' | 'recycled'>,
): WalkRoots {
  const heads = recycled.filter(({ path }) => path === null)
  return {
    commits: [...refs, ...tags, ...heads].map(({ commit }) => commit),
    tags: tags.flatMap(({ oid }) => peel(view, home.id, oid).tags.toReversed()),
    blobs: recycled.flatMap(({ mode, oid }) => (mode !== null && isBlob({ mode }) ? [oid] : [])),
  }
}
