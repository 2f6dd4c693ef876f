/**
 * What libp2p keeps on the disk: a sublevel of the node's database, with three guards.
 *
 * Peer entries are written back late, because libp2p rewrites one on every new stream. What strangers store in the
 * DHT is capped. A provider that the peer store no longer knows is left out, because one such entry makes libp2p
 * fail every question for that capability.
 */
import { LevelDatastore } from 'datastore-level'
import { Record as DhtRecord } from '@libp2p/kad-dht'
import type { Libp2pOptions } from 'libp2p'
import { LIMITS, delay, fail, type Clock } from '@csb/core'

/** An abstract-level database, as far as this door needs it. */
export type LevelDb = {
  sublevel(name: string, options: { readonly keyEncoding: 'utf8'; readonly valueEncoding: 'view' }): unknown
}

type Datastore = NonNullable<Libp2pOptions['datastore']>
type Key = Parameters<Datastore['get']>[0]

export type GuardedDatastore = {
  readonly datastore: Datastore
  /** Tell the guard how to ask the peer store; until then every provider counts as known. */
  know(isKnown: (peerId: string) => Promise<boolean>): void
  open(): Promise<void>
  /** Write everything back. The database itself stays open: it is the node's. */
  close(): Promise<void>
}

const PEERS = '/peers/'
const RECORDS = '/dht/record/'
const PROVIDERS = '/dht/provider/'
const WRITE_BACK_MS = 5_000
const PEERS_CACHED = 4_096
const SWEEP_EVERY_MS = 10 * 60_000

/** @param limits most values kept for others; default {@link LIMITS.dhtRecords} and {@link LIMITS.dhtProviders} */
export function createDatastore(
  db: LevelDb,
  clock: Clock,
  limits: { readonly records: number; readonly providers: number } = {
    records: LIMITS.dhtRecords,
    providers: LIMITS.dhtProviders,
  },
): GuardedDatastore {
  const level = new LevelDatastore(db.sublevel('libp2p', { keyEncoding: 'utf8', valueEncoding: 'view' }) as never)
  const peers = createPeerCache(level)
  const counts = new Map<string, { stored: number; limit: number }>()
  let isKnown: (peerId: string) => Promise<boolean> = async () => true

  let sweptAt = 0
  /** libp2p deletes an old record only when it is asked for it. */
  const sweepRecords = async (count: { stored: number }): Promise<void> => {
    const now = clock.now()
    if (now - sweptAt < SWEEP_EVERY_MS) return
    sweptAt = now
    for await (const { key, value } of level.query({ prefix: RECORDS })) {
      if (now - receivedAt(value) < LIMITS.agentRecordTtlMs) continue
      await level.delete(key)
      count.stored--
    }
  }
  const admit = async (key: Key): Promise<void> => {
    const name = key.toString()
    for (const [prefix, count] of counts) {
      if (!name.startsWith(prefix) || (await level.has(key))) continue
      if (count.stored >= count.limit && prefix === RECORDS) await sweepRecords(count)
      if (count.stored >= count.limit) fail('BUSY', { reason: 'the store for others is full', limit: count.limit })
      count.stored++
    }
  }
  const datastore: Datastore = {
    get: (key, options) => (isPeer(key) ? peers.get(key) : level.get(key, options)),
    has: (key, options) => (isPeer(key) ? peers.has(key) : level.has(key, options)),
    put: async (key, value, options) => {
      if (isPeer(key)) return peers.put(key, value)
      await admit(key)
      return level.put(key, value, options)
    },
    delete: async (key, options) => {
      if (isPeer(key)) return peers.delete(key)
      for (const [prefix, count] of counts) {
        if (key.toString().startsWith(prefix) && (await level.has(key))) count.stored--
      }
      await level.delete(key, options)
    },
    putMany: async function* (source, options) {
      for await (const { key, value } of source) yield await datastore.put(key, value, options)
    },
    getMany: async function* (source, options) {
      for await (const key of source) yield { key, value: await datastore.get(key, options) }
    },
    deleteMany: async function* (source, options) {
      for await (const key of source) {
        await datastore.delete(key, options)
        yield key
      }
    },
    batch: () => level.batch(),
    query: async function* (query, options) {
      await peers.flush()
      for await (const pair of level.query(query, options)) {
        if ((query.prefix ?? '').startsWith(PROVIDERS) && !(await isKnown(lastPart(pair.key)))) continue
        yield pair
      }
    },
    queryKeys: async function* (query, options) {
      await peers.flush()
      yield* level.queryKeys(query, options)
    },
  }
  return {
    datastore,
    know: (ask) => {
      isKnown = ask
    },
    open: async () => {
      await level.open()
      for (const [prefix, limit] of [
        [RECORDS, limits.records],
        [PROVIDERS, limits.providers],
      ] as const) {
        let stored = 0
        for await (const _ of level.queryKeys({ prefix })) stored++
        counts.set(prefix, { stored, limit })
      }
    },
    close: () => peers.close(),
  }
}

const isPeer = (key: Key): boolean => key.toString().startsWith(PEERS)
const lastPart = (key: Key): string => key.toString().split('/').at(-1) ?? ''

/** ms since epoch; 0 where it can not be told */
function receivedAt(value: Uint8Array): number {
  try {
    return DhtRecord.deserialize(value).timeReceived?.getTime() ?? 0
  } catch {
    return 0
  }
}

type Entry = { readonly key: Key; readonly value: Uint8Array | null }

/** Reads from memory, writes to the disk every few seconds and at the end. A crash costs seconds of addresses. */
function createPeerCache(level: LevelDatastore) {
  const clean = new Map<string, Uint8Array>()
  const dirty = new Map<string, Entry>()
  const stopped = new AbortController()
  let flushing: Promise<void> | undefined
  let sleeping = false

  const keep = (name: string, value: Uint8Array): void => {
    clean.delete(name)
    clean.set(name, value)
    const oldest = clean.size > PEERS_CACHED ? clean.keys().next().value : undefined
    if (oldest !== undefined) clean.delete(oldest)
  }
  const writeBack = async (): Promise<void> => {
    const entries = [...dirty]
    const batch = level.batch()
    for (const [, { key, value }] of entries) {
      if (value === null) batch.delete(key)
      else batch.put(key, value)
    }
    await batch.commit()
    for (const [name, entry] of entries) if (dirty.get(name) === entry) dirty.delete(name)
  }
  const flush = async (): Promise<void> => {
    await flushing
    if (dirty.size === 0) return
    flushing = writeBack().finally(() => {
      flushing = undefined
    })
    await flushing
  }
  const flushLater = (): void => {
    if (sleeping || stopped.signal.aborted) return
    sleeping = true
    delay(WRITE_BACK_MS, stopped.signal)
      .then(flush)
      .catch(() => undefined) // stopped, or the disk is full: close() tries again and reports
      .finally(() => {
        sleeping = false
      })
  }
  const read = async (key: Key): Promise<Uint8Array | undefined> => {
    const name = key.toString()
    const staged = dirty.get(name)
    if (staged !== undefined) return staged.value ?? undefined
    const cached = clean.get(name)
    if (cached !== undefined) return cached
    const value = await level.get(key).catch((error: unknown) => {
      if ((error as Error).name === 'NotFoundError') return undefined
      throw error
    })
    if (value !== undefined) keep(name, value)
    return value
  }
  return {
    flush,
    get: async (key: Key): Promise<Uint8Array> => {
      const value = await read(key)
      if (value === undefined) throw Object.assign(new Error('not found'), { name: 'NotFoundError' })
      return value
    },
    has: async (key: Key): Promise<boolean> => (await read(key)) !== undefined,
    put: (key: Key, value: Uint8Array): Key => {
      const name = key.toString()
      keep(name, value)
      dirty.set(name, { key, value })
      flushLater()
      return key
    },
    delete: (key: Key): void => {
      const name = key.toString()
      clean.delete(name)
      dirty.set(name, { key, value: null })
      flushLater()
    },
    close: async (): Promise<void> => {
      stopped.abort()
      await flush()
    },
  }
}
