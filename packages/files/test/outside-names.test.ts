/** Names of branches that a session gave after it had read from outside: that is known of them as long as they are told. */
import { expect, test } from 'vitest'
import {
  beginExport,
  commitFiles,
  createSnapshot,
  getRef,
  importArchive,
  listGitRefs,
  listRecycled,
  listRefs,
  moveRef,
  removeBranch,
  restoreBranch,
  streamExport,
  type ExportSources,
} from '../src/index.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'

const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }
const ALL = { level: 'sealed', tags: ['*'] } as const

async function stand() {
  const { store, home } = await openHome()
  const write = (branch: string, path: string, outside = false) =>
    store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        home: home.id,
        branch,
        changes: [{ path, bytes: text(path) }],
        outside,
        words: outside,
      }),
    )
  const marked = async () =>
    (await listRefs(store.view(), home.id)).filter(({ outside }) => outside === true).map(({ branch }) => branch)
  return { store, home: home.id, write, marked }
}

test('a name keeps its mark however the branch moves, and a clean session gives none', async () => {
  const { store, home, write, marked } = await stand()
  await write('runs/clean', 'a')
  await write('runs/obey-me', 'a', true)
  await write('runs/obey-me', 'b')
  // what is there already is no name that is given
  await write('runs/clean', 'b', true)
  const head = getRef(store.view(), home, 'runs/clean')?.commit ?? ''
  await store.transact((tx) => moveRef(tx, home, 'runs/at', { expect: null, to: head, now: NOW, outside: true }))
  await store.transact((tx) => createSnapshot(tx, home, { name: 'kept', of: 'main', now: NOW, outside: true }))
  expect(await marked()).toEqual(['runs/at', 'runs/obey-me', 'snapshots/kept'])
  const told = await listGitRefs(store.view(), home)
  expect(told.filter(({ outside }) => outside === true).map(({ name }) => name)).toEqual([
    'refs/heads/runs/at',
    'refs/heads/runs/obey-me',
    'refs/snapshots/kept',
  ])
})

test('a name that is removed bears it in the recycle area and when it comes back, a new name of its own does not', async () => {
  const { store, home, write, marked } = await stand()
  const { commit } = await write('runs/obey-me', 'a', true)
  await store.transact((tx) => removeBranch(tx, home, 'runs/obey-me', { expect: commit, now: NOW }))
  const { items } = await listRecycled(store.view(), home, { now: NOW, limit: 9, clearance: ALL })
  expect(items).toMatchObject([{ branch: 'runs/obey-me', outside: true }])
  await store.transact((tx) => restoreBranch(tx, home, 'runs/obey-me', { now: NOW, as: 'runs/plain' }))
  expect(await marked()).toEqual([])
  await store.transact((tx) => restoreBranch(tx, home, 'runs/obey-me', { now: NOW }))
  expect(await marked()).toEqual(['runs/obey-me'])
})

test('L0.4 it goes along with an export, which is the same after it was taken in', async () => {
  const { store, home, write, marked } = await stand()
  const { commit } = await write('runs/gone', 'a', true)
  await store.transact((tx) => removeBranch(tx, home, 'runs/gone', { expect: commit, now: NOW }))
  await write('runs/obey-me', 'b', true)
  const exported = async (from: typeof store): Promise<Buffer> => {
    const parts: Uint8Array[] = []
    for await (const part of streamExport(from, await beginExport(from, home, SOURCES, { now: NOW }), SOURCES))
      parts.push(part)
    return Buffer.concat(parts)
  }
  const archive = await exported(store)
  const other = (await openHome()).store
  const source = async function* () {
    yield archive
  }
  await importArchive(other, source(), {
    checkEvidence: () => undefined,
    write: other.transact,
    finish: async () => undefined,
  })
  expect(await exported(other)).toEqual(archive)
  const there = await listRefs(other.view(), home)
  expect(there.filter(({ outside, words }) => outside === true && words === true)).toHaveLength(1)
  expect(await marked()).toEqual(['runs/obey-me'])
})
