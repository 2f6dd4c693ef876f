import { describe, expect, test } from 'vitest'
import { LIMITS, parseLabel } from '@csb/core'
import { key } from '@csb/store'
import {
  changeRef,
  createSnapshot,
  eraseVersions,
  getRef,
  listRecycled,
  moveRef,
  readFile,
  removeBranch,
  restoreBranch,
  restoreRecycled,
} from '../src/index.ts'
import { expireRecycled } from '../src/recycle.ts'
import { advanceRef } from '../src/refs.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, asText, openHome, snapshot } from './open-home.ts'

const ALL = { level: 'sealed', tags: ['*'] } as const
const LATER = NOW + 60_000
const END = LATER + LIMITS.recycleMs

/** A home whose main has lost `secret.md`, labelled, by a merge. */
async function openWithLoss() {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  await rig.write('runs/one', 'secret.md', '#!/bin/sh\nsecret\n', 'private:agent:health')
  await rig.write('runs/one', 'open.md', 'open\n', 'public:owner')
  await rig.merge('runs/one', 'main')
  await rig.write('runs/two', 'secret.md', null)
  await rig.write('runs/two', 'open.md', null)
  const { commit } = await rig.merge('runs/two', 'main')
  const list = (now = LATER, clearance: { level: 'public' | 'sealed'; tags: readonly string[] } = ALL) =>
    listRecycled(store.view(), home.id, { now, limit: 10, clearance })
  const restore = (path: string, change: object = {}) =>
    store.transact((tx) =>
      restoreRecycled(tx, {
        ...WORDS,
        now: LATER,
        home: home.id,
        branch: 'runs/back',
        path,
        clearance: ALL,
        ...change,
      }),
    )
  return { store, home, rig, commit, list, restore }
}

describe('the recycle area', () => {
  test('L0.3 a file that a merge deleted comes back byte for byte, with its label and its mode', async () => {
    const { store, home, rig, restore } = await openWithLoss()
    expect(rig.files('main')).toEqual({})
    const done = await restore('secret.md')
    const file = readFile(store.view(), { home: home.id, at: 'runs/back', path: 'secret.md' })
    expect(asText(file.bytes)).toBe('#!/bin/sh\nsecret\n')
    expect(file.label).toEqual(parseLabel('private:agent:health'))
    expect(done.restored).toMatchObject({ branch: 'main', path: 'secret.md', label: 'private:agent:health' })
    await rig.merge('runs/back', 'main')
    expect(rig.labels('main')).toMatchObject({ 'secret.md': 'private:agent:health' })
  })

  test('L0.3 it comes back with its label also where the label has gone since', async () => {
    const { store, home, rig, restore } = await openWithLoss()
    await rig.set('runs/back', { other: '1' })
    await restore('secret.md')
    expect(rig.labels('runs/back')).toMatchObject({ 'secret.md': 'private:agent:health' })
    expect(readFile(store.view(), { home: home.id, at: 'runs/back', path: 'other' })).toBeDefined()
  })

  test('an executable file comes back executable', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    await rig.set('main', { 'run.sh': '#!/bin/sh\n' })
    await rig.write('runs/one', 'run.sh', null)
    await rig.merge('runs/one', 'main')
    const branch = { home: home.id, branch: 'runs/back', path: 'run.sh', clearance: ALL }
    await store.transact((tx) => restoreRecycled(tx, { ...WORDS, ...branch, now: LATER }))
    expect(rig.modes('runs/back')).toEqual({ 'run.sh': '100755' })
  })

  test('is listed latest first, in pages, with what deleted it', async () => {
    const { store, home, list, commit } = await openWithLoss()
    const { items } = await list()
    expect(items).toMatchObject([
      { path: 'secret.md', commit },
      { path: 'open.md', commit },
    ])
    const query = { now: LATER, limit: 1, clearance: ALL }
    const first = await listRecycled(store.view(), home.id, query)
    const second = await listRecycled(store.view(), home.id, { ...query, after: first.next ?? '' })
    expect([...first.items, ...second.items]).toEqual(items)
    expect(second.next).toBeNull()
  })

  test('what a reader may not see is not there for him', async () => {
    const { list, restore } = await openWithLoss()
    const clearance = { level: 'public', tags: [] } as const
    expect((await list(LATER, clearance)).items.map(({ path }) => path)).toEqual(['open.md'])
    await expect(restore('secret.md', { clearance })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('ends on its date, and is collected then and not before', async () => {
    const { store, home, list, restore } = await openWithLoss()
    const until = (await list()).items[0]?.until ?? 0
    expect(until).toBeGreaterThan(NOW + LIMITS.recycleMs)
    expect(await store.transact((tx) => expireRecycled(tx, home.id, until - 1, 100))).toBe(0)
    expect((await list(until - 1)).items).toHaveLength(2)
    expect((await list(until)).items).toHaveLength(0)
    await expect(restore('secret.md', { now: until })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await store.transact((tx) => expireRecycled(tx, home.id, END, 1))).toBe(1)
    expect(await store.transact((tx) => expireRecycled(tx, home.id, END, 100))).toBe(1)
  })

  test('what was forgotten is neither listed nor restored', async () => {
    const { store, home, list, restore } = await openWithLoss()
    await store.transact((tx) => eraseVersions(tx, home.id, ['secret.md']))
    expect((await list()).items.map(({ path }) => path)).toEqual(['open.md'])
    await expect(restore('secret.md')).rejects.toMatchObject({ code: 'FORGOTTEN' })
  })

  test.each([
    ['into a protected branch', { branch: 'main' }, 'PROTECTED'],
    ['of another merge', { deletedBy: '0'.repeat(64) }, 'NOT_FOUND'],
    ['with a head that has moved', { expect: '0'.repeat(64) }, 'CONFLICT'],
    ['onto a path like ../x', { path: '../x' }, 'INVALID_INPUT'],
  ])('nothing is restored %s', async (_, change, code) => {
    const { store, restore } = await openWithLoss()
    const before = await snapshot(store)
    await expect(restore('secret.md', change)).rejects.toMatchObject({ code })
    expect(await snapshot(store)).toEqual(before)
  })

  test('a file is not restored over another, nor below one', async () => {
    const { rig, restore } = await openWithLoss()
    await rig.write('runs/back', 'secret.md', 'new')
    await expect(restore('secret.md')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(rig.files('runs/back')).toEqual({ 'secret.md': 'new' })
  })

  test('a file that moved is not in it', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    await rig.set('main', { 'a.md': 'text\n' })
    await rig.write('runs/one', 'a.md', null)
    await rig.write('runs/one', 'b.md', 'text\n')
    expect((await rig.merge('runs/one', 'main')).preview.manifest).toMatchObject([
      { op: 'rename', path: 'b.md', path_old: 'a.md' },
    ])
    expect((await listRecycled(store.view(), home.id, { now: LATER, limit: 10, clearance: ALL })).items).toEqual([])
  })

  test('a branch that was removed comes back at its head', async () => {
    const { store, home, rig } = await openWithLoss()
    const { commit } = await rig.write('runs/three', 'x', '1')
    await store.transact((tx) => removeBranch(tx, home.id, 'runs/three', { expect: commit, now: LATER }))
    expect(getRef(store.view(), home.id, 'runs/three')).toBeUndefined()
    await store.transact((tx) => restoreBranch(tx, home.id, 'runs/three', { now: LATER }))
    expect(getRef(store.view(), home.id, 'runs/three')?.commit).toBe(commit)
    await expect(
      store.transact((tx) => restoreBranch(tx, home.id, 'runs/three', { now: LATER })),
    ).rejects.toMatchObject({
      code: 'CONFLICT',
    })
  })

  test('L0.3 heads that a push leaves behind are kept, each branch for itself, and come back under another name', async () => {
    const { store, home, rig } = await openWithLoss()
    const first = await rig.write('runs/three', 'x', '1')
    const second = await rig.write('runs/three', 'x', '2')
    const third = await rig.write('runs/three', 'x', '3')
    const push = (branch: string, from: string | null, to: string | null) =>
      store.transact((tx) =>
        changeRef(tx, home.id, { name: `refs/heads/${branch}`, from, to }, { now: LATER, outside: false }),
      )
    const kept = async () =>
      (await listRecycled(store.view(), home.id, { now: LATER, limit: 10, clearance: ALL })).items
        .filter(({ path }) => path === null)
        .map(({ branch, oid }) => `${branch} ${oid}`)
    await push('runs/four', null, third.commit)
    await push('runs/four', third.commit, first.commit)
    await push('runs/three', third.commit, second.commit)
    await push('runs/three', second.commit, first.commit)
    const heads = [`runs/four ${third.commit}`, `runs/three ${second.commit}`, `runs/three ${third.commit}`]
    expect(new Set(await kept())).toEqual(new Set(heads))
    // forwards nothing is left behind
    await push('runs/three', first.commit, third.commit)
    expect(await kept()).toHaveLength(3)
    const restore = (as: string, head?: string) =>
      store.transact((tx) =>
        restoreBranch(tx, home.id, 'runs/three', { now: LATER, as, ...(head === undefined ? {} : { head }) }),
      )
    await expect(restore('runs/three')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await restore('runs/old', third.commit)).toEqual({ commit: third.commit })
    expect(await restore('runs/older', second.commit)).toEqual({ commit: second.commit })
    await push('runs/old', third.commit, null)
    await push('runs/three', third.commit, null)
    expect(await kept()).toContain(`runs/old ${third.commit}`)
    expect(await kept()).toContain(`runs/three ${third.commit}`)
  })

  test.each([
    ['main', 'PROTECTED'],
    ['memory', 'PROTECTED'],
    ['runs/none', 'NOT_FOUND'],
  ])('%s is not removed', async (branch, code) => {
    const { store, home } = await openWithLoss()
    const head = getRef(store.view(), home.id, branch)?.commit ?? ''
    await expect(
      store.transact((tx) => removeBranch(tx, home.id, branch, { expect: head, now: LATER })),
    ).rejects.toMatchObject({ code })
  })
})

describe('a snapshot', () => {
  test('L1.4 no function moves, replaces or removes one', async () => {
    const { store, home, rig } = await openWithLoss()
    const { branch, commit } = await store.transact((tx) =>
      createSnapshot(tx, home.id, { name: 'before', of: 'main', now: LATER }),
    )
    expect(getRef(store.view(), home.id, 'snapshots/before')).toMatchObject({ commit, protected: true })
    const other = (await rig.write('runs/four', 'x', '1')).commit
    const at = { expect: commit, to: other, now: LATER }
    const before = await snapshot(store)
    for (const [work, code] of [
      [(tx: never) => moveRef(tx, home.id, branch, at), 'PROTECTED'],
      [(tx: never) => advanceRef(tx, home.id, branch, at), 'PROTECTED'],
      [(tx: never) => moveRef(tx, home.id, 'snapshots/new', { ...at, expect: null }), 'PROTECTED'],
      [(tx: never) => removeBranch(tx, home.id, branch, { expect: commit, now: LATER }), 'PROTECTED'],
      [(tx: never) => createSnapshot(tx, home.id, { name: 'before', of: other, now: LATER }), 'CONFLICT'],
    ] as const)
      await expect(store.transact((tx) => work(tx as never))).rejects.toMatchObject({ code })
    await expect(rig.merge('runs/four', branch)).rejects.toMatchObject({ code: 'PROTECTED' })
    await expect(rig.write(branch, 'x', '1')).rejects.toMatchObject({ code: 'PROTECTED' })
    expect(await snapshot(store)).toEqual(before)
  })

  test('costs one row', async () => {
    const { store, home } = await openWithLoss()
    const before = await snapshot(store)
    await store.transact((tx) => createSnapshot(tx, home.id, { name: 'cheap', of: 'main', now: LATER }))
    const added = [...(await snapshot(store)).keys()].filter((k) => !before.has(k))
    expect(added).toEqual([key('ref', home.id, 'snapshots/cheap')])
  })

  test('of nothing, or with a name that no branch may have, is refused', async () => {
    const { store, home } = await openWithLoss()
    const make = (name: string, of: string) =>
      store.transact((tx) => createSnapshot(tx, home.id, { name, of, now: LATER }))
    await expect(make('x', 'runs/none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(make('../x', 'main')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})
