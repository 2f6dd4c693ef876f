import { OWNER_PRIVATE, parseLabel, type Clearance } from '@csb/core'
import { key } from '@csb/store'
import { describe, expect, test } from 'vitest'
import { putNotes } from '../src/put.ts'
import { getNote, listNotes } from '../src/read.ts'
import type { Note } from '../src/note.ts'
import { getState, listStates } from '../src/states.ts'
import { noteOf, NOW, openHome, OWNER, words } from './support.ts'

const TRUSTED: Clearance = { level: 'trusted', tags: [] }

async function homeWith(notes: readonly Note[]) {
  const { store, home } = await openHome()
  await store.transact((tx) => putNotes(tx, { ...words, home, notes }))
  return { store, home }
}

const at = (n: number) => `mem_170000000000${n}_a`

describe('one note', () => {
  test('L1.5 is read whole, and the read is noted with its own label', async () => {
    const note = noteOf({}, { label: parseLabel('sealed:agent') })
    const { store, home } = await homeWith([note])
    const view = store.view()
    expect(getNote(view, home, note.entry.id, OWNER)).toEqual(note)
    const { path, oid } = getState(view, home, note.entry.id) ?? {}
    expect(view.reads).toEqual([{ home, path, oid, label: note.label }])
  })

  test.each(['private:owner', 'sealed:owner', 'public:owner:health', 'trusted:agent:a,b'])(
    'L4.2 under %s is not there for who may not see it, and no read is noted',
    async (label) => {
      const note = noteOf({}, { label: parseLabel(label) })
      const { store, home } = await homeWith([note])
      const view = store.view()
      expect(() => getNote(view, home, note.entry.id, TRUSTED)).toThrow(
        expect.objectContaining({ code: 'NOT_FOUND' }) as Error,
      )
      expect(await listNotes(view, home, { limit: 10, clearance: TRUSTED })).toEqual({ items: [], next: null })
      expect(view.reads).toEqual([])
    },
  )

  test.each([
    ['private:owner', 'public:owner'],
    ['public:owner', 'private:owner'],
  ])('L4.2 a note of %s under an index row that says %s stays closed', async (label, claimed) => {
    const note = noteOf({}, { label: parseLabel(label) })
    const { store, home } = await homeWith([note])
    const state = getState(store.view(), home, note.entry.id)
    await store.transact((tx) => tx.putJson(key('note', home, note.entry.id), { ...state, label: claimed }))
    expect(() => getNote(store.view(), home, note.entry.id, TRUSTED)).toThrow(
      expect.objectContaining({ code: 'NOT_FOUND' }) as Error,
    )
    expect((await listNotes(store.view(), home, { limit: 10, clearance: TRUSTED })).items).toEqual([])
  })

  test('of another home, or of none, is not there', async () => {
    const note = noteOf()
    const { store } = await homeWith([note])
    for (const home of ['home_aaaaaaaaaaaaaaaaaaaaaaaaaa', 'x/y']) {
      expect(() => getNote(store.view(), home, note.entry.id, OWNER)).toThrow(
        expect.objectContaining({ code: 'NOT_FOUND' }) as Error,
      )
    }
  })
})

describe('a list', () => {
  const notes = [
    noteOf({ id: at(1), type: 'event', level: 'hot' }),
    noteOf({ id: at(2), type: 'event', level: 'cold' }),
    noteOf({ id: at(3), type: 'todo', level: 'hot' }),
    noteOf({ id: at(4), type: 'todo', level: 'hot' }, { deletedAt: NOW }),
    noteOf({ id: at(5), type: 'event', level: 'hot' }, { label: { ...OWNER_PRIVATE, level: 'sealed' } }),
  ]
  const idsOf = async (filter: object, clearance: Clearance = OWNER) => {
    const { store, home } = await homeWith(notes)
    const { items } = await listNotes(store.view(), home, { limit: 10, clearance, ...filter })
    return items.map(({ entry }) => entry.id)
  }

  test('has the newest id first and leaves deleted notes out', async () => {
    expect(await idsOf({})).toEqual([at(5), at(3), at(2), at(1)])
    expect(await idsOf({ includeDeleted: true })).toEqual([at(5), at(4), at(3), at(2), at(1)])
  })

  test('narrows by level, by type, by both', async () => {
    expect(await idsOf({ level: 'hot' })).toEqual([at(5), at(3), at(1)])
    expect(await idsOf({ type: 'event' })).toEqual([at(5), at(2), at(1)])
    expect(await idsOf({ type: 'event', level: 'hot' }, { level: 'private', tags: [] })).toEqual([at(1)])
  })

  test('pages meet without gap or twin, and the cursor never names a hidden note', async () => {
    const { store, home } = await homeWith(notes)
    for (const filter of [{}, { level: 'hot' }, { type: 'event' }] as const) {
      const seen: string[] = []
      let after: string | null = null
      do {
        const page = await listNotes(store.view(), home, {
          ...filter,
          ...(after === null ? {} : { after }),
          limit: 1,
          clearance: { level: 'private', tags: [] },
        })
        seen.push(...page.items.map(({ entry }) => entry.id))
        after = page.next
        expect([null, at(3), at(2), at(1)]).toContain(after)
      } while (after !== null)
      expect(seen).toEqual(await idsOf(filter, { level: 'private', tags: [] }))
    }
  })

  test('notes every read', async () => {
    const { store, home } = await homeWith(notes)
    const view = store.view()
    await listNotes(view, home, { limit: 2, clearance: OWNER })
    expect(view.reads).toHaveLength(2)
  })

  test('of states has all of them in id order', async () => {
    const { store, home } = await homeWith(notes)
    expect((await Array.fromAsync(listStates(store.view(), home))).map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map(at))
  })
})
