import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { LIMITS } from '@csb/core'
import { key, prefix, tail, type Store } from '@csb/store'
import {
  checkHome,
  collectGarbage,
  commitFiles,
  createSnapshot,
  eraseVersions,
  getRef,
  listFiles,
  moveRef,
  pinObjects,
  readBlob,
  readCommit,
  removeBranch,
  restoreRecycled,
  unpin,
  writeBlob,
} from '../src/index.ts'
import { CODES, encodeHeader } from '../src/entry.ts'
import { oidOf } from '../src/objects.ts'
import { putEntry, putPiece } from '../src/stored.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, objectIds, openHome, text } from './open-home.ts'

const ALL = { level: 'sealed', tags: ['*'] } as const
const AFTER = NOW + 2 * LIMITS.recycleMs

async function collect(store: Store, home: string, now = NOW) {
  let last = { kept: 0, removed: 0, expired: 0, isPaused: false }
  for await (const step of collectGarbage(store, home, { now })) last = step
  return last
}

async function open() {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  const garbage = (content: string) => store.transact((tx) => writeBlob(tx, home.id, text(content)))
  const has = (oid: string) => store.view().has(key('object', home.id, oid))
  const isWhole = async () => expect((await checkHome(store.view(), home.id, { now: NOW })).damaged).toEqual([])
  return { store, home: home.id, rig, garbage, has, isWhole }
}

describe('garbage collection', () => {
  test('takes what nothing leads to, and nothing else', async () => {
    const { store, home, rig, garbage, isWhole } = await open()
    await rig.write('runs/one', 'a/b', '1', 'private:agent')
    await rig.write('runs/one', 'a/c', '2')
    await rig.merge('runs/one', 'main')
    const before = await objectIds(store, home)
    await garbage('nobody')
    await garbage('wants this')
    expect(await collect(store, home)).toMatchObject({ removed: 2, kept: before.length })
    expect(await objectIds(store, home)).toEqual(before)
    await isWhole()
  })

  test('L0.3 what a removed branch and a deleted file need stays until its date, and goes then', async () => {
    const { store, home, rig, has, isWhole } = await open()
    const { commit } = await rig.write('runs/one', 'only/here', 'lonely')
    await store.transact((tx) => removeBranch(tx, home, 'runs/one', { expect: commit, now: NOW }))
    expect(await collect(store, home)).toMatchObject({ removed: 0, expired: 0 })
    expect(has(commit)).toBe(true)
    await isWhole()
    // commit, two trees, blob
    expect(await collect(store, home, AFTER)).toMatchObject({ removed: 4, expired: 1 })
    expect(has(commit)).toBe(false)
    await isWhole()
  })

  test('L0.3 a deleted file is restored after a collection, also when its history has gone', async () => {
    const { store, home, rig } = await open()
    await rig.set('runs/base', { a: 'x\n', gone: 'precious\n' })
    await rig.write('runs/into', 'b', '1', undefined, 'runs/base')
    await rig.write('runs/from', 'gone', null, undefined, 'runs/base')
    await rig.merge('runs/from', 'runs/into')
    for (const branch of ['runs/base', 'runs/into', 'runs/from']) {
      await store.transact((tx) => tx.del(key('ref', home, branch)))
    }
    expect((await collect(store, home)).removed).toBeGreaterThan(5)
    const into = { home, branch: 'runs/back', path: 'gone', clearance: ALL }
    await store.transact((tx) => restoreRecycled(tx, { ...WORDS, ...into }))
    expect(rig.files('runs/back')).toEqual({ gone: 'precious\n' })
  })

  test('L1.4 what a snapshot leads to stays when its branch goes', async () => {
    const { store, home, rig, has, isWhole } = await open()
    const { commit } = await rig.write('runs/one', 'a', '1')
    await store.transact((tx) => createSnapshot(tx, home, { name: 'kept', of: 'runs/one', now: NOW }))
    await store.transact((tx) => removeBranch(tx, home, 'runs/one', { expect: commit, now: NOW }))
    expect(await collect(store, home, AFTER)).toMatchObject({ removed: 0 })
    expect(has(commit)).toBe(true)
    await isWhole()
  })

  test('leaves what is pinned with all it leads to, until it is unpinned or its time is over', async () => {
    const { store, home, rig, has } = await open()
    const { commit } = await rig.write('runs/one', 'a', '1')
    await store.transact((tx) => {
      pinObjects(tx, home, { id: 'export_1', kind: 'export', oids: [commit], until: AFTER + 2 })
      tx.del(key('ref', home, 'runs/one'))
    })
    expect(await collect(store, home, AFTER + 1)).toMatchObject({ removed: 0 })
    expect(await collect(store, home, AFTER + 2)).toMatchObject({ removed: 3, expired: 1 })
    expect(has(commit)).toBe(false)
    const evidence = (await rig.write('runs/two', 'b', '2')).commit
    await store.transact((tx) => {
      pinObjects(tx, home, { id: 'evidence_1', kind: 'evidence', oids: [evidence], until: null })
      tx.del(key('ref', home, 'runs/two'))
    })
    expect(await collect(store, home, AFTER * 2)).toMatchObject({ removed: 0 })
    await store.transact((tx) => unpin(tx, home, 'evidence_1'))
    expect(await collect(store, home, AFTER * 2)).toMatchObject({ removed: 3 })
  })

  test('takes nothing while an ingest is under way', async () => {
    const { store, home, garbage, has } = await open()
    await store.transact((tx) => pinObjects(tx, home, { id: 'push_1', kind: 'ingest', oids: [], until: AFTER }))
    const oid = await garbage('on its way')
    expect(await collect(store, home)).toMatchObject({ removed: 0, isPaused: true })
    expect(has(oid)).toBe(true)
    expect(await collect(store, home, AFTER)).toMatchObject({ removed: 1, isPaused: false })
  })

  test('sees what is written between its steps', async () => {
    const { store, home, garbage, has, isWhole } = await open()
    const oids = await Promise.all(Array.from({ length: 20 }, (_, i) => garbage(`blob ${i}`)))
    const steps = collectGarbage(store, home, { now: NOW })
    // everything is marked, nothing is gone
    await steps.next()
    await store.transact((tx) =>
      commitFiles(tx, { ...WORDS, home, branch: 'runs/one', changes: [{ path: 'a', bytes: text('blob 7') }] }),
    )
    for await (const _ of steps) continue
    expect(oids.filter(has)).toEqual([oids[7]])
    await isWhole()
  })

  test('takes nothing from a home in which a commit is missing or damaged', async () => {
    const { store, home, rig, garbage, has } = await open()
    const { parent } = await rig.write('runs/one', 'a', '1')
    const { tree } = readCommit(store.view(), home, parent)
    const oid = await garbage('nobody')
    await store.transact((tx) => tx.put(key('object', home, tree), text('spoiled')))
    await expect(collect(store, home)).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
    await store.transact((tx) => tx.del(key('object', home, tree)))
    await expect(collect(store, home)).rejects.toMatchObject({ code: 'OBJECT_DAMAGED', details: { oid: tree } })
    expect(has(oid)).toBe(true)
  })

  test('leaves forgotten bytes to the erase routine', async () => {
    const { store, home, rig, has } = await open()
    await rig.write('runs/one', 'secret', 'forget me')
    const [oids = []] = (await store.transact((tx) => eraseVersions(tx, home, ['secret']))).map((one) => one.oids)
    await store.transact((tx) => tx.del(key('ref', home, 'runs/one')))
    await collect(store, home)
    expect(oids.every(has)).toBe(true)
  })

  test('a base stays as long as a delta stands on it, and goes with the last of them', async () => {
    const { store, home, rig, garbage, has, isWhole } = await open()
    const base = await garbage('what the delta stands on')
    await store.transact((tx) => {
      const body = text('a delta')
      const delta = Buffer.from([24, body.byteLength, body.byteLength, ...body])
      const oid = oidOf('sha256', 'blob', body)
      const value = [encodeHeader(CODES.delta, delta.byteLength), Buffer.from(base, 'hex'), deflateSync(delta)]
      putEntry(tx, home, oid, Buffer.concat(value))
    })
    await rig.write('runs/one', 'a', 'a delta')
    expect(await collect(store, home)).toMatchObject({ removed: 0 })
    expect(rig.files('runs/one')).toEqual({ a: 'a delta' })
    await isWhole()
    await store.transact((tx) => tx.del(key('ref', home, 'runs/one')))
    // commit, tree, delta, base
    expect(await collect(store, home)).toMatchObject({ removed: 4 })
    expect(has(base)).toBe(false)
  })

  test('takes pieces of blobs that were never finished', async () => {
    const { store, home } = await open()
    const big = new Uint8Array(3 * LIMITS.pieceBlobBytes).map((_, i) => (i * 2654435761) >>> 24)
    const whole = await store.transact((tx) => {
      const { commit } = commitFiles(tx, { ...WORDS, home, branch: 'runs/one', changes: [{ path: 'big', bytes: big }] })
      putPiece(tx, home, '0'.repeat(64), 0, text('half'))
      return commit
    })
    await collect(store, home)
    const left: string[] = []
    for await (const [k] of store.view().range({ prefix: prefix('piece', home) })) left.push(tail(k, 'piece', home))
    expect(left.some((row) => row.startsWith('0000000'))).toBe(false)
    const [entry] = listFiles(store.view(), { home, at: whole })
    expect(readBlob(store.view(), home, entry?.oid ?? '')).toEqual(Buffer.from(big))
  })

  test('goes in steps of a bounded size', async () => {
    const { store, home } = await open()
    await store.transact((tx) => {
      for (let i = 0; i < 2.5 * LIMITS.collectStepObjects; i++) writeBlob(tx, home, text(`blob ${i}`))
    })
    let last = 0
    for await (const { removed } of collectGarbage(store, home, { now: NOW })) {
      expect(removed - last).toBeLessThanOrEqual(LIMITS.collectStepObjects)
      last = removed
    }
    expect(last).toBe(2.5 * LIMITS.collectStepObjects)
  })
})

describe('checking a home', () => {
  test('a whole home has nothing to tell', async () => {
    const { store, home, rig, garbage } = await open()
    await rig.write('runs/one', 'a/b', '1')
    await garbage('nobody')
    const objects = (await objectIds(store, home)).length
    expect(await checkHome(store.view(), home, { now: NOW })).toEqual({ objects, unneeded: 1, damaged: [] })
  })

  test('a damaged blob is named, with the paths, commits and branches that need it', async () => {
    const { store, home, rig } = await open()
    const first = (await rig.write('runs/one', 'a/b', 'to be spoiled')).commit
    const second = (await rig.write('runs/one', 'c', 'other')).commit
    await rig.write('runs/two', 'd', 'elsewhere')
    const oid = await store.transact((tx) => writeBlob(tx, home, text('to be spoiled')))
    await store.transact((tx) => tx.put(key('object', home, oid), text('spoiled')))
    const { damaged } = await checkHome(store.view(), home, { now: NOW })
    expect(damaged).toMatchObject([
      {
        oid,
        reason: 'damaged',
        branches: ['runs/one'],
        paths: ['a/b'],
        commits: [first, second].toSorted(),
        isCut: false,
      },
    ])
  })

  test.each(['tree', 'commit'] as const)('a missing %s is named by what leads to it', async (kind) => {
    const { store, home, rig } = await open()
    const first = await rig.write('runs/one', 'a/b', '1')
    const { commit } = await rig.write('runs/one', 'c', '2')
    const oid = kind === 'commit' ? first.commit : first.tree
    await store.transact((tx) => tx.del(key('object', home, oid)))
    const { damaged } = await checkHome(store.view(), home, { now: NOW })
    expect(damaged).toMatchObject([
      { oid, kind, reason: 'missing', branches: ['runs/one'], commits: [kind === 'commit' ? commit : first.commit] },
    ])
  })

  test('a branch that leads nowhere is named', async () => {
    const { store, home } = await open()
    const head = getRef(store.view(), home, 'main')?.commit ?? ''
    await store.transact((tx) => {
      moveRef(tx, home, 'runs/one', { expect: null, to: head, now: NOW })
      tx.putJson(key('ref', home, 'runs/lost'), { commit: '1'.repeat(64), protected: false, updatedAt: NOW })
    })
    expect((await checkHome(store.view(), home, { now: NOW })).damaged).toMatchObject([
      { oid: '1'.repeat(64), reason: 'missing', branches: ['runs/lost'], commits: [] },
    ])
  })

  test('what was forgotten is not missed', async () => {
    const { store, home, rig } = await open()
    await rig.write('runs/one', 'secret', 'forget me')
    const [oids = []] = (await store.transact((tx) => eraseVersions(tx, home, ['secret']))).map((one) => one.oids)
    await store.transact((tx) => oids.forEach((oid) => tx.del(key('object', home, oid))))
    expect((await checkHome(store.view(), home, { now: NOW })).damaged).toEqual([])
  })
})
