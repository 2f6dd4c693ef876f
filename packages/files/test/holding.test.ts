import { expect, test } from 'vitest'
import { branchesHolding, commitFiles, moveRef } from '../src/index.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'

async function open() {
  const { store, home } = await openHome()
  const write = (branch: string, path: string, from?: string) =>
    store.transact((tx) => {
      const start = from === undefined ? {} : { from }
      const changes = [{ path, bytes: text(`${branch} ${path}`) }]
      return commitFiles(tx, { ...WORDS, home: home.id, branch, changes, ...start }).commit
    })
  const holding = (commits: readonly string[], without: readonly string[] = []) =>
    branchesHolding(store.view(), home.id, new Set(commits), new Set(without))
  return { store, home, write, holding }
}

test('a commit is held by each branch that leads to it, by a merge too, and by no other', async () => {
  const { store, home, write, holding } = await open()
  await write('runs/before', 'a.md')
  const one = await write('runs/one', 'a.md')
  await write('runs/one', 'b.md')
  await write('runs/child', 'c.md', one)
  await write('runs/other', 'd.md')
  expect(await holding([one])).toEqual({ branches: ['runs/child', 'runs/one'], commits: 1 })
  const rig = await openRig(store, home)
  await rig.merge('runs/child', 'runs/other')
  expect(await holding([one])).toEqual({ branches: ['runs/child', 'runs/one', 'runs/other'], commits: 1 })
  expect(await holding([])).toEqual({ branches: [], commits: 0 })
  expect(await holding(['f'.repeat(64)])).toEqual({ branches: [], commits: 0 })
})

test('a commit that changed nothing but what is asked about, or only took away, is passed over', async () => {
  const { store, home, write, holding } = await open()
  const [own, both] = [await write('runs/one', 'own.md'), await write('runs/two', 'own.md')]
  const more = await write('runs/two', 'b.md')
  const changes = [{ path: 'b.md', bytes: null }]
  const gone = (await store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/two', changes })))
    .commit
  await store.transact((tx) => moveRef(tx, home.id, 'runs/three', { expect: null, to: more, now: NOW }))
  expect(await holding([own, both, gone], ['own.md'])).toEqual({ branches: [], commits: 0 })
  expect(await holding([own, more], ['own.md'])).toEqual({ branches: ['runs/three', 'runs/two'], commits: 1 })
})
