/** A real store with a home in it, for the tests of this room. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, OWNER_PRIVATE, type Clearance, type Memory } from '@csb/core'
import { createHome, type Home } from '@csb/files'
import { openStore, type Store } from '@csb/store'
import { onTestFinished } from 'vitest'
import type { Note } from '../src/note.ts'

export const NOW = 1_800_000_000_000
export const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'
export const OTHER = 'did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp'
export const OWNER: Clearance = { level: 'sealed', tags: [] }

export const words = { author: { name: 'Ada', did: DID }, message: 'a test', trailers: {}, now: NOW }

/** Opens in a folder of its own; gone when the test is over. */
export async function openHome(init: Partial<Home> = {}): Promise<{ store: Store; home: string; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'csb-memory-'))
  const store = await openStore(join(directory, 'db'))
  onTestFinished(async () => {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  })
  const { id } = await store.transact((tx) => createHome(tx, { owner: DID, origin: DID, now: NOW, ...init }))
  return { store, home: id, directory }
}

export function noteOf(entry: Partial<Memory> = {}, rest: Partial<Note> = {}): Note {
  return {
    entry: { id: newId('memory', NOW), type: 'lesson', content: 'tea is hot', timestamp: NOW, level: 'warm', ...entry },
    label: OWNER_PRIVATE,
    hlc: '01a3185c50000000',
    actor: DID,
    deletedAt: null,
    extra: {},
    ...rest,
  }
}
