/** Nodes that hold one note, and what a person does with it there. */
import { fromUtf8, formatLabel, newId, parseLabel } from '@csb/core'
import type { Store } from '@csb/store'
import { expect } from 'vitest'
import { renderNote, type Note } from '../src/note.ts'
import { putNotes, type Receiving } from '../src/put.ts'
import { getNote } from '../src/read.ts'
import { getState } from '../src/states.ts'
import { createNotes, deleteNote, relabelNote, restoreNote } from '../src/write.ts'
import { DID, NOW, openHome, OTHER, words } from './support.ts'

const THIRD = 'did:key:z6MkfSNFHcD2WVSsUr3BSnBh4NaNU1EHZb5kahfDfCNjWEgi'
const DIDS = [DID, OTHER, THIRD]
const clearance = { level: 'sealed', tags: ['*'] } as const

export type Place = { readonly store: Store; readonly home: string; readonly did: string }

export const places = (): Promise<Place[]> => Promise.all(DIDS.map(async (did) => ({ ...(await openHome()), did })))
export const note = ({ store, home }: Place, id: string): Note =>
  getNote(store.view(), home, id, clearance, { includeDeleted: true })
export const bytes = (place: Place, id: string): string => fromUtf8(renderNote(note(place, id))) ?? ''
export const label = (place: Place, id: string): string => formatLabel(note(place, id).label)
export const put = ({ store, home }: Place, notes: readonly Note[], standing?: Receiving) =>
  store.transact((tx) => putNotes(tx, { ...words, home, notes, ...(standing === undefined ? {} : { standing }) }))
export const give = (from: Place, to: Place, id: string) => put(to, [note(from, id)])

export const create = async ({ store, home, did }: Place, spelled = 'private:owner', id = newId('memory', NOW)) => {
  const input = { entry: { id, content: 'tea is hot' }, label: parseLabel(spelled) }
  const made = await store.transact((tx) => createNotes(tx, { ...words, home, actor: did, inputs: [input] }))
  return made.notes[0]?.entry.id ?? ''
}
/** Write it anew under the label it has. */
export const edit = ({ store, home, did }: Place, id: string, now = NOW) =>
  store.transact((tx) => {
    const change = { ...words, home, id, actor: did, clearance, now }
    return getState(tx, home, id)?.deletedAt === null ? deleteNote(tx, change) : restoreNote(tx, change)
  })
export const relabel = ({ store, home, did }: Place, id: string, spelled: string, now = NOW) =>
  store.transact((tx) =>
    relabelNote(tx, { ...words, home, id, actor: did, clearance, now, label: parseLabel(spelled) }),
  )

/** The same note on two nodes, which then do not meet. */
export async function apart(spelled?: string) {
  const [one, two, three] = (await places()) as [Place, Place, Place]
  const id = await create(one, spelled)
  await give(one, two, id)
  await give(one, three, id)
  const meet = async () => {
    const [left, right] = [note(one, id), note(two, id)]
    await put(one, [right])
    await put(two, [left])
    expect(bytes(two, id)).toBe(bytes(one, id))
    return label(one, id)
  }
  return { one, two, three, id, meet }
}

export const LATER = NOW + 60_000
