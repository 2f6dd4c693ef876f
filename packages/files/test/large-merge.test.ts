import { describe, expect, test } from 'vitest'
import { LIMITS } from '@csb/core'
import {
  commitFiles,
  listFiles,
  manifestDigest,
  objectSize,
  restoreRecycled,
  writeBlobStream,
  type CommitFiles,
} from '../src/index.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, openHome } from './open-home.ts'

const MORE = LIMITS.blobBytes + 1
const CHUNK = 1024 * 1024

describe('a merge of files that are too large to be held', () => {
  const opened = async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    const large = async (byte: number): Promise<string> => {
      const open = async function* () {
        for (let left = MORE; left > 0; left -= CHUNK) yield new Uint8Array(Math.min(left, CHUNK)).fill(byte)
      }
      return writeBlobStream(store, home.id, { bytes: MORE, open })
    }
    const write = (branch: string, changes: CommitFiles['changes']) =>
      store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch, changes }))
    const [one, two] = [await large(1), await large(2)]
    const at = (path: string, oid: string) => ({ path, bytes: { mode: '100644', oid } as const })
    await write('runs/base', [at('film', one), at('other', one)])
    await rig.merge('runs/base', 'main')
    const idsAt = (branch: string) =>
      Object.fromEntries(listFiles(store.view(), { home: home.id, at: branch }).map(({ path, oid }) => [path, oid]))
    return { store, home, rig, write, at, one, two, idsAt }
  }

  test('takes the side that changed by its id, and what was agreed to names that id', async () => {
    const { rig, write, at, one, two, idsAt } = await opened()
    await write('runs/one', [at('film', two)])
    const { manifest, digest, conflicts } = rig.preview('runs/one', 'main')
    expect(conflicts).toEqual([])
    expect(manifest).toMatchObject([
      { op: 'change', path: 'film', sha256_new: null, size_new: MORE, oid_old: one, oid_new: two },
    ])
    expect(manifestDigest(manifest.map((entry) => ({ ...entry, oid_new: one })))).not.toBe(digest)
    await rig.merge('runs/one', 'main')
    expect(idsAt('main')).toEqual({ film: two, other: one })
  })

  test('sees one that moved, keeps both where both changed, and brings back one that it deleted', async () => {
    const { store, home, rig, write, at, one, two, idsAt } = await opened()
    await write('runs/one', [{ path: 'film', bytes: null }, at('moved/film', one)])
    await write('runs/two', [at('other', two)])
    await write('runs/three', [{ path: 'other', bytes: null }])
    expect(rig.preview('runs/one', 'main').manifest).toMatchObject([{ op: 'rename', path: 'moved/film' }])
    await rig.merge('runs/two', 'main')
    expect((await rig.merge('runs/three', 'main')).preview.conflicts).toMatchObject([
      { kind: 'deleted', path: 'other' },
    ])
    await write('runs/four', [{ path: 'film', bytes: null }])
    await rig.merge('runs/four', 'main')
    const restore = { ...WORDS, now: NOW + 60_000, home: home.id, branch: 'runs/back', path: 'film' }
    await store.transact((tx) => restoreRecycled(tx, { ...restore, clearance: { level: 'sealed', tags: ['*'] } }))
    expect(idsAt('runs/back')['film']).toBe(one)
    expect(objectSize(store.view(), home.id, one)).toBe(MORE)
  })
})
