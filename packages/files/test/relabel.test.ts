import { describe, expect, test } from 'vitest'
import { LIMITS, parseLabel } from '@csb/core'
import { key } from '@csb/store'
import {
  applyRelabel,
  commitFiles,
  commitsBetween,
  getRef,
  listFiles,
  previewRelabel,
  readCommit,
  writeBlobStream,
  writeCommit,
} from '../src/index.ts'
import { NOW, WORDS, openHome, snapshot, text } from './open-home.ts'

const PUBLIC = parseLabel('public:owner')

async function stand() {
  const { store, home } = await openHome()
  const changes = ['a.md', 'x/b.md', 'x/y/c.md'].map((path) => ({ path, bytes: text(path) }))
  const labels = [{ path: 'x/y', label: parseLabel('sealed:owner:health') }]
  await store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/1', changes, labels }))
  return { store, home: home.id, at: { home: home.id, branch: 'runs/1' } }
}

describe('what a new label would change', () => {
  test('is told file by file, and nothing is written', async () => {
    const { store, at } = await stand()
    const before = await snapshot(store)
    const { files, base } = previewRelabel(store.view(), { ...at, path: 'x', label: parseLabel('trusted:owner') })
    expect(files.map(({ path, label_old: old, label_new: now }) => [path, old, now])).toEqual([
      ['x/b.md', 'private:owner', 'trusted:owner'],
    ])
    expect(base).toBe(getRef(store.view(), at.home, 'runs/1')?.commit)
    expect(await snapshot(store)).toEqual(before)
  })

  test('is told of a file that is too large to be held, by its id, and of one that was forgotten', async () => {
    const { store, home, at } = await stand()
    const bytes = LIMITS.blobBytes + 1
    const piece = new Uint8Array(1024 * 1024)
    const large = await writeBlobStream(store, home, {
      bytes,
      open: async function* () {
        for (let left = bytes; left > 0; left -= piece.byteLength)
          yield piece.subarray(0, Math.min(left, piece.byteLength))
      },
    })
    const change = { path: 'x/large.bin', bytes: { mode: '100644', oid: large } as const }
    await store.transact((tx) => commitFiles(tx, { ...WORDS, home, branch: 'runs/1', changes: [change] }))
    const { files } = previewRelabel(store.view(), { ...at, path: 'x', label: parseLabel('trusted:owner') })
    expect(files.find(({ path }) => path === change.path)).toMatchObject({
      op: 'label',
      sha256_old: null,
      sha256_new: null,
      oid_old: large,
      oid_new: large,
      size_new: bytes,
      label_new: 'trusted:owner',
    })
    const gone = listFiles(store.view(), { home, at: 'runs/1', path: 'x' }).find(({ path }) => path === 'x/b.md')
    await store.transact((tx) => tx.put(key('erased', home, gone?.oid ?? ''), new Uint8Array()))
    const after = previewRelabel(store.view(), { ...at, path: 'x/b.md', label: parseLabel('trusted:owner') })
    expect(after.files).toMatchObject([{ path: 'x/b.md', sha256_old: null, size_old: null }])
  })

  test('is refused where there is nothing, or nothing that bears a label', async () => {
    const { store, at } = await stand()
    const preview = (path: string) => () => previewRelabel(store.view(), { ...at, path, label: PUBLIC })
    expect(preview('none.md')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    expect(preview('.csb/labels.json')).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
    expect(preview('../a.md')).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})

describe('a label that is set', () => {
  test('does on a branch what the preview said, on a protected one too, and the files stay', async () => {
    const { store, home } = await stand()
    const main = getRef(store.view(), home, 'main')
    const head = main?.commit ?? ''
    await expect(
      store.transact((tx) =>
        applyRelabel(tx, { ...WORDS, home, branch: 'main', path: 'a', label: PUBLIC, expect: 'f'.repeat(64) }),
      ),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
    const { commit } = await store.transact((tx) =>
      applyRelabel(tx, { ...WORDS, home, branch: 'main', path: 'a', label: PUBLIC, expect: head }),
    )
    expect(getRef(store.view(), home, 'main')).toMatchObject({ commit, protected: true })

    const at = { home, branch: 'runs/1' }
    const { base } = previewRelabel(store.view(), { ...at, path: 'a.md', label: PUBLIC })
    const before = listFiles(store.view(), { home, at: 'runs/1', recursive: true })
    await store.transact((tx) => applyRelabel(tx, { ...WORDS, ...at, path: 'a.md', label: PUBLIC, expect: base }))
    const after = listFiles(store.view(), { home, at: 'runs/1', recursive: true })
    expect(after.find(({ path }) => path === 'a.md')?.label.level).toBe('public')
    const files = (list: typeof after) => list.filter(({ path }) => !path.startsWith('.csb')).map(({ oid }) => oid)
    expect(files(after)).toEqual(files(before))
  })
})

test('commits between two lines are those of the one alone, through merges too', async () => {
  const { store, home } = await openHome()
  const root = getRef(store.view(), home.id, 'main')?.commit ?? ''
  const make = (parents: string[], second: number) =>
    store.transact((tx) => {
      const person = { ...WORDS.author, at: NOW + second * 1000 }
      const { tree } = readCommit(tx, home.id, root)
      return writeCommit(tx, home.id, {
        tree,
        parents,
        author: person,
        committer: person,
        message: `${second}`,
        trailers: {},
      })
    })
  const a = await make([root], 1)
  const b = await make([root], 2)
  const c = await make([a, b], 3)
  const d = await make([c], 4)
  const between = (from: string, without: string, limit = 10) =>
    commitsBetween(store.view(), home.id, { from, without, limit })
  expect(between(d, a)).toEqual([d, c, b])
  expect(between(d, root)).toEqual([d, c, b, a])
  expect(between(b, a)).toEqual([b])
  expect(between(a, d)).toEqual([])
  expect(() => between(d, root, 2)).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))
})
