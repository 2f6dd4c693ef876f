/** A real store in a folder of its own, with one home in it and ways to put notes there. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { OWNER_PRIVATE, createKeyPair, parseLabel, type KeyPair, type Label } from '@csb/core'
import { commitFiles, createHome, type Home } from '@csb/files'
import { createNotes, deleteNote, getNote, relabelNote, renderNote, type Note } from '@csb/memory'
import { openStore, type Store } from '@csb/store'
import { forgetNotes } from '../src/index.ts'

export const NOW = 1_800_000_000_000
export const ALL = { level: 'sealed', tags: ['health', 'work'] } as const
const owner = createKeyPair()

export async function openFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-guard-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'db')
}

export async function openHome(id?: string) {
  const store = await openStore(await openFolder())
  onTestFinished(() => store.close())
  const home = await store.transact((tx) =>
    createHome(tx, { ...(id === undefined ? {} : { id }), owner: owner.did, origin: owner.did, now: NOW }),
  )
  return nodeOf(store, home)
}

/** What a test does with a node: each call is a transaction of its own, a second after the one before. */
export function nodeOf(store: Store, home: Home, key: KeyPair = createKeyPair()) {
  let now = NOW
  const words = () => ({
    home: home.id,
    author: { name: 'Ada', did: key.did },
    message: 'test',
    trailers: {},
    now: (now += 1000),
  })
  return {
    store,
    home,
    key,
    words,
    create: async (content: string, label: Label = OWNER_PRIVATE): Promise<Note> => {
      const entry = { content, level: 'L2', type: 'lesson' }
      const { notes } = await store.transact((tx) =>
        createNotes(tx, { ...words(), inputs: [{ entry, label }], actor: key.did }),
      )
      const [note] = notes
      if (note === undefined) throw new Error('no note was made')
      return note
    },
    relabel: async (id: string, label: string): Promise<void> => {
      const change = { id, actor: key.did, clearance: ALL, label: parseLabel(label) }
      await store.transact((tx) => relabelNote(tx, { ...words(), ...change }))
    },
    softDelete: (id: string) =>
      store.transact((tx) => deleteNote(tx, { ...words(), id, actor: key.did, clearance: ALL })),
    forget: async (id: string, reason = 'asked to') => {
      const done = await store.transact((tx) => forgetNotes(tx, { ...words(), ids: [id], reason, key }))
      const [tombstone, erase] = [done.tombstones[0], done.erase[0]]
      if (tombstone === undefined || erase === undefined) throw new Error('nothing was forgotten')
      return { tombstone, erase, commit: done.commit }
    },
    get: (id: string) => getNote(store.view(), home.id, id, ALL, { includeDeleted: true }),
    copy: async (branch: string, path: string, note: Note): Promise<void> => {
      const changes = [{ path, bytes: renderNote(note) }]
      await store.transact((tx) => commitFiles(tx, { ...words(), branch, changes }))
    },
  }
}

/** Everything that is stored, key to hex: equal snapshots mean that nothing was written. */
export async function snapshot(store: Store): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const [k, v] of store.db.iterator()) found.set(k, Buffer.from(v).toString('hex'))
  return found
}
