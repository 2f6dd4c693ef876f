import { LIMITS, newId, OWNER_PRIVATE, parseLabel } from '@csb/core'
import { commitFiles, getRef, listFiles, MEMORY, readCommit, readLog } from '@csb/files'
import { key, prefix, type Store } from '@csb/store'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plainClock } from '../src/label-clock.ts'
import { OWNERS } from '../src/merge-notes.ts'
import { renderNote, type Note } from '../src/note.ts'
import { putNotes, removeNotes } from '../src/put.ts'
import { getNote } from '../src/read.ts'
import { getState, labelsOf, rebuildIndex } from '../src/states.ts'
import { createNotes, relabelNote } from '../src/write.ts'
import { DID, noteOf, NOW, openHome, OTHER, OWNER, words } from './support.ts'

const put = (store: Store, home: string, notes: readonly Note[], now = NOW) =>
  store.transact((tx) => putNotes(tx, { ...words, now, home, notes }))

const treeOf = (store: Store, home: string) => {
  const view = store.view()
  return readCommit(view, home, getRef(view, home, MEMORY)?.commit ?? '').tree
}

async function rowsOf(store: Store, home: string): Promise<Record<string, string>> {
  const rows: Record<string, string> = {}
  for (const table of ['note', 'noteByLevel', 'noteByType', 'noteLabel'] as const) {
    for await (const [row, value] of store.view().range({ prefix: prefix(table, home) }))
      rows[row] = Buffer.from(value).toString()
  }
  return rows
}

const ALL = { level: 'sealed', tags: ['*'] } as const

/** Of versions of the note that `noteOf` makes. */
const clock = plainClock(noteOf())

describe('putting notes', () => {
  test('the later clock wins, whatever came first, and the note stays at its path', async () => {
    const { store, home } = await openHome()
    const id = newId('memory', NOW)
    const [older, newer] = [
      noteOf({ id }),
      noteOf({ id, content: 'cold', type: 'event', level: 'hot' }, { hlc: '01a3185c50000001', clock }),
    ]
    const first = await put(store, home, [newer])
    const second = await put(store, home, [older])
    expect(second).toEqual({ commit: first.commit, applied: [], ignored: [id], ahead: [] })
    expect(getNote(store.view(), home, id, OWNER)).toEqual(newer)
    await put(store, home, [noteOf({ id, content: 'warm' }, { hlc: '01a3185c50000002', clock })])
    expect(
      listFiles(store.view(), { home, at: MEMORY, recursive: true }).filter(({ kind }) => kind === 'file'),
    ).toHaveLength(1)
    expect(Object.keys(await rowsOf(store, home))).toHaveLength(4)
  })

  test('of equal clocks the higher actor wins, of equal actors the higher object id', async () => {
    const { store, home } = await openHome()
    const id = newId('memory', NOW)
    await put(store, home, [noteOf({ id }, { actor: OTHER, clock })])
    expect((await put(store, home, [noteOf({ id, content: 'x' })])).ignored).toEqual([id])
    await put(store, home, [noteOf({ id, content: 'x' }, { actor: OTHER, clock })])
    await put(store, home, [noteOf({ id, content: 'y' }, { actor: OTHER, clock })])
    const winner = getState(store.view(), home, id)
    const again = await openHome()
    await put(again.store, again.home, [
      noteOf({ id, content: 'y' }, { actor: OTHER, clock }),
      noteOf({ id, content: 'x' }, { actor: OTHER, clock }),
      noteOf({ id }, { actor: OTHER, clock }),
    ])
    expect(getState(again.store.view(), again.home, id)).toEqual(winner)
  })

  test('a note that is here already makes no commit', async () => {
    const { store, home } = await openHome()
    const note = noteOf()
    const first = await put(store, home, [note])
    expect(await put(store, home, [note])).toMatchObject({ commit: first.commit, ignored: [note.entry.id] })
    expect(await put(store, home, [])).toMatchObject({ commit: first.commit })
  })

  test('a clock that is too far ahead is not taken in and moves nothing', async () => {
    const { store, home } = await openHome()
    const far = noteOf({}, { hlc: 'ffffffffffff0000' })
    expect(await put(store, home, [far])).toMatchObject({ applied: [], ahead: [far.entry.id] })
    const { notes } = await store.transact((tx) =>
      createNotes(tx, { ...words, home, actor: DID, inputs: [{ entry: { content: 'x' } }] }),
    )
    expect(notes[0]?.hlc).toBe('01a3185c50000000')
  })

  test('own notes are kept also after the wall clock went back', async () => {
    const { store, home } = await openHome()
    const create = (now: number) =>
      store.transact((tx) =>
        createNotes(tx, { ...words, now, home, actor: DID, inputs: [{ entry: { content: 'x' } }] }),
      )
    const [late] = (await create(NOW)).notes
    const [early] = (await create(NOW - 86_400_000)).notes
    expect(early?.hlc).toBe('01a3185c50000001')
    expect(late?.hlc).toBe('01a3185c50000000')
    expect(getNote(store.view(), home, early?.entry.id ?? '', OWNER)).toEqual(early)
  })

  test('nothing is written when one note of many is refused', async () => {
    const { store, home } = await openHome()
    const notes = [noteOf(), noteOf({ big: 'x'.repeat(70_000) })]
    await expect(put(store, home, notes)).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect(await rowsOf(store, home)).toEqual({})
  })

  test('equal sets of notes give equal trees and equal indexes, whatever the order and the batches', async () => {
    const ids = Array.from({ length: 6 }, (_, at) => `mem_17${String(at).repeat(11)}_a`)
    const note = fc
      .record({
        id: fc.constantFrom(...ids),
        hlc: fc.integer({ min: 0, max: 3 }).map((n) => `01a3185c5000000${n}`),
        actor: fc.constantFrom(DID, OTHER),
        content: fc.constantFrom('a', 'b', 'c'),
        level: fc.constantFrom('hot', 'warm', 'cold' as const),
        deletedAt: fc.constantFrom(null, NOW),
      })
      .map(({ id, content, level, ...rest }) => noteOf({ id, content, level }, rest))
    const shuffled = fc
      .array(note, { minLength: 1, maxLength: 25 })
      .chain((notes) =>
        fc.tuple(
          fc.constant(notes),
          fc.shuffledSubarray(notes, { minLength: notes.length, maxLength: notes.length }),
          fc.integer({ min: 1, max: 25 }),
        ),
      )
    const { store: one, home: a } = await openHome()
    const { store: two, home: b } = await openHome({ id: a })
    await fc.assert(
      fc.asyncProperty(shuffled, async ([notes, others, size]) => {
        for (const [store, home] of [
          [one, a],
          [two, b],
        ] as const)
          await store.transact((tx) => removeNotes(tx, { ...words, home, ids }))
        await put(one, a, notes)
        for (let at = 0; at < others.length; at += size) await put(two, b, others.slice(at, at + size))
        expect(treeOf(two, b)).toBe(treeOf(one, a))
        const rows = await rowsOf(one, a)
        expect(await rowsOf(two, b)).toEqual(rows)
        await two.transact((tx) => rebuildIndex(tx, b))
        expect(await rowsOf(two, b)).toEqual(rows)
      }),
      { numRuns: 60 },
    )
  })
})

describe('labels of a home', () => {
  const labelled = (label: string, rest: Partial<Note> = {}): Note => noteOf({}, { label: parseLabel(label), ...rest })

  test('are counted as notes come, change and go', async () => {
    const { store, home } = await openHome()
    const count = () => labelsOf(store.view(), home)
    const [one, two] = [labelled('private:owner:a'), labelled('private:owner:a')]
    await put(store, home, [one, two, labelled('public:owner')])
    expect(count()).toBe(2)
    const { id } = one.entry
    await store.transact((tx) =>
      relabelNote(tx, { ...words, home, id, actor: DID, clearance: ALL, label: parseLabel('sealed:owner:b') }),
    )
    expect(count()).toBe(3)
    await store.transact((tx) => removeNotes(tx, { ...words, home, ids: [two.entry.id] }))
    expect(count()).toBe(2)
    await store.transact((tx) => rebuildIndex(tx, home))
    expect(count()).toBe(2)
  })

  test.each([
    ['a node of the owner', LIMITS.syncLabels, OWNERS],
    ['anybody else', LIMITS.syncLabelsOfOthers, { from: 'other', here: 'owner' }],
  ] as const)('have a bound: %s brings none beyond it, and nothing of what came with it', async (_who, most, from) => {
    const { store, home } = await openHome()
    const known = labelled('private:external')
    await put(store, home, [known])
    await store.transact((tx) => tx.putJson(key('noteLabel', home), most))
    const standing = { ...from, node: DID }
    const bring = (notes: readonly Note[]) => store.transact((tx) => putNotes(tx, { ...words, home, notes, standing }))
    const before = treeOf(store, home)
    await expect(bring([labelled('private:external'), labelled('private:external:new')])).rejects.toMatchObject({
      code: 'TOO_LARGE',
    })
    expect(treeOf(store, home)).toBe(before)
    expect((await bring([labelled('private:external')])).applied).toHaveLength(1)
  })
})

describe('removing notes', () => {
  test('the file and all rows are gone, and ids that are not here are passed over', async () => {
    const { store, home } = await openHome()
    const empty = treeOf(store, home)
    const note = noteOf()
    await put(store, home, [note])
    const { removed } = await store.transact((tx) =>
      removeNotes(tx, { ...words, home, ids: [note.entry.id, 'mem_1700000000000_none'] }),
    )
    expect(removed).toEqual([note.entry.id])
    expect(treeOf(store, home)).toBe(empty)
    expect(await rowsOf(store, home)).toEqual({})
  })
})

describe('the index', () => {
  test('L2.1 the rows deleted and damaged are made anew from the tree alone, to the byte', async () => {
    const { store, home } = await openHome()
    const label = { ...OWNER_PRIVATE, tags: ['健康'] }
    await put(store, home, [
      noteOf({}, { label }),
      noteOf({ type: 'event', level: 'hot' }),
      noteOf({ level: 'cold' }, { deletedAt: NOW }),
    ])
    const before = await rowsOf(store, home)
    await store.transact(async (tx) => {
      const [first, second] = Object.keys(before)
      tx.del(first ?? '')
      tx.put(second ?? '', Buffer.from('{"id":"nonsense"}'))
      tx.put(`${prefix('note', home)}mem_1700000000000_ghost`, Buffer.from('{}'))
    })
    expect(await store.transact((tx) => rebuildIndex(tx, home))).toBe(3)
    expect(await rowsOf(store, home)).toEqual(before)
  })

  test('L2.1 after the rebuild this node still writes later than what it found', async () => {
    const { store, home } = await openHome()
    const note = noteOf({}, { hlc: '01a3185c5fff0000' })
    await put(store, home, [note])
    await store.transact((tx) => tx.del('m/hlc'))
    await store.transact((tx) => rebuildIndex(tx, home))
    const { notes } = await store.transact((tx) =>
      createNotes(tx, { ...words, home, actor: DID, inputs: [{ entry: { content: 'x' } }] }),
    )
    expect(notes[0]?.hlc).toBe('01a3185c5fff0001')
  })

  test('files that are no notes, or lie elsewhere than their id says, are none of it', async () => {
    const { store, home } = await openHome()
    const note = noteOf()
    await put(store, home, [note])
    const stray = renderNote(noteOf())
    await store.transact((tx) =>
      commitFiles(tx, {
        ...words,
        home,
        branch: MEMORY,
        changes: [
          { path: 'notes/README.md', bytes: Buffer.from('hello') },
          { path: 'notes/stray.md', bytes: stray },
        ],
      }),
    )
    expect(await store.transact((tx) => rebuildIndex(tx, home))).toBe(1)
  })

  test('of a home without notes it is empty', async () => {
    const { store, home } = await openHome()
    expect(await store.transact((tx) => rebuildIndex(tx, home))).toBe(0)
  })
})

test('a hundred notes are one commit', async () => {
  const { store, home } = await openHome()
  const inputs = Array.from({ length: 100 }, (_, at) => ({ entry: { content: `note ${at}` } }))
  const { commit, notes } = await store.transact((tx) =>
    createNotes(tx, { ...words, trailers: { 'Csb-Run': 'run_1' }, home, actor: DID, inputs }),
  )
  expect(new Set(notes.map(({ hlc }) => hlc)).size).toBe(100)
  const log = readLog(store.view(), { home, at: MEMORY, limit: 10 })
  expect(log.map((entry) => entry.commit)).toEqual([commit, expect.any(String)])
  expect(log[0]).toMatchObject({ message: 'a test', trailers: { 'Csb-Run': 'run_1' } })
})
