/** Records of a few entries, and their checkpoints. */
import { appendRecord, makeCheckpoint, type RecordEntry } from '@csb/authority'
import type { Store } from '@csb/store'
import { NOW, node, testStore } from './cast.ts'

const entry = (effect: Record<string, unknown>): RecordEntry => ({
  operation: 'memory.create',
  outcome: 'done',
  actor: node.did,
  door: 'http',
  run: null,
  lease: null,
  reads: [],
  effect,
})

/** A record of `count` entries; two with different words differ from the first entry on. */
export async function recorded(count: number, word = 'one'): Promise<Store> {
  const store = await testStore()
  await grow(store, count, word)
  return store
}

export async function grow(store: Store, count: number, word = 'one'): Promise<void> {
  for (let i = 0; i < count; i++) await store.transact((tx) => appendRecord(tx, entry({ word, i }), NOW + i))
}

export const headOf = (store: Store) => store.transact((tx) => makeCheckpoint(tx, node, NOW))
export const noteOf = async (store: Store) => (await headOf(store))?.note ?? ''
