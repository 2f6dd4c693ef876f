import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { deflateSync } from 'node:zlib'
import { createHash, randomBytes } from 'node:crypto'
import { LIMITS } from '@csb/core'
import { eraseKeys, key, scanFiles, type Store } from '@csb/store'
import {
  commitFiles,
  dropObject,
  erasedBlobs,
  eraseVersions,
  objectSize,
  readBlob,
  streamBlob,
  writeBlob,
  writeBlobStream,
  type Home,
} from '../src/index.ts'
import { applyDelta, deltaSizes } from '../src/delta.ts'
import { CODES, decodeHeader, decodeNumber, encodeHeader } from '../src/entry.ts'
import { putEntry } from '../src/stored.ts'
import { WORDS, openHome, text } from './open-home.ts'
import { deltaOf } from './deltas.ts'

const idOf = (bytes: Uint8Array): string =>
  createHash('sha256').update(`blob ${bytes.byteLength}\0`).update(bytes).digest('hex')

/** Store `bytes` as a delta on a blob that is here. */
async function putDelta(store: Store, home: Home, base: Uint8Array, bytes: Uint8Array): Promise<string> {
  const delta = deltaOf(base, bytes)
  const value = Buffer.concat([
    encodeHeader(CODES.delta, delta.byteLength),
    Buffer.from(idOf(base), 'hex'),
    deflateSync(delta),
  ])
  await store.transact((tx) => putEntry(tx, home.id, idOf(bytes), value))
  return idOf(bytes)
}

describe('entries', () => {
  test('every size reads back from its header', () => {
    fc.assert(
      fc.property(fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7), fc.maxSafeNat(), (code, size) => {
        const bytes = encodeHeader(code, size)
        expect(decodeHeader(bytes)).toEqual({ code, size, start: bytes.byteLength })
        for (let cut = 0; cut < bytes.byteLength; cut++)
          expect(() => decodeHeader(bytes.subarray(0, cut))).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
      }),
    )
    for (const bytes of [new Uint8Array(20).fill(0xff), new Uint8Array(20).fill(0x80)]) {
      expect(() => decodeHeader(bytes)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
      expect(() => decodeNumber(bytes, 0)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
    }
  })

  test('a delta makes what it was made from, and any other bytes fail within its bounds', () => {
    const blob = fc.uint8Array({ maxLength: 300 })
    fc.assert(
      fc.property(blob, blob, blob, (base, middle, junk) => {
        const target = Buffer.concat([base.subarray(3), middle, base.subarray(0, 20)])
        const delta = deltaOf(base, target)
        expect(deltaSizes(delta)).toMatchObject({ before: base.byteLength, after: target.byteLength })
        expect(applyDelta(base, delta, 4096)).toEqual(target)
        for (const hostile of [junk, Buffer.concat([delta.subarray(0, 4), junk]), delta.subarray(0, -1)]) {
          try {
            expect(applyDelta(base, hostile, 4096).byteLength).toBeLessThanOrEqual(4096)
          } catch (error) {
            expect(['MALFORMED', 'TOO_LARGE']).toContain((error as { code?: string }).code)
          }
        }
      }),
    )
  })

  test('a delta that announces more than its bound makes nothing', () => {
    const hostile = Buffer.from([1, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 65])
    expect(() => applyDelta(text('a'), hostile, LIMITS.blobBytes)).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }),
    )
  })
})

describe('objects as they are stored', () => {
  test('an object stored as a delta reads back, and so does one that stands on it', async () => {
    const { store, home } = await openHome()
    const versions = ['one', 'one and two', 'one and two and three'].map((words) => text(words.repeat(20)))
    const [first = text(''), second = text(''), third = text('')] = versions
    await store.transact((tx) => writeBlob(tx, home.id, first))
    await putDelta(store, home, first, second)
    await putDelta(store, home, second, third)
    for (const bytes of versions) {
      expect(Uint8Array.from(readBlob(store.view(), home.id, idOf(bytes)))).toEqual(Uint8Array.from(bytes))
      expect(objectSize(store.view(), home.id, idOf(bytes))).toBe(bytes.byteLength)
    }
  })

  test('a delta that makes other bytes than its id says is found out', async () => {
    const { store, home } = await openHome()
    const base = text('the base')
    await store.transact((tx) => writeBlob(tx, home.id, base))
    const delta = deltaOf(base, text('something else'))
    const value = Buffer.concat([encodeHeader(7, delta.byteLength), Buffer.from(idOf(base), 'hex'), deflateSync(delta)])
    const claimed = idOf(text('what it says it is'))
    await store.transact((tx) => putEntry(tx, home.id, claimed, value))
    expect(() => readBlob(store.view(), home.id, claimed)).toThrow(expect.objectContaining({ code: 'OBJECT_DAMAGED' }))
  })

  test('a delta without its base is not taken, and a circle of them ends', async () => {
    const { store, home } = await openHome()
    const [a, b] = [idOf(text('a')), idOf(text('b'))]
    const onto = (base: string) =>
      Buffer.concat([encodeHeader(7, 5), Buffer.from(base, 'hex'), deflateSync(deltaOf(text('x'), text('y')))])
    await expect(store.transact((tx) => putEntry(tx, home.id, a, onto(b)))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await store.transact((tx) => {
      tx.put(key('object', home.id, a), onto(b))
      tx.put(key('object', home.id, b), onto(a))
    })
    expect(() => readBlob(store.view(), home.id, a)).toThrow(expect.objectContaining({ code: 'OBJECT_DAMAGED' }))
  })

  test('when a base goes, what stood on it stands by itself', async () => {
    const { store, home } = await openHome()
    const [base, child] = [text('base '.repeat(50)), text('base '.repeat(49))]
    const oid = await store.transact((tx) => writeBlob(tx, home.id, base))
    await putDelta(store, home, base, child)
    await store.transact((tx) => dropObject(tx, home.id, oid))
    expect(() => readBlob(store.view(), home.id, oid)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    expect(Uint8Array.from(readBlob(store.view(), home.id, idOf(child)))).toEqual(Uint8Array.from(child))
    await store.transact((tx) => dropObject(tx, home.id, idOf(child)))
    expect(() => readBlob(store.view(), home.id, idOf(child))).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
  })

  test('L3.4 partial: a forgotten base leaves the disk while its child stays', async () => {
    const { store, home } = await openHome()
    const secret = `${randomBytes(60).toString('base64url')}\n${'the secret of the house\n'.repeat(8)}`
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 's.md', bytes: text(secret) }] }))
    const rest = text(secret.slice(secret.indexOf('\n') + 1))
    const child = await putDelta(store, home, text(secret), rest)
    const [oids = []] = (await store.transact((tx) => eraseVersions(tx, home.id, ['s.md']))).map((one) => one.oids)
    const { keys, blobs } = erasedBlobs(store.view(), home.id, oids)
    const marks = blobs.map(({ stored }) => Uint8Array.from(stored.slice(-24)))
    expect(await scanFiles(store.directory, marks)).not.toEqual([])
    expect(await eraseKeys(store, keys, [...marks, text(secret.slice(0, 40))])).toMatchObject({ remains: [] })
    expect(Uint8Array.from(readBlob(store.view(), home.id, child))).toEqual(Uint8Array.from(rest))
  })
})

describe('large blobs', () => {
  const large = () => Buffer.concat([randomBytes(2 * LIMITS.pieceBlobBytes), Buffer.alloc(100_000, 7)])
  async function* inChunks(bytes: Uint8Array) {
    for (let at = 0; at < bytes.byteLength; at += 70_001) yield bytes.subarray(at, at + 70_001)
  }

  test('one that is written at once and one that is streamed are the same rows under the same id', async () => {
    const { store, home } = await openHome()
    const other = await openHome()
    const bytes = large()
    const oid = await store.transact((tx) => writeBlob(tx, home.id, bytes))
    const streamed = await writeBlobStream(other.store, other.home.id, {
      bytes: bytes.byteLength,
      open: () => inChunks(bytes),
    })
    expect([oid, streamed]).toEqual([idOf(bytes), idOf(bytes)])
    for (const { store: one, home: its } of [{ store, home }, other]) {
      expect(objectSize(one.view(), its.id, oid)).toBe(bytes.byteLength)
      expect(Buffer.compare(readBlob(one.view(), its.id, oid), bytes)).toBe(0)
      const chunks: Uint8Array[] = []
      for await (const chunk of streamBlob(one.view(), its.id, oid)) chunks.push(chunk)
      expect(Buffer.compare(Buffer.concat(chunks), bytes)).toBe(0)
      expect(one.view().has(key('piece', its.id, oid, 7))).toBe(true)
    }
  })

  test('a piece that was changed or is missing is found out', async () => {
    const { store, home } = await openHome()
    const oid = await store.transact((tx) => writeBlob(tx, home.id, large()))
    const at = key('piece', home.id, oid, 3)
    const drain = async () => {
      for await (const chunk of streamBlob(store.view(), home.id, oid)) expect(chunk.byteLength).toBeGreaterThan(0)
    }
    await drain()
    const sound = store.view().get(at) ?? new Uint8Array()
    await store.transact((tx) => tx.put(at, Uint8Array.from(sound).with(9, (sound[9] ?? 0) ^ 1)))
    await expect(drain()).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
    await store.transact((tx) => tx.del(at))
    await expect(drain()).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
    expect(() => readBlob(store.view(), home.id, oid)).toThrow(expect.objectContaining({ code: 'OBJECT_DAMAGED' }))
  })

  test('a source that is not what it said leaves nothing that can be read', async () => {
    const { store, home } = await openHome()
    const bytes = large()
    const said = { bytes: bytes.byteLength + 1, open: () => inChunks(bytes) }
    await expect(writeBlobStream(store, home.id, said)).rejects.toMatchObject({ code: 'CONFLICT' })
    let times = 0
    const turning = {
      bytes: bytes.byteLength,
      open: () => inChunks(times++ === 0 ? bytes : Buffer.alloc(bytes.byteLength)),
    }
    await expect(writeBlobStream(store, home.id, turning)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(() => readBlob(store.view(), home.id, idOf(bytes))).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    const huge = { bytes: LIMITS.objectBytes + 1, open: () => inChunks(bytes) }
    await expect(writeBlobStream(store, home.id, huge)).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })

  test('L3.4 partial: a forgotten one leaves the disk with all its pieces', async () => {
    const { store, home } = await openHome()
    const bytes = large()
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 'film', bytes }] }))
    const [oids = []] = (await store.transact((tx) => eraseVersions(tx, home.id, ['film']))).map((one) => one.oids)
    const { keys, blobs } = erasedBlobs(store.view(), home.id, oids)
    expect(keys.length).toBeGreaterThan(8)
    const marks = [
      ...blobs.map(({ stored }) => Uint8Array.from(stored.slice(-24))),
      bytes.subarray(1_000_000, 1_000_024),
    ]
    expect(await scanFiles(store.directory, marks)).not.toEqual([])
    expect(await eraseKeys(store, keys, marks)).toMatchObject({ remains: [] })
  })
})
