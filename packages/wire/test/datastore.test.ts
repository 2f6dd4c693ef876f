import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Record as DhtRecord } from '@libp2p/kad-dht'
import { peerIdFromString } from '@libp2p/peer-id'
import { LIMITS, createFakeClock, createKeyPair, systemClock, utf8, type Clock } from '@csb/core'
import { openStore, type Store } from '@csb/store'
import { createDatastore } from '../src/datastore.ts'

let folder: string
let store: Store

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-datastore-'))
  store = await openStore(join(folder, 'db'))
})

afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

type Key = Parameters<ReturnType<typeof createDatastore>['datastore']['get']>[0]
/** Only the text of a key is used. */
const key = (name: string): Key => ({ toString: () => name }) as Key

async function opened(limits?: { records: number; providers: number }, clock: Clock = systemClock) {
  const guarded = createDatastore(store.db, clock, limits)
  await guarded.open()
  return guarded
}

const recordFrom = (receivedAt: number): Uint8Array =>
  new DhtRecord(utf8('key'), utf8('value'), new Date(receivedAt)).serialize().subarray()

describe('the datastore of libp2p', () => {
  test('peer entries are read back at once and are on the disk after the end', async () => {
    const first = await opened()
    await first.datastore.put(key('/peers/a'), Uint8Array.of(1))
    await first.datastore.put(key('/peers/b'), Uint8Array.of(2))
    await first.datastore.delete(key('/peers/b'))
    expect(await first.datastore.get(key('/peers/a'))).toEqual(Uint8Array.of(1))
    await expect(first.datastore.get(key('/peers/b'))).rejects.toMatchObject({ name: 'NotFoundError' })
    await first.close()
    const second = await opened()
    expect(Buffer.from(await second.datastore.get(key('/peers/a')))).toEqual(Buffer.of(1))
    expect(await second.datastore.has(key('/peers/b'))).toBe(false)
  })

  test('a question for all peers sees what is not written back yet', async () => {
    const { datastore } = await opened()
    await datastore.put(key('/peers/a'), Uint8Array.of(1))
    const names: string[] = []
    for await (const pair of datastore.query({ prefix: '/peers/' })) names.push(pair.key.toString())
    expect(names).toEqual(['/peers/a'])
  })

  test('what strangers store is capped, what is there may be replaced, and the count survives a restart', async () => {
    const limits = { records: 2, providers: 1 }
    const first = await opened(limits)
    await first.datastore.put(key('/dht/record/a'), recordFrom(Date.now()))
    await first.datastore.put(key('/dht/record/b'), recordFrom(Date.now()))
    await expect(first.datastore.put(key('/dht/record/c'), Uint8Array.of(1))).rejects.toMatchObject({ code: 'BUSY' })
    await first.datastore.put(key('/dht/record/a'), recordFrom(Date.now()))
    await first.datastore.put(key('/dht/provider/x/p'), Uint8Array.of(1))
    await expect(first.datastore.put(key('/dht/provider/x/q'), Uint8Array.of(1))).rejects.toMatchObject({
      code: 'BUSY',
    })
    await first.close()
    const second = await opened(limits)
    await expect(second.datastore.put(key('/dht/record/c'), Uint8Array.of(1))).rejects.toMatchObject({ code: 'BUSY' })
    await second.datastore.delete(key('/dht/record/a'))
    await second.datastore.put(key('/dht/record/c'), Uint8Array.of(1))
    expect(LIMITS.dhtRecords).toBeGreaterThan(limits.records)
  })

  test('records that have expired make room when the store for others is full', async () => {
    const clock = createFakeClock(Date.now())
    const { datastore } = await opened({ records: 2, providers: 1 }, clock)
    await datastore.put(key('/dht/record/a'), recordFrom(clock.now()))
    clock.advance(LIMITS.agentRecordTtlMs - 1)
    await datastore.put(key('/dht/record/b'), recordFrom(clock.now()))
    clock.advance(1)
    await datastore.put(key('/dht/record/c'), recordFrom(clock.now()))
    expect(await datastore.has(key('/dht/record/a'))).toBe(false)
    await expect(datastore.put(key('/dht/record/d'), recordFrom(clock.now()))).rejects.toMatchObject({ code: 'BUSY' })
  })

  test('providers that the peer store does not know are left out', async () => {
    const { datastore, know } = await opened()
    const [here, gone] = [createKeyPair().peerId, createKeyPair().peerId]
    know(async (peerId) => peerIdFromString(peerId).toString() === here)
    for (const peer of [here, gone]) await datastore.put(key(`/dht/provider/CID/${peer}`), Uint8Array.of(1))
    const found: string[] = []
    for await (const pair of datastore.query({ prefix: '/dht/provider/CID' })) found.push(pair.key.toString())
    expect(found).toEqual([`/dht/provider/CID/${here}`])
  })
})
