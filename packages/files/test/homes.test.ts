import { describe, expect, test } from 'vitest'
import { createKeyPair } from '@csb/core'
import {
  createHome,
  findHome,
  getHome,
  getRef,
  listHomes,
  listRefs,
  moveRef,
  readCommit,
  readTree,
  writeCommit,
} from '../src/index.ts'
import { NOW, OWNER, openHome, snapshot } from './open-home.ts'

describe('homes', () => {
  test('a new home has main, protected, and memory at one root with an empty tree', async () => {
    const { store, home } = await openHome()
    const view = store.view()
    expect(home).toMatchObject({ hash: 'sha256', owner: OWNER.did, createdAt: NOW })
    expect(home.id).toMatch(/^home_[a-z2-7]{26}$/)
    expect(getHome(view, home.id)).toEqual(home)
    const [main, memory] = await listRefs(view, home.id)
    expect(main).toMatchObject({ branch: 'main', protected: true })
    expect(memory).toMatchObject({ branch: 'memory', protected: false, commit: main?.commit })
    const root = readCommit(view, home.id, main?.commit ?? '')
    expect(root.parents).toEqual([])
    expect(readTree(view, home.id, root.tree)).toEqual([])
  })

  test('a replica made elsewhere, later, for the same home has the same root', async () => {
    const { store, home } = await openHome()
    const other = await openHome()
    const replica = { id: home.id, owner: OWNER.did, origin: createKeyPair().did, now: NOW + 86_400_000 }
    await other.store.transact((tx) => createHome(tx, replica))
    expect(getRef(other.store.view(), home.id, 'main')?.commit).toBe(getRef(store.view(), home.id, 'main')?.commit)
    expect(getRef(other.store.view(), other.home.id, 'main')?.commit).not.toBe(
      getRef(store.view(), home.id, 'main')?.commit,
    )
    expect((await listHomes(other.store.view())).map(({ id }) => id).sort()).toEqual([home.id, other.home.id].sort())
  })

  test('a home that is here, a bad id, a bad did and a bad hash are refused and nothing is written', async () => {
    const { store, home } = await openHome()
    const before = await snapshot(store)
    const make = (change: object) =>
      store.transact((tx) => createHome(tx, { owner: OWNER.did, origin: OWNER.did, now: NOW, ...change }))
    await expect(make({ id: home.id })).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(make({ id: 'home_x' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(make({ id: `../${home.id}` })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(make({ owner: 'did:key:zabc' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(make({ hash: 'md5' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await snapshot(store)).toEqual(before)
  })

  test('a home that is not here is NOT_FOUND', async () => {
    const { store } = await openHome()
    expect(findHome(store.view(), 'home_x')).toBeUndefined()
    expect(() => getHome(store.view(), 'home_x')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    await expect(listRefs(store.view(), 'home_x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('branches', () => {
  test('a branch moves only from the head the caller saw', async () => {
    const { store, home } = await openHome()
    const root = getRef(store.view(), home.id, 'main')?.commit ?? ''
    const { tree } = readCommit(store.view(), home.id, root)
    const person = { name: 'Ada', did: OWNER.did, at: NOW }
    const next = (message: string) => ({
      tree,
      parents: [root],
      author: person,
      committer: person,
      message,
      trailers: {},
    })
    const race = ['one', 'two'].map((message) =>
      store.transact((tx) =>
        moveRef(tx, home.id, 'runs/x', { expect: null, to: writeCommit(tx, home.id, next(message)), now: NOW }),
      ),
    )
    const [first, second] = await Promise.allSettled(race)
    expect(first).toMatchObject({ status: 'fulfilled' })
    const head = getRef(store.view(), home.id, 'runs/x')?.commit
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'CONFLICT', details: { head } } })
    const moved = await store.transact((tx) =>
      moveRef(tx, home.id, 'runs/x', { expect: head ?? '', to: root, now: NOW + 1 }),
    )
    expect(moved).toEqual({ commit: root, protected: false, updatedAt: NOW + 1 })
  })

  test('L0.2 a protected branch does not move, whatever the caller expects', async () => {
    const { store, home } = await openHome()
    const root = getRef(store.view(), home.id, 'main')?.commit ?? ''
    const before = await snapshot(store)
    for (const seen of [root, null, '0'.repeat(64)]) {
      const move = store.transact((tx) => moveRef(tx, home.id, 'main', { expect: seen, to: root, now: NOW }))
      await expect(move).rejects.toMatchObject({ code: 'PROTECTED' })
    }
    expect(await snapshot(store)).toEqual(before)
  })

  test('a branch does not move to what is no commit of the home', async () => {
    const { store, home } = await openHome()
    const other = await openHome('sha1')
    const { tree } = readCommit(store.view(), home.id, getRef(store.view(), home.id, 'main')?.commit ?? '')
    const foreign = getRef(other.store.view(), other.home.id, 'main')?.commit ?? ''
    for (const to of [tree, foreign, 'main', '']) {
      const move = store.transact((tx) => moveRef(tx, home.id, 'runs/x', { expect: null, to, now: NOW }))
      await expect(move).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(getRef(store.view(), home.id, 'runs/x')).toBeUndefined()
  })
})
