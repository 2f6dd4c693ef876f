/** Nodes with a real store each, one home on all of them, and what a person does with its notes there. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createKeyPair,
  formatLabel,
  newId,
  parseLabel,
  type Clearance,
  type KeyPair,
  type Label,
  type Level,
} from '@csb/core'
import { createHome, getRef, listFiles, readCommit } from '@csb/files'
import { forgetNotes, getTombstone, listTombstones } from '@csb/guard'
import {
  createNotes,
  deleteNote,
  getNote,
  listStates,
  nextHlc,
  putNotes,
  relabelNote,
  removeNotes,
  type Note,
  type NoteState,
} from '@csb/memory'
import { openStore, type Store } from '@csb/store'
import { syncSession, takeArrival, type SyncReport } from '../src/index.ts'
import type { SyncSide } from '../src/session.ts'
import { createWire, type Wire } from './ports.ts'

export const NOW = 1_800_000_000_000
export const HOME = 'home_abcdefghijklmnopqrstuvwxyz'
export const ALL: Clearance = { level: 'sealed', tags: ['*'] }
export const TRUSTED: Clearance = { level: 'trusted', tags: [] }

/** One clock for all, which only goes on: what happens later is later everywhere. */
let now = NOW
export const tick = (): number => (now += 10)

export type Node = {
  readonly name: string
  readonly key: KeyPair
  readonly store: Store
  readonly ofOwner: boolean
  readonly create: (content: string, label?: string, id?: string) => Promise<string>
  /** a note under each label, in one transaction */
  readonly createMany: (labels: readonly string[]) => Promise<void>
  readonly rewrite: (id: string, content: string) => Promise<void>
  readonly relabel: (id: string, label: string) => Promise<void>
  /** write a version that no honest node would */
  readonly forge: (id: string, edit: (note: Note) => Note) => Promise<void>
  readonly softDelete: (id: string) => Promise<void>
  readonly forget: (id: string) => Promise<void>
  readonly note: (id: string) => Note
  readonly states: () => Promise<NoteState[]>
  readonly tombstones: () => Promise<string[]>
  readonly tombstone: (id: string) => Promise<Record<string, unknown>>
  /** ids of the notes in the tree itself */
  readonly filed: () => Promise<string[]>
  /** id of the root tree of the branch of notes */
  readonly tree: () => string
  readonly close: () => Promise<void>
}

/** @param ofOwner whether it is a node of the home's owner */
export async function createNode(name: string, owner: string, ofOwner = true): Promise<Node> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-sync-'))
  const store = await openStore(join(folder, 'db'))
  const key = createKeyPair()
  await store.transact((tx) => createHome(tx, { id: HOME, owner, origin: owner, hash: 'sha256', now: NOW }))
  const words = () => ({ home: HOME, author: { name, did: key.did }, message: 'test', trailers: {}, now: tick() })

  const mine = { actor: key.did, clearance: ALL, ofOwner }
  /** who is no node of the owner writes from outside */
  const own = (label: Label): Label => (ofOwner ? label : { ...label, integrity: 'external' })

  const put = async (noteOf: (hlc: string) => Note): Promise<string> => {
    let id = ''
    await store.transact((tx) => {
      const said = words()
      const note = noteOf(nextHlc(tx, said.now))
      id = note.entry.id
      putNotes(tx, { ...said, notes: [note] })
    })
    return id
  }
  const note = (id: string) => getNote(store.view(), HOME, id, ALL, { includeDeleted: true })
  const states = async () => {
    const all: NoteState[] = []
    for await (const state of listStates(store.view(), HOME)) all.push(state)
    return all
  }

  return {
    name,
    key,
    store,
    note,
    states,
    create: (content, label = 'public:owner', id = newId('memory', tick())) =>
      put((hlc) => ({
        entry: { id, type: 'lesson', level: 'warm', content, timestamp: NOW },
        label: own(parseLabel(label)),
        hlc,
        actor: key.did,
        deletedAt: null,
        extra: {},
      })),
    ofOwner,
    createMany: async (labels) => {
      const inputs = labels.map((label) => ({ entry: { content: label }, label: parseLabel(label) }))
      await store.transact((tx) => createNotes(tx, { ...words(), inputs, actor: key.did, ofOwner }))
    },
    rewrite: async (id, content) => {
      const before = note(id)
      // whoever writes sees the label as it is
      const label = own(before.label)
      const made = [{ at: before.hlc, actor: before.actor, label: before.label }]
      const clock = { ...(before.clock ?? { made, changes: {} }), written: label }
      await put((hlc) => ({ ...before, label, clock, entry: { ...before.entry, content }, hlc, actor: key.did }))
    },
    relabel: async (id, label) => {
      await store.transact((tx) => relabelNote(tx, { ...words(), ...mine, id, label: parseLabel(label) }))
    },
    forge: async (id, edit) => {
      // gone and back: nothing of its own stands in the way of what it says
      const before = note(id)
      await store.transact((tx) => removeNotes(tx, { ...words(), ids: [id] }))
      await put((hlc) => ({ ...edit(before), hlc, actor: key.did }))
    },
    softDelete: async (id) => {
      await store.transact((tx) => deleteNote(tx, { ...words(), ...mine, id }))
    },
    forget: async (id) => {
      await store.transact((tx) => forgetNotes(tx, { ...words(), ids: [id], reason: 'asked to', key }))
    },
    tombstones: async () => {
      const ids: string[] = []
      for await (const { id } of listTombstones(store.view(), HOME, ALL)) ids.push(id)
      return ids
    },
    tombstone: async (id) => ({ ...getTombstone(store.view(), HOME, id) }),
    filed: async () =>
      listFiles(store.view(), { home: HOME, at: 'memory', recursive: true })
        .filter(({ kind }) => kind === 'file')
        .map(({ path }) => path.slice(path.lastIndexOf('/') + 1, -'.md'.length))
        .sort(),
    tree: () => readCommit(store.view(), HOME, getRef(store.view(), HOME, 'memory')?.commit ?? '').tree,
    close: async () => {
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type Rights = { readonly clearance: Clearance | undefined; readonly mayWrite: boolean }

/** @param rights of the other side at this one; asked as often as the session asks */
export const sideOf = (node: Node, rights: () => Rights): SyncSide => ({
  store: node.store,
  home: HOME,
  clearanceOfPeer: () => rights().clearance,
  mayPeerWrite: () => rights().mayWrite,
  ofOwner: node.ofOwner,
  apply: (arrival) =>
    node.store
      .transact((tx) =>
        takeArrival(
          tx,
          {
            home: HOME,
            author: { name: node.name, did: node.key.did },
            trailers: {},
            now: tick(),
            seen: rights().clearance,
            node: node.key.did,
            ofOwner: node.ofOwner,
          },
          arrival,
        ),
      )
      .then(({ count }) => count),
})

export type Between = {
  /** what each end lets the other see and do */
  readonly ofRight: Rights
  readonly ofLeft: Rights
  /** asked instead of `ofRight` where the right changes while the session runs */
  readonly ofRightNow?: () => Rights
  readonly wire?: Wire
}

export const FULL: Rights = { clearance: ALL, mayWrite: true }

/** One session; where the line is cut both ends fail. */
export async function sync(
  left: Node,
  right: Node,
  { ofRight, ofLeft, ofRightNow = () => ofRight, wire = createWire() }: Between,
) {
  const [a, b] = await Promise.allSettled([
    syncSession(wire.left, sideOf(left, ofRightNow)).catch((error: unknown) => {
      wire.cut()
      throw error
    }),
    syncSession(
      wire.right,
      sideOf(right, () => ofLeft),
    ).catch((error: unknown) => {
      wire.cut()
      throw error
    }),
  ])
  if (a.status === 'rejected') throw a.reason
  if (b.status === 'rejected') throw b.reason
  return { left: a.value, right: b.value } satisfies { left: SyncReport; right: SyncReport }
}

/** id to version, of what a reader may see. */
export const seenBy = (states: readonly NoteState[], isSeen: (label: Label) => boolean): Record<string, string> =>
  Object.fromEntries(states.filter(({ label }) => isSeen(parseLabel(label))).map(({ id, oid }) => [id, oid]))

export const labelOf = (level: Level): string => formatLabel({ level, integrity: 'owner', tags: [] })
