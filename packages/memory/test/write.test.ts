import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseLabel, type Clearance } from '@csb/core'
import { getRef, listFiles, MEMORY } from '@csb/files'
import { prefix } from '@csb/store'
import { expect, test } from 'vitest'
import { plainClock } from '../src/label-clock.ts'
import { getNote, listNotes } from '../src/read.ts'
import { getState } from '../src/states.ts'
import { createNotes, deleteNote, relabelNote, restoreNote } from '../src/write.ts'
import { DID, NOW, openHome, OTHER, OWNER, words } from './support.ts'

async function homeWithNote(label = 'private:owner') {
  const { store, home, directory } = await openHome()
  const { notes } = await store.transact((tx) =>
    createNotes(tx, {
      ...words,
      home,
      actor: DID,
      inputs: [
        { entry: { content: 'tea is hot', type: 'lesson', level: 'hot', tags: ['茶'] }, label: parseLabel(label) },
      ],
    }),
  )
  const id = notes[0]?.entry.id ?? ''
  const change = (work: typeof deleteNote | typeof restoreNote, now: number, clearance: Clearance = OWNER) =>
    store.transact((tx) => work(tx, { ...words, home, id, actor: OTHER, clearance, now }))
  return { store, home, id, change, directory }
}

test('MEM-001.1.4 what was changed in each entry is said, in the order of the notes', async () => {
  const { store, home } = await openHome()
  const inputs = [
    { entry: { content: 'a', type: 'todo', level: 'hot', timestamp: 5 } },
    { entry: { content: 'b', type: 'song', level: 'hot', timestamp: 5 } },
  ]
  const { notes, warnings } = await store.transact((tx) => createNotes(tx, { ...words, home, actor: DID, inputs }))
  expect(notes.map(({ entry }) => entry.content)).toEqual(['a', 'b'])
  expect(warnings).toEqual([[], [{ path: '/type', from: 'song', to: 'other' }]])
})

test('an id that is taken is a conflict, or kept as it is where the caller says so', async () => {
  const { store, home, id } = await homeWithNote()
  const create = (existing: 'refuse' | 'keep') =>
    store.transact((tx) =>
      createNotes(tx, {
        ...words,
        home,
        actor: DID,
        existing,
        inputs: [{ entry: { id, content: 'other' } }, { entry: { content: 'new' } }],
      }),
    )
  await expect(create('refuse')).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await create('keep')).toMatchObject({ kept: [id], notes: [{ entry: { content: 'new' } }] })
  expect(getNote(store.view(), home, id, OWNER).entry.content).toBe('tea is hot')
})

test('a home that is not here takes no note', async () => {
  const { store } = await openHome()
  const inputs = [{ entry: { content: 'x' } }]
  await expect(
    store.transact((tx) => createNotes(tx, { ...words, home: 'home_aaaaaaaaaaaaaaaaaaaaaaaaaa', actor: DID, inputs })),
  ).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('MEM-005.5.2 a deleted note is not found, and comes back whole when it is restored', async () => {
  const { store, home, id, change } = await homeWithNote()
  const before = getNote(store.view(), home, id, OWNER)
  const { note, commit } = await change(deleteNote, NOW + 1000)
  expect(note).toMatchObject({ deletedAt: NOW + 1000, actor: OTHER })
  expect(getRef(store.view(), home, MEMORY)?.commit).toBe(commit)
  expect(() => getNote(store.view(), home, id, OWNER)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }) as Error)
  expect((await listNotes(store.view(), home, { limit: 5, clearance: OWNER })).items).toEqual([])
  expect(getNote(store.view(), home, id, OWNER, { includeDeleted: true })).toEqual(note)

  const restored = (await change(restoreNote, NOW + 2000)).note
  // who made it is kept, for changes of its label that have seen it
  expect(restored).toEqual({ ...before, hlc: restored.hlc, actor: OTHER, clock: plainClock(before) })
  expect(restored.hlc > note.hlc && note.hlc > before.hlc).toBe(true)
  expect(getNote(store.view(), home, id, OWNER)).toEqual(restored)
})

test('MEM-005.5.2 deleting or restoring twice makes one version', async () => {
  const { change } = await homeWithNote()
  const first = await change(deleteNote, NOW + 1)
  expect(await change(deleteNote, NOW + 2)).toEqual(first)
  const restored = await change(restoreNote, NOW + 3)
  expect(await change(restoreNote, NOW + 4)).toEqual(restored)
})

test('MEM-005.5.2 a note above the clearance can neither be deleted nor restored', async () => {
  const { store, home, id, change } = await homeWithNote('sealed:owner')
  const state = getState(store.view(), home, id)
  for (const work of [deleteNote, restoreNote]) {
    await expect(change(work, NOW, { level: 'private', tags: [] })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  expect(getState(store.view(), home, id)).toEqual(state)
})

test('a label that has no spelling becomes the most restrictive', async () => {
  const { store, home } = await openHome()
  const inputs = [
    { entry: { content: 'x' }, label: { level: 'public', integrity: 'owner', tags: ['not a tag'] } as const },
  ]
  const { notes } = await store.transact((tx) => createNotes(tx, { ...words, home, actor: DID, inputs }))
  expect(notes[0]?.label).toMatchObject({ level: 'sealed', integrity: 'external' })
  expect(getNote(store.view(), home, notes[0]?.entry.id ?? '', OWNER)).toEqual(notes[0])
})

test('L2.2 with git and grep alone a note is found and read', async () => {
  const { store, home, id, directory } = await homeWithNote()
  const repository = join(directory, 'plain')
  const run = (...command: [string, ...string[]]) =>
    execFileSync(command[0], command.slice(1), { cwd: repository, encoding: 'utf8' })
  await mkdir(repository)
  run('git', 'init', '-q', '--object-format=sha256', '.')
  // what is stored, one after another, is a pack
  const entries: Uint8Array[] = []
  for await (const [, value] of store.view().range({ prefix: prefix('object', home) })) entries.push(value)
  const head = Buffer.from([...Buffer.from('PACK'), 0, 0, 0, 2, 0, 0, 0, 0])
  head.writeUInt32BE(entries.length, 8)
  const pack = Buffer.concat([head, ...entries])
  const input = Buffer.concat([pack, createHash('sha256').update(pack).digest()])
  execFileSync('git', ['unpack-objects', '-q'], { cwd: repository, input })
  run('git', 'update-ref', 'refs/heads/memory', getRef(store.view(), home, MEMORY)?.commit ?? '')
  run('git', 'checkout', '-q', 'memory')
  const [path] = listFiles(store.view(), { home, at: MEMORY, recursive: true }).flatMap((file) =>
    file.kind === 'file' ? [file.path] : [],
  )

  expect(run('grep', '-rlI', 'tea is hot', 'notes').trim()).toBe(path)
  expect(run('git', 'show', `memory:${path}`)).toBe(run('cat', path ?? ''))
  for (const line of [`id: ${id}`, 'type: lesson', 'level: hot', '  - 茶', 'label: private:owner']) {
    expect(run('git', 'grep', '-h', '-F', '-e', line, 'memory', '--', 'notes').trim()).toBe(line.trim())
  }
  expect(run('git', 'log', '-1', '--format=%an %s', 'memory').trim()).toBe('Ada a test')
})

test('L3.2 a note with another label is a new version with the same words', async () => {
  const { store, home, id } = await homeWithNote()
  const before = getState(store.view(), home, id)
  const relabel = (label: string, clearance: Clearance = OWNER) =>
    store.transact((tx) =>
      relabelNote(tx, { ...words, home, id, actor: OTHER, clearance, now: NOW + 5, label: parseLabel(label) }),
    )
  const { note } = await relabel('trusted:owner')
  expect(note.entry.content).toBe('tea is hot')
  expect(getState(store.view(), home, id)).toMatchObject({ label: 'trusted:owner', path: before?.path })
  expect((getState(store.view(), home, id)?.hlc ?? '') > (before?.hlc ?? '')).toBe(true)
  expect((await relabel('trusted:owner')).note.hlc).toBe(note.hlc)
  await expect(relabel('public:owner', { level: 'public', tags: [] })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
