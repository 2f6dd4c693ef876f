import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { canonicalize, createKeyPair, parseLabel, utf8 } from '@csb/core'
import { appendRecord, checkEvidence, evidenceOf } from '@csb/authority'
import {
  beginExport,
  commitFiles,
  importArchive,
  listHomes,
  listRefs,
  readFile,
  resumeExport,
  setLabel,
  streamExport,
  type Imported,
} from '@csb/files'
import { getState, listNotes } from '@csb/memory'
import type { Store } from '@csb/store'
import { exportSources, finishErasures, isForgotten, settleImport } from '../src/index.ts'
import { ALL, NOW, openHome, snapshot } from './open-home.ts'

const ME = createKeyPair()
const SOURCES = exportSources((view, commit) => evidenceOf(view, commit, ME))
const WORDS = { author: { name: 'Ada', did: ME.did }, trailers: {}, now: NOW + 10_000_000 }
const BRANCH = 'runs/one'

type Node = Awaited<ReturnType<typeof openHome>>

const exported = async ({ store, home }: Pick<Node, 'store' | 'home'>, offset = 0): Promise<Buffer> => {
  const begun = await beginExport(store, home.id, SOURCES, { now: NOW })
  const parts: Uint8Array[] = []
  for await (const part of streamExport(store, begun, SOURCES, offset)) parts.push(part)
  const all = Buffer.concat(parts)
  expect(all.byteLength).toBe(begun.bytes - offset)
  return all
}

async function* cut(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length)
}

const taken = (store: Store, bytes: Uint8Array, pieceBytes = 1000): Promise<Imported> =>
  importArchive(store, cut(bytes, pieceBytes), {
    checkEvidence,
    write: (work) => store.transact(work),
    finish: (tx, home, tombstones) => settleImport(tx, { home, tombstones, ...WORDS }),
  })

const write = ({ store, home, words }: Node, path: string, bytes: Uint8Array, branch = BRANCH) =>
  store.transact((tx) => {
    const done = commitFiles(tx, { ...words(), branch, changes: [{ path, bytes }] })
    const entry = {
      operation: 'files.write',
      outcome: 'done',
      actor: ME.did,
      door: 'http',
      run: null,
      lease: null,
    } as const
    appendRecord(tx, { ...entry, reads: [], effect: { home: home.id }, commit: done.commit }, NOW)
    return done
  })

/** Files, labels, notes, something forgotten, a branch of its own. */
async function livedIn(): Promise<Node> {
  const node = await openHome()
  await write(node, 'plan.md', utf8('a plan\n'))
  await write(node, 'docs/a/b.md', utf8('deep\n'))
  await write(node, 'other.md', utf8('other\n'), 'runs/two')
  await node.store.transact((tx) =>
    setLabel(tx, { ...node.words(), branch: BRANCH, path: 'docs', label: parseLabel('sealed:owner:health') }),
  )
  await node.create('a note to keep')
  const gone = await node.create('zz a note that is forgotten zz')
  await node.forget(gone.entry.id)
  await finishErasures(node.store)
  return node
}

const empty = async (): Promise<Store> => (await openHome()).store

describe('export and import', () => {
  test('L0.4 what is exported, imported and exported again is the same bytes', async () => {
    const node = await livedIn()
    const archive = await exported(node)
    const store = await empty()
    const done = await taken(store, archive)
    expect(done).toMatchObject({ home: node.home, branches: 4 })
    expect(await exported({ store, home: node.home })).toEqual(archive)
    const view = store.view()
    expect(await listRefs(view, node.home.id)).toEqual(await listRefs(node.store.view(), node.home.id))
    const read = readFile(view, { home: node.home.id, at: BRANCH, path: 'docs/a/b.md' })
    expect([Buffer.from(read.bytes).toString(), read.label.level]).toEqual(['deep\n', 'sealed'])
    const notes = async (of: Store) => (await listNotes(of.view(), node.home.id, { limit: 9, clearance: ALL })).items
    expect(await notes(store)).toEqual(await notes(node.store))
  })

  test('L0.4 pieces of any size are the same archive', async () => {
    const archive = await exported(await livedIn())
    const digests = await Promise.all(
      [1, 7, 64_000].map(async (length) => (await taken(await empty(), archive, length)).digest),
    )
    expect(new Set(digests).size).toBe(1)
  })

  test('L0.4 the record of what made a commit goes along, and comes out again', async () => {
    const node = await livedIn()
    const { commit } = await write(node, 'last.md', utf8('last'))
    const archive = await exported(node)
    expect(archive.toString('latin1')).toContain(`"commit":"${commit}","evidence":{"header":`)
    const store = await empty()
    await taken(store, archive)
    // the record of the node that imports goes on by itself
    await store.transact((tx) =>
      appendRecord(
        tx,
        { operation: 'x', outcome: 'done', actor: null, door: 'http', run: null, lease: null, reads: [], effect: {} },
        NOW,
      ),
    )
    expect(await exported({ store, home: node.home })).toEqual(archive)
  })

  test('an export goes on from any offset with the bytes it would have had', async () => {
    const node = await livedIn()
    const archive = await exported(node)
    for (const offset of [1, 15, 16, 17, 500, archive.byteLength - 42, archive.byteLength - 1, archive.byteLength])
      expect(await exported(node, offset)).toEqual(archive.subarray(offset))
    await expect(exported(node, archive.byteLength + 1)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('an export that was begun does not see what is written later, and ends where something is forgotten', async () => {
    const node = await livedIn()
    const archive = await exported(node)
    const begun = await beginExport(node.store, node.home.id, SOURCES, { now: NOW })
    await write(node, 'later.md', utf8('later'))
    const note = await node.create('soon gone')
    const again = await resumeExport(node.store, node.home.id, SOURCES, begun.id)
    const parts: Uint8Array[] = []
    for await (const part of streamExport(node.store, again, SOURCES)) parts.push(part)
    expect(Buffer.concat(parts)).toEqual(archive)
    await node.forget(note.entry.id)
    const resumed = resumeExport(node.store, node.home.id, SOURCES, begun.id)
    await expect(resumed).rejects.toMatchObject({ code: 'CONFLICT' })
    const unknown = resumeExport(node.store, node.home.id, SOURCES, 'f'.repeat(64))
    await expect(unknown).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a blob above a megabyte goes through in pieces', async () => {
    const node = await openHome()
    const large = createHash('shake256', { outputLength: 3_000_000 }).update('large').digest()
    await write(node, 'large.bin', large)
    const archive = await exported(node)
    const store = await empty()
    await taken(store, archive, 65_536)
    expect(await exported({ store, home: node.home })).toEqual(archive)
    const { bytes } = readFile(store.view(), { home: node.home.id, at: BRANCH, path: 'large.bin' })
    expect(Buffer.compare(bytes, large)).toBe(0)
    const flipped = Buffer.from(archive)
    const at = archive.indexOf(large.subarray(1_000_000, 1_000_016))
    flipped[at] = (flipped[at] ?? 0) ^ 1
    await expect(taken(await empty(), flipped)).rejects.toMatchObject({ code: 'MALFORMED' })
  })
})

describe('what was forgotten', () => {
  test('L3.4 is not in an export, and stays forgotten where it is imported', async () => {
    const node = await livedIn()
    const archive = await exported(node)
    expect(archive.includes('zz a note that is forgotten zz')).toBe(false)
    const store = await empty()
    await taken(store, archive)
    const [gone] = [...archive.toString('latin1').matchAll(/"forgotten_at":[0-9]+,.*?"id":"(mem_[^"]+)"/g)]
    const id = gone?.[1] ?? ''
    expect(isForgotten(store.view(), node.home.id, id)).toBe(true)
  })

  test('L4.3 a tombstone in an archive wins over the note that came with it', async () => {
    const node = await openHome()
    const note = await node.create('zz still here zz')
    const before = framesOf(await exported(node))
    await node.forget(note.entry.id)
    const tombstone = framesOf(await exported(node)).find(({ kind }) => kind === 'T')
    const at = before.findIndex(({ kind }) => kind === 'O')
    const store = await empty()
    await taken(store, archiveOf([...before.slice(0, at), tombstone ?? before[0] ?? raise(), ...before.slice(at)]))
    expect(isForgotten(store.view(), node.home.id, note.entry.id)).toBe(true)
    expect(getState(store.view(), node.home.id, note.entry.id)).toBeUndefined()
    await finishErasures(store)
    expect((await exported({ store, home: node.home })).includes('zz still here zz')).toBe(false)
  })
})

describe('archives that are not what they claim', () => {
  test('L0.4 any altered byte is refused, and nothing of it is to be seen', async () => {
    const node = await openHome()
    await write(node, 'a', utf8('a'))
    const archive = await exported(node)
    const store = await empty()
    const before = await snapshot(store)
    for (let at = 0; at < archive.byteLength; at++) {
      const altered = Buffer.from(archive)
      altered[at] = (altered[at] ?? 0) ^ (1 << (at % 8))
      await expect(taken(store, altered), `byte ${at} of ${archive.byteLength}`).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:MALFORMED|TOO_LARGE)$/) as string,
      })
    }
    expect(await snapshot(store)).toEqual(before)
    expect((await taken(store, archive)).home).toEqual(node.home)
  })

  test('one that is cut short or goes on is refused, and a whole one is taken after it', async () => {
    const node = await livedIn()
    const archive = await exported(node)
    const store = await empty()
    const before = await snapshot(store)
    for (const length of [0, 5, 16, 20, 300, 2000, archive.byteLength - 42, archive.byteLength - 1])
      await expect(taken(store, archive.subarray(0, length))).rejects.toMatchObject({ code: 'MALFORMED' })
    await expect(taken(store, Buffer.concat([archive, Buffer.from([0])]))).rejects.toMatchObject({ code: 'MALFORMED' })
    expect(await snapshot(store)).toEqual(before)
    await taken(store, archive)
    await expect(taken(store, archive)).rejects.toMatchObject({ code: 'ALREADY_HERE' })
    expect((await listHomes(store.view())).map(({ id }) => id)).toContain(node.home.id)
  })

  test('one that holds too much, too little or the wrong things is refused', async () => {
    const node = await livedIn()
    const frames = framesOf(await exported(node))
    const line = (kind: string, value: unknown): Frame => ({ kind, body: utf8(canonicalize(value)) })
    const blob = (text: string): Frame => objectOf(3, 'blob', utf8(text))
    const first = frames.findIndex(({ kind }) => kind === 'O')
    const firstRef = frames.findIndex(({ kind }) => kind === 'R')
    const lastCommit = frames.findLastIndex(({ kind }) => kind === 'O')
    const without = (at: number) => frames.filter((_, index) => index !== at)
    const put = (at: number, ...more: Frame[]) => [...frames.slice(0, at), ...more, ...frames.slice(at)]
    const replaced = (at: number, frame: Frame) => frames.map((old, index) => (index === at ? frame : old))
    const treeOf = (name: string) =>
      objectOf(2, 'tree', Buffer.concat([Buffer.from(`100644 ${name}\0`), oidOfFrame(blob('x'))]))
    const ref = JSON.parse(Buffer.from(frames[firstRef]?.body ?? []).toString()) as object
    const hostile: readonly (readonly [string, readonly Frame[]])[] = [
      ['no home', frames.slice(1)],
      ['another object', put(first, blob('smuggled'))],
      ['one twice', put(first, frames[first] ?? raise())],
      ['one missing', without(first)],
      ['no objects', frames.slice(0, first)],
      ['out of order', put(lastCommit, frames[first] ?? raise()).filter((_, at) => at !== first)],
      ['a line behind objects', [...frames, frames[firstRef] ?? raise()]],
      ['a path out of the tree', put(first, blob('x'), treeOf('..'))],
      ['a path of git', put(first, blob('x'), treeOf('.GIT'))],
      ['a path with a bidirectional mark', put(first, blob('x'), treeOf('a\u202eb'))],
      ['a tree of nothing', put(first, treeOf('gone'))],
      ['an unknown kind of object', put(first, objectOf(9, 'blob', utf8('x')))],
      [
        'an id that is not its own',
        put(first, { kind: 'O', body: Buffer.concat([Buffer.from([3]), Buffer.alloc(33)]) }),
      ],
      ['an object of nothing', put(first, { kind: 'O', body: Buffer.from([3]) })],
      ['a line too many members', replaced(firstRef, line('R', { ...ref, more: 1 }))],
      ['a bad branch', replaced(firstRef, line('R', { ...ref, branch: 'a..b' }))],
      [
        'an open main',
        frames.map((frame) => (isMain(frame) ? line('R', { ...bodyOf(frame), protected: false }) : frame)),
      ],
      ['not canonical', replaced(firstRef, { kind: 'R', body: utf8(JSON.stringify({ z: 1, a: 2 })) })],
      ['a branch twice', put(firstRef, frames[firstRef] ?? raise())],
      ['a forged tombstone', frames.map((f) => (f.kind === 'T' ? line('T', { ...bodyOf(f), reason: 'forged' }) : f))],
      ['forged evidence', frames.map((f) => (f.kind === 'E' ? line('E', { ...bodyOf(f), evidence: {} }) : f))],
      ['a mark that is a path out', put(first, line('F', { mark: '/../x' }))],
      ['deep brackets', replaced(firstRef, { kind: 'R', body: utf8('['.repeat(5000) + ']'.repeat(5000)) })],
    ]
    const store = await empty()
    const before = await snapshot(store)
    for (const [name, made] of hostile)
      await expect(taken(store, archiveOf(made)), name).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:MALFORMED|DENIED)$/) as string,
      })
    expect(await snapshot(store)).toEqual(before)
    await taken(store, archiveOf(frames))
  })

  test('one that announces more than there may be is refused before it is read', async () => {
    const node = await openHome()
    const frames = framesOf(await exported(node))
    const head = (kind: string, bytes: bigint) => {
      const made = Buffer.alloc(9)
      made.write(kind)
      made.writeBigUInt64BE(bytes, 1)
      return made
    }
    const lines = Buffer.concat([Buffer.from('csb-archive 1.0\n'), ...frames.slice(0, 3).map(encode)])
    const store = await empty()
    const oid = Buffer.concat([Buffer.from([3]), Buffer.alloc(32)])
    for (const bytes of [
      Buffer.concat([lines, head('O', 4n * 1024n ** 3n), oid]),
      Buffer.concat([lines, head('R', 2n * 1024n ** 2n)]),
      Buffer.concat([lines, head('O', 2n ** 60n), oid]),
    ])
      await expect(taken(store, bytes)).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:MALFORMED|TOO_LARGE)$/) as string,
      })
  })
})

type Frame = { readonly kind: string; readonly body: Uint8Array }

const encode = ({ kind, body }: Frame): Buffer => {
  const head = Buffer.alloc(9)
  head.write(kind)
  head.writeBigUInt64BE(BigInt(body.byteLength), 1)
  return Buffer.concat([head, body])
}

const MAGIC = Buffer.from('csb-archive 1.0\n')

/** All frames but the last, written by hand: what the format says is what is read here. */
function framesOf(archive: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = MAGIC.byteLength; at < archive.byteLength;) {
    const bytes = Number(archive.readBigUInt64BE(at + 1))
    frames.push({ kind: archive.toString('latin1', at, at + 1), body: archive.subarray(at + 9, at + 9 + bytes) })
    at += 9 + bytes
  }
  return frames.slice(0, -1)
}

/** A whole archive with a right digest. */
function archiveOf(frames: readonly Frame[]): Buffer {
  const all = Buffer.concat([MAGIC, ...frames.map(encode)])
  return Buffer.concat([all, encode({ kind: 'Z', body: createHash('sha256').update(all).digest() })])
}

const objectOf = (code: number, kind: string, body: Uint8Array): Frame => ({
  kind: 'O',
  body: Buffer.concat([
    Buffer.from([code]),
    createHash('sha256').update(`${kind} ${body.byteLength}\0`).update(body).digest(),
    body,
  ]),
})

const oidOfFrame = ({ body }: Frame): Uint8Array => body.subarray(1, 33)
const bodyOf = ({ body }: Frame): object => JSON.parse(Buffer.from(body).toString()) as object
const isMain = (frame: Frame): boolean => frame.kind === 'R' && (bodyOf(frame) as { branch?: string }).branch === 'main'

function raise(): never {
  throw new Error('no such frame')
}
