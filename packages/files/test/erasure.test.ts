import { describe, expect, test } from 'vitest'
import { eraseKeys, scanFiles } from '@csb/store'
import {
  commitFiles,
  eraseVersions,
  erasedBlobs,
  findVersions,
  isErased,
  listFiles,
  readBlob,
  readCommit,
  readFile,
  readLog,
  removeBranch,
  writeBlob,
  type CommitFiles,
} from '../src/index.ts'
import { createTag } from '../src/tags.ts'
import { NOW, WORDS, asText, openHome, snapshot, text } from './open-home.ts'

const SECRET = 'the combination of the safe is 12 34 56 78, and it is behind the picture'

async function openSecret() {
  const { store, home } = await openHome()
  let now = NOW
  const commit = (branch: string, changes: Record<string, string | null>, extra: Partial<CommitFiles> = {}) =>
    store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        ...extra,
        home: home.id,
        branch,
        changes: Object.entries(changes).map(([path, value]) => ({ path, bytes: value === null ? null : text(value) })),
        now: (now += 1000),
      }),
    )
  const first = await commit('memory', { 'n/secret.md': SECRET, 'n/other.md': 'other' })
  await commit('memory', { 'n/secret.md': `${SECRET}, version two` })
  await commit('runs/one', { 'work.md': 'work' }, { from: 'memory' })
  await commit('runs/one', { 'n/secret.md': `${SECRET}, as the run has it` })
  await commit('memory', { 'n/secret.md': null })
  const eraseAll = (...paths: string[]) => store.transact((tx) => eraseVersions(tx, home.id, paths))
  const erase = async (path = 'n/secret.md') => {
    const [erased] = await eraseAll(path)
    if (erased === undefined) throw new Error('nothing was erased')
    return erased
  }
  return { eraseAll, store, home, commit, erase, first }
}

describe('erasing versions of a file', () => {
  test('every version in every history is out of reach at once; history and all else stay', async () => {
    const { store, home, erase, first } = await openSecret()
    const log = readLog(store.view(), { home: home.id, at: 'runs/one', limit: 50 })
    const { oids, kept } = await erase()
    expect(oids).toHaveLength(3)
    expect(kept).toEqual([])
    const view = store.view()
    for (const at of [first.commit, 'runs/one']) {
      expect(() => readFile(view, { home: home.id, at, path: 'n/secret.md' })).toThrow(
        expect.objectContaining({ code: 'FORGOTTEN' }),
      )
      expect(asText(readFile(view, { home: home.id, at, path: 'n/other.md' }).bytes)).toBe('other')
      expect(listFiles(view, { home: home.id, at, path: 'n' }).map(({ path }) => path)).toEqual([
        'n/other.md',
        'n/secret.md',
      ])
    }
    expect(readLog(view, { home: home.id, at: 'runs/one', limit: 50 })).toEqual(log)
  })

  test('neither the same bytes nor the same path are taken in again, and nothing is written by trying', async () => {
    const { store, home, commit, erase } = await openSecret()
    await erase()
    const before = await snapshot(store)
    await expect(commit('runs/two', { 'copy.md': SECRET })).rejects.toMatchObject({ code: 'FORGOTTEN' })
    for (const branch of ['memory', 'runs/two']) {
      await expect(commit(branch, { 'n/secret.md': 'another secret' })).rejects.toMatchObject({ code: 'FORGOTTEN' })
    }
    await expect(store.transact((tx) => writeBlob(tx, home.id, text(SECRET)))).rejects.toMatchObject({
      code: 'FORGOTTEN',
    })
    expect(await snapshot(store)).toEqual(before)
  })

  test('a branch that holds an erased file can still be written', async () => {
    const { commit, erase, store, home } = await openSecret()
    await erase()
    const done = await commit('runs/one', { 'n/new.md': 'new', 'work.md': null })
    expect(listFiles(store.view(), { home: home.id, at: done.commit, path: 'n' })).toHaveLength(3)
    await commit('runs/one', { 'n/secret.md': null })
    expect(listFiles(store.view(), { home: home.id, at: 'runs/one', path: 'n' })).toHaveLength(2)
  })

  test('bytes that a live file under another path needs stay, and it is named', async () => {
    const { store, home, commit, erase } = await openSecret()
    const copy = await commit('runs/two', { 'deep/copy.md': SECRET, 'deep/twin.md': SECRET })
    const oid = copy.changed[0]?.after ?? ''
    const { oids, kept } = await erase()
    expect(oids).toHaveLength(2)
    expect(kept).toEqual([
      { branch: 'runs/two', path: 'deep/copy.md', oid },
      { branch: 'runs/two', path: 'deep/twin.md', oid },
    ])
    expect(asText(readBlob(store.view(), home.id, oid))).toBe(SECRET)
  })

  test('a copy that is only in history does not keep the bytes', async () => {
    const { commit, erase } = await openSecret()
    await commit('runs/two', { 'copy.md': SECRET })
    await commit('runs/two', { 'copy.md': null, 'x.md': 'x' })
    expect(await erase()).toMatchObject({ oids: { length: 3 }, kept: [] })
  })

  test('many paths at once are what each of them is alone, with one walk through history', async () => {
    const { store, home, commit, eraseAll } = await openSecret()
    const paths = Array.from({ length: 40 }, (_, at) => `n/${at % 4}/${at}.md`)
    for (const path of paths) await commit('memory', { [path]: `of ${path}`, [`${path}.txt`]: path })
    for (const path of paths.slice(0, 9)) await commit('runs/one', { [path]: `${path} again` })
    await commit('runs/two', { 'copy.md': 'of n/1/5.md' })
    const asked = [...paths, 'n/secret.md', 'none', 'n/0']
    const alone = []
    for (const path of asked) alone.push(...(await findVersions(store.view(), home.id, [path])))
    const together = await eraseAll(...asked)
    expect(together).toEqual(alone)
    const counts = [2, 2, 2, 2, 2, 1, 2, 2, 2, ...Array.from({ length: 31 }, () => 1), 3, 0, 0]
    expect(together.map(({ oids }) => oids.length)).toEqual(counts)
    for (const { oids } of together) for (const oid of oids) expect(isErased(store.view(), home.id, oid)).toBe(true)
  })

  test('bytes that only files under forgotten paths share go with the last of them', async () => {
    const { commit, eraseAll } = await openSecret()
    await commit('runs/two', { 'one.md': 'shared', 'two.md': 'shared', 'three.md': 'theirs' })
    await commit('runs/three', { 'four.md': 'theirs' })
    const [one, two] = await eraseAll('one.md', 'two.md')
    expect([one, two]).toMatchObject([
      { oids: { length: 1 }, kept: [] },
      { oids: one?.oids, kept: [] },
    ])
    expect(await eraseAll('three.md')).toMatchObject([{ oids: [], kept: [{ path: 'four.md' }] }])
  })

  test('what only a tag or a branch that was removed leads to is reached as well', async () => {
    const { store, home, commit, erase } = await openSecret()
    const tagged = await commit('runs/two', { 'n/secret.md': `${SECRET}, tagged` })
    const removed = await commit('runs/three', { 'n/secret.md': `${SECRET}, removed` })
    await store.transact((tx) => {
      createTag(tx, home.id, 'v1', { oid: tagged.commit, now: NOW })
      removeBranch(tx, home.id, 'runs/two', { expect: tagged.commit, now: NOW })
      removeBranch(tx, home.id, 'runs/three', { expect: removed.commit, now: NOW })
    })
    const after = [tagged, removed].flatMap(({ changed }) => changed[0]?.after ?? [])
    expect(await erase()).toMatchObject({ oids: expect.arrayContaining(after) as unknown })
  })

  test('a path that never was, erases nothing', async () => {
    const { erase } = await openSecret()
    for (const path of ['n/none.md', 'n', 'n/secret.md/below']) {
      expect(await erase(path)).toEqual({ oids: [], kept: [] })
    }
    await expect(erase('../x')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('what was not put out of reach is not given to the erase routine', async () => {
    const { store, home, first } = await openSecret()
    const oid = first.changed[0]?.after ?? ''
    expect(() => erasedBlobs(store.view(), home.id, [oid])).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })

  test('after the erase routine neither the deflated nor the plain bytes are in any file', async () => {
    const { store, home, erase } = await openSecret()
    const { oids } = await erase()
    const { keys, blobs } = erasedBlobs(store.view(), home.id, oids)
    expect(blobs.map(({ bytes }) => asText(bytes).startsWith(SECRET))).toEqual([true, true, true])
    const stored = blobs.map((blob) => Uint8Array.from(blob.stored))
    expect(await scanFiles(store.directory, stored)).not.toEqual([])
    expect(await eraseKeys(store, keys, stored)).toEqual({ keys: 3, remains: [] })
    expect(await scanFiles(store.directory, [...stored.map((bytes) => bytes.subarray(-24)), text(SECRET)])).toEqual([])
    expect(erasedBlobs(store.view(), home.id, oids).blobs).toEqual([])
    expect(
      readCommit(
        store.view(),
        home.id,
        readLog(store.view(), { home: home.id, at: 'memory', limit: 1 })[0]?.commit ?? '',
      ).parents,
    ).toHaveLength(1)
    expect(() => readBlob(store.view(), home.id, oids[0] ?? '')).toThrow(expect.objectContaining({ code: 'FORGOTTEN' }))
  })
})
