/** The recycle area in an archive: restored where it is imported as it could where it was made. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { LIMITS, canonicalize, parseLabel, utf8 } from '@csb/core'
import { prefix, type Store } from '@csb/store'
import {
  beginExport,
  collectGarbage,
  eraseVersions,
  importArchive,
  listRecycled,
  readFile,
  removeBranch,
  restoreBranch,
  restoreRecycled,
  resumeExport,
  streamExport,
  type ExportSources,
} from '../src/index.ts'
import { keepRecycled, recycledOf } from '../src/recycle.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, asText, openHome, snapshot } from './open-home.ts'

const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }
const ALL = { level: 'sealed', tags: ['*'] } as const
const LATER = NOW + 60_000
const RULES = { checkEvidence: () => undefined, finish: async () => undefined }
const MAGIC = Buffer.from('csb-archive 1.0\n')

const exported = async (store: Store, home: string): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  const begun = await beginExport(store, home, SOURCES, { now: NOW })
  for await (const part of streamExport(store, begun, SOURCES)) parts.push(part)
  const all = Buffer.concat(parts)
  expect(all.byteLength).toBe(begun.bytes)
  return all
}

const taken = (store: Store, archive: Uint8Array) => {
  const source = async function* () {
    yield archive
  }
  return importArchive(store, source(), { ...RULES, write: store.transact })
}

type Frame = { readonly kind: string; readonly body: Uint8Array }

/** All frames but the last. */
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
  const encode = ({ kind, body }: Frame): Buffer => {
    const head = Buffer.alloc(9)
    head.write(kind)
    head.writeBigUInt64BE(BigInt(body.byteLength), 1)
    return Buffer.concat([head, body])
  }
  const all = Buffer.concat([MAGIC, ...frames.map(encode)])
  return Buffer.concat([all, encode({ kind: 'Z', body: createHash('sha256').update(all).digest() })])
}

/** A home whose main has lost files by a merge, and that has lost a branch. */
async function openWithLoss() {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  await rig.write('runs/one', 'secret.sh', '#!/bin/sh\nsecret\n', 'private:agent:health')
  await rig.write('runs/one', 'docs/open.md', 'open\n', 'public:owner')
  await rig.merge('runs/one', 'main')
  await rig.write('runs/two', 'secret.sh', null)
  await rig.write('runs/two', 'docs/open.md', null)
  await rig.merge('runs/two', 'main')
  const { commit } = await rig.write('runs/three', 'only.md', 'only on a branch that is gone\n')
  await store.transact((tx) => removeBranch(tx, home.id, 'runs/three', { expect: commit, now: LATER }))
  return { store, home: home.id, removed: commit }
}

describe('what can be restored', () => {
  test('L0.3 L0.4 comes out of an archive byte for byte, with label, mode and date', async () => {
    const { store, home, removed } = await openWithLoss()
    const archive = await exported(store, home)
    const other = (await openHome()).store
    await taken(other, archive)
    expect(await exported(other, home)).toEqual(archive)
    const listed = (of: Store) => listRecycled(of.view(), home, { now: LATER, limit: 10, clearance: ALL })
    expect((await listed(other)).items).toHaveLength(3)
    expect(await listed(other)).toEqual(await listed(store))
    // what only the recycle area leads to is not collected
    for await (const _ of collectGarbage(other, home, { now: LATER })) continue
    const back = { ...WORDS, now: LATER, home, branch: 'runs/back', path: 'secret.sh', clearance: ALL }
    await other.transact((tx) => restoreRecycled(tx, back))
    const file = readFile(other.view(), { home, at: 'runs/back', path: 'secret.sh' })
    expect(asText(file.bytes)).toBe('#!/bin/sh\nsecret\n')
    expect(file.label).toEqual(parseLabel('private:agent:health'))
    await other.transact((tx) => restoreBranch(tx, home, 'runs/three', { now: LATER }))
    expect(asText(readFile(other.view(), { home, at: removed, path: 'only.md' }).bytes)).toMatch(/^only on/)
  })

  test('L0.3 is not restored past its date where it was imported either', async () => {
    const { store, home } = await openWithLoss()
    const other = (await openHome()).store
    await taken(other, await exported(store, home))
    const back = { ...WORDS, home, branch: 'runs/back', path: 'secret.sh', clearance: ALL }
    const late = { ...back, now: LATER + LIMITS.recycleMs }
    await expect(other.transact((tx) => restoreRecycled(tx, late))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('L3.4 what was forgotten is not among it, and ends an export that had begun', async () => {
    const { store, home } = await openWithLoss()
    const begun = await beginExport(store, home, SOURCES, { now: NOW })
    await store.transact((tx) => eraseVersions(tx, home, ['secret.sh']))
    await expect(resumeExport(store, home, SOURCES, begun.id)).rejects.toMatchObject({ code: 'CONFLICT' })
    const archive = await exported(store, home)
    const rows = framesOf(archive).filter(({ kind }) => kind === 'Y')
    expect(rows.map(({ body }) => Buffer.from(body).toString())).toEqual([
      expect.stringContaining('docs/open.md'),
      expect.stringContaining('runs/three'),
    ])
    const other = (await openHome()).store
    await taken(other, archive)
    expect(await exported(other, home)).toEqual(archive)
  })

  test('another label, another date or another place is another archive, and any altered byte is refused', async () => {
    const { store, home } = await openWithLoss()
    const archive = await exported(store, home)
    const other = (await openHome()).store
    const before = await snapshot(other)
    const [first] = framesOf(archive).filter(({ kind }) => kind === 'Y')
    const start = archive.indexOf(first?.body ?? '') - 9
    for (let at = start; at < start + 9 + (first?.body.byteLength ?? 0); at++) {
      const altered = Buffer.from(archive)
      altered[at] = (altered[at] ?? 0) ^ (1 << (at % 8))
      await expect(taken(other, altered), `byte ${at}`).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:MALFORMED|TOO_LARGE)$/) as string,
      })
    }
    expect(await snapshot(other)).toEqual(before)
  })

  test('more than anybody could take in is not begun, and nothing is kept of it', async () => {
    const { store, home } = await openWithLoss()
    const [first] = await recycledOf(store.view(), home)
    const deep = `${'x'.repeat(250)}/`.repeat(3)
    const rows = Math.ceil(LIMITS.archiveHeldBytes / 1000)
    for (let from = 0; from < rows; from += 10_000) {
      await store.transact((tx) => {
        for (let at = from; at < from + 10_000; at++)
          if (first !== undefined) keepRecycled(tx, home, { ...first, path: `${deep}${at}` })
      })
    }
    await expect(beginExport(store, home, SOURCES, { now: NOW })).rejects.toMatchObject({ code: 'TOO_LARGE' })
    for (const table of ['export', 'pin'] as const)
      for await (const [row] of store.view().range({ prefix: prefix(table, home) })) expect(row).toBeUndefined()
  })

  test('rows that lie are refused, whatever the digest says', async () => {
    const { store, home } = await openWithLoss()
    const frames = framesOf(await exported(store, home))
    const rows = frames.flatMap(({ kind }, at) => (kind === 'Y' ? [at] : []))
    const rowAt = (at: number) => JSON.parse(Buffer.from(frames[at]?.body ?? []).toString()) as Record<string, unknown>
    const isFile = (at: number): boolean => rowAt(at)['path'] !== null
    const [file = 0, branch = 0] = [rows.find(isFile), rows.find((at) => !isFile(at))]
    const changed = (at: number, change: object): Frame[] =>
      frames.map((old, index) =>
        index === at ? { kind: 'Y', body: utf8(canonicalize({ ...rowAt(at), ...change })) } : old,
      )
    const gone = 'f'.repeat(64)
    const row: Frame = frames[file] ?? { kind: 'Y', body: new Uint8Array() }
    const [first = 0, second = 0] = rows
    const swapped = [frames[first], frames[second]] as [Frame, Frame]
    const hostile: readonly (readonly [string, Frame[]])[] = [
      ['bytes that did not come', changed(file, { oid: gone })],
      ['a head that did not come', changed(branch, { oid: gone, commit: gone })],
      ['a branch named by another commit than its head', changed(branch, { commit: gone })],
      ['a path out of the tree', changed(file, { path: '../x' })],
      ['a path of git', changed(file, { path: '.git/config' })],
      ['a folder', changed(file, { mode: '40000' })],
      ['a file without a mode', changed(file, { mode: null })],
      ['a branch with a mode', changed(branch, { mode: '100644' })],
      ['a label that is none', changed(file, { label: 'nonsense' })],
      ['a time that is none', changed(file, { until: 1.5 })],
      ['a member too many', changed(file, { more: 1 })],
      ['the same twice', [...frames.slice(0, file + 1), row, ...frames.slice(file + 1)]],
      ['another order', frames.with(first, swapped[1]).with(second, swapped[0])],
      ['behind the objects', [...frames.filter((_, at) => at !== file), row]],
      ['none, so that objects came for nothing', frames.filter((_, at) => at !== branch)],
    ]
    const other = (await openHome()).store
    const before = await snapshot(other)
    for (const [name, made] of hostile)
      await expect(taken(other, archiveOf(made)), name).rejects.toMatchObject({ code: 'MALFORMED' })
    expect(await snapshot(other)).toEqual(before)
    await taken(other, archiveOf(frames))
  })

  test('what does harm to who clones is not put back, whoever says that it lay there', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    await rig.write('runs/one', 'a.txt', '[submodule "x"]\n\turl = -u./payload\n')
    const oid = (await store.transact((tx) => readFile(tx, { home: home.id, at: 'runs/one', path: 'a.txt' }))).oid
    const entry = { branch: 'runs/one', path: '.gitmodules', oid, mode: '100644', label: 'private:owner' } as const
    await store.transact((tx) => keepRecycled(tx, home.id, { ...entry, commit: oid, deletedAt: NOW, until: LATER + 1 }))
    const where = { ...WORDS, home: home.id, branch: 'runs/one', path: '.gitmodules', clearance: ALL, now: LATER }
    await expect(store.transact((tx) => restoreRecycled(tx, where))).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})
