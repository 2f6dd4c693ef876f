/** A real store in a folder of its own, with one home in it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createKeyPair } from '@csb/core'
import { openStore, prefix, type Store } from '@csb/store'
import { createHome, type HashName, type Home } from '../src/index.ts'

export const NOW = 1_800_000_000_000
export const OWNER = createKeyPair()
export const WORDS = {
  author: { name: 'Ada', did: OWNER.did },
  message: 'a change',
  trailers: {},
  now: NOW,
} as const

export async function openHome(hash: HashName = 'sha256'): Promise<{ store: Store; home: Home }> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-files-'))
  const store = await openStore(join(folder, 'db'))
  onTestFinished(async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })
  const home = await store.transact((tx) => createHome(tx, { hash, owner: OWNER.did, origin: OWNER.did, now: NOW }))
  return { store, home }
}

/** Everything that is stored, key to hex: equal snapshots mean that nothing was written. */
export async function snapshot(store: Store): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const [k, v] of store.db.iterator()) found.set(k, Buffer.from(v).toString('hex'))
  return found
}

export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
export const asText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** Object ids of a home, in key order. */
export async function objectIds(store: Store, home: string): Promise<string[]> {
  const start = prefix('object', home)
  const ids: string[] = []
  for await (const [k] of store.view().range({ prefix: start })) ids.push(k.slice(start.length))
  return ids
}
