import { describe, expect, test } from 'vitest'
import { createKeyPair, utf8, type Label, type Tombstone } from '@csb/core'
import { commitFiles, getRef, listFiles, readFile, readLog } from '@csb/files'
import { createNotes, getState, listNotes, notePath, rebuildIndex, type Note } from '@csb/memory'
import { scanFiles } from '@csb/store'
import { applyTombstones, finishErasures, isForgotten, isVisible, listTombstones, putRemembered } from '../src/index.ts'
import { ALL, openHome, snapshot } from './open-home.ts'

const tombstonesOf = async (
  node: Awaited<ReturnType<typeof openHome>>,
  clearance: Parameters<typeof listTombstones>[2] = ALL,
) => {
  const found = []
  for await (const tombstone of listTombstones(node.store.view(), node.home.id, clearance)) found.push(tombstone)
  return found
}

describe('forgetting a note', () => {
  test('the note is gone from tree and index, a signed tombstone stands, and history keeps its ids', async () => {
    const node = await openHome()
    const kept = await node.create('kept')
    const note = await node.create('forgotten')
    const { id } = note.entry
    const log = readLog(node.store.view(), { home: node.home.id, at: 'memory', limit: 50 })
    const done = await node.forget(id)
    expect(done.tombstone).toMatchObject({
      v: 1,
      home: node.home.id,
      id,
      label: 'private:owner',
      reason: 'asked to',
      by: node.key.did,
    })
    expect(done.tombstone.hlc > note.hlc).toBe(true)
    const view = node.store.view()
    expect(isForgotten(view, node.home.id, id)).toBe(true)
    expect(isForgotten(view, node.home.id, kept.entry.id)).toBe(false)
    expect(getState(view, node.home.id, id)).toBeUndefined()
    expect((await listNotes(view, node.home.id, { limit: 50, clearance: ALL, includeDeleted: true })).items).toEqual([
      kept,
    ])
    const after = readLog(view, { home: node.home.id, at: 'memory', limit: 50 })
    expect(after[0]?.commit).toBe(done.commit)
    expect(after.slice(1)).toEqual(log)
    expect(await tombstonesOf(node)).toEqual([done.tombstone])
  })

  test('reading any old version fails with FORGOTTEN, before and after the bytes are gone', async () => {
    const node = await openHome()
    const { id } = (await node.create('one')).entry
    const first = getRef(node.store.view(), node.home.id, 'memory')?.commit ?? ''
    await node.softDelete(id)
    const second = getRef(node.store.view(), node.home.id, 'memory')?.commit ?? ''
    const { erase } = await node.forget(id)
    expect(erase.oids).toHaveLength(2)
    const reads = () => {
      for (const at of [first, second]) {
        const read = () => readFile(node.store.view(), { home: node.home.id, at, path: notePath(id) })
        expect(read).toThrow(expect.objectContaining({ code: 'FORGOTTEN' }))
        expect(listFiles(node.store.view(), { home: node.home.id, at, recursive: true }).at(-1)?.path).toBe(
          notePath(id),
        )
      }
      expect(() => node.get(id)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    }
    reads()
    await finishErasures(node.store)
    reads()
    expect(await node.store.transact((tx) => rebuildIndex(tx, node.home.id))).toBe(0)
  })

  test('L4.3 a forgotten note never comes back: not put, not created, not written as a file', async () => {
    const node = await openHome()
    const note = await node.create('to be forgotten')
    const { id } = note.entry
    await node.forget(id)
    await finishErasures(node.store)
    const before = await snapshot(node.store)
    const newer = { ...note, hlc: 'f'.repeat(12) + '0000', entry: { ...note.entry, content: 'changed' } }
    for (const notes of [[note], [newer]]) {
      const put = await node.store.transact((tx) => putRemembered(tx, { ...node.words(), notes }))
      expect(put).toMatchObject({ applied: [], ignored: [id] })
    }
    const create = node.store.transact((tx) =>
      createNotes(tx, { ...node.words(), inputs: [{ entry: note.entry }], actor: node.key.did }),
    )
    await expect(create).rejects.toMatchObject({ code: 'FORGOTTEN' })
    await expect(node.copy('memory', notePath(id), note)).rejects.toMatchObject({ code: 'FORGOTTEN' })
    await expect(node.copy('runs/one', notePath(id), newer)).rejects.toMatchObject({ code: 'FORGOTTEN' })
    await expect(node.copy('runs/one', 'elsewhere.md', note)).rejects.toMatchObject({ code: 'FORGOTTEN' })
    expect(await snapshot(node.store)).toEqual(before)
  })

  test('notes that come together with a forgotten one are taken in', async () => {
    const node = await openHome()
    const source = await openHome(node.home.id)
    const [forgotten, welcome] = [await source.create('forgotten'), await source.create('welcome')]
    const { tombstone } = await source.forget(forgotten.entry.id)
    await node.store.transact((tx) => applyTombstones(tx, { ...node.words(), tombstones: [tombstone] }))
    const put = await node.store.transact((tx) =>
      putRemembered(tx, { ...node.words(), now: Date.now() + 1e12, notes: [forgotten, welcome] }),
    )
    expect(put).toMatchObject({ applied: [{ id: welcome.entry.id }], ignored: [forgotten.entry.id], ahead: [] })
    expect(node.get(welcome.entry.id)).toEqual(welcome)
  })

  test('what is not here, or was forgotten already, is refused and nothing is written', async () => {
    const node = await openHome()
    const { id } = (await node.create('x')).entry
    await node.forget(id)
    const before = await snapshot(node.store)
    await expect(node.forget(id)).rejects.toMatchObject({ code: 'FORGOTTEN' })
    await expect(node.forget('mem_1700000000000_none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await snapshot(node.store)).toEqual(before)
  })

  test('a reason that is too long is refused and nothing is written', async () => {
    const node = await openHome()
    const { id } = (await node.create('x')).entry
    const before = await snapshot(node.store)
    await expect(node.forget(id, 'x'.repeat(257))).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await snapshot(node.store)).toEqual(before)
  })
})

describe('tombstones from a peer', () => {
  test('L4.3 a tombstone takes the note away at the other node, once', async () => {
    const node = await openHome()
    const peer = await openHome(node.home.id)
    const note = await node.create('shared')
    await peer.store.transact((tx) => putRemembered(tx, { ...peer.words(), now: Date.now() + 1e12, notes: [note] }))
    const { tombstone } = await node.forget(note.entry.id)
    const apply = () =>
      peer.store.transact((tx) =>
        applyTombstones(tx, { ...peer.words(), tombstones: [tombstone], signers: (did) => did === node.key.did }),
      )
    const done = await apply()
    expect(done).toMatchObject({ applied: [note.entry.id], erase: [{ id: note.entry.id, oids: { length: 1 } }] })
    expect(done.commit).toBe(getRef(peer.store.view(), node.home.id, 'memory')?.commit)
    expect(() => peer.get(note.entry.id)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    expect(await finishErasures(peer.store)).toMatchObject([
      { id: note.entry.id, cleared: 1, remains: [], scanned: true },
    ])
    expect(await apply()).toEqual({ applied: [], erase: [] })
    expect(await tombstonesOf(peer)).toEqual([tombstone])
  })

  test('L4.3 a tombstone that is here before its note keeps the note out', async () => {
    const node = await openHome()
    const peer = await openHome(node.home.id)
    const note = await node.create('never seen there')
    const { tombstone } = await node.forget(note.entry.id)
    const head = getRef(peer.store.view(), peer.home.id, 'memory')
    const early = { ...peer.words(), tombstones: [tombstone] }
    expect(await peer.store.transact((tx) => applyTombstones(tx, early))).toEqual({
      applied: [note.entry.id],
      erase: [],
    })
    expect(getRef(peer.store.view(), peer.home.id, 'memory')).toEqual(head)
    const put = await peer.store.transact((tx) => putRemembered(tx, { ...peer.words(), notes: [note] }))
    expect(put).toMatchObject({ applied: [], ignored: [note.entry.id] })
    expect(await finishErasures(peer.store)).toEqual([])
  })

  test('L4.3 a page of tombstones takes all of its notes away at once, and all of it or none', async () => {
    const node = await openHome()
    const peer = await openHome(node.home.id)
    const notes: Note[] = []
    for (let count = 0; count < 12; count++) notes.push(await node.create(`note ${count}, to be forgotten`))
    await peer.store.transact((tx) => putRemembered(tx, { ...peer.words(), now: Date.now() + 1e12, notes }))
    const [kept, ...gone] = notes
    const tombstones: Tombstone[] = []
    for (const { entry } of gone) tombstones.push((await node.forget(entry.id)).tombstone)
    const apply = (page: readonly unknown[]) =>
      peer.store.transact((tx) => applyTombstones(tx, { ...peer.words(), tombstones: page }))
    const before = await snapshot(peer.store)
    await expect(apply([...tombstones, { ...tombstones[0], reason: 'another' }])).rejects.toMatchObject({
      code: 'DENIED',
    })
    expect(await snapshot(peer.store)).toEqual(before)
    const done = await apply([...tombstones, ...tombstones])
    expect(done.applied).toEqual(gone.map(({ entry }) => entry.id))
    expect(done.erase.map(({ id, oids }) => [id, oids.length])).toEqual(gone.map(({ entry }) => [entry.id, 1]))
    const reports = await finishErasures(peer.store)
    expect(reports.map(({ id, cleared, remains }) => [id, cleared, remains])).toEqual(
      gone.map(({ entry }) => [entry.id, 1, []]),
    )
    expect(peer.get(kept?.entry.id ?? '').entry.content).toBe('note 0, to be forgotten')
    expect(
      await scanFiles(
        peer.store.directory,
        gone.map(({ entry }) => utf8(entry.content)),
      ),
    ).toEqual([])
  })

  test('a tombstone that is changed, of another home, or signed by a stranger is refused and nothing is written', async () => {
    const node = await openHome()
    const peer = await openHome(node.home.id)
    const other = await openHome()
    const victim = await node.create('victim')
    await peer.store.transact((tx) => putRemembered(tx, { ...peer.words(), now: Date.now() + 1e12, notes: [victim] }))
    const { tombstone } = await node.forget((await node.create('x')).entry.id)
    const before = await snapshot(peer.store)
    const refuse = (value: unknown, code: string, target = peer, signers?: (did: string) => boolean) =>
      expect(
        target.store.transact((tx) =>
          applyTombstones(tx, {
            ...target.words(),
            tombstones: [value],
            ...(signers === undefined ? {} : { signers }),
          }),
        ),
      ).rejects.toMatchObject({ code })
    await refuse({ ...tombstone, id: victim.entry.id }, 'DENIED')
    await refuse({ ...tombstone, by: createKeyPair().did }, 'DENIED')
    await refuse({ ...tombstone, label: 'public:owner' }, 'DENIED')
    await refuse({ ...tombstone, signature: `ed25519:${'A'.repeat(86)}` }, 'DENIED')
    await refuse({ ...tombstone, extra: 1 }, 'MALFORMED')
    await refuse({ ...tombstone, id: '../x' }, 'MALFORMED')
    await refuse(null, 'MALFORMED')
    await refuse(tombstone, 'DENIED', peer, () => false)
    await refuse(tombstone, 'DENIED', other)
    expect(await snapshot(peer.store)).toEqual(before)
  })

  test('L4.2 a reader is told only of tombstones whose label it may see', async () => {
    const node = await openHome()
    const labels: Label[] = [
      { level: 'public', integrity: 'owner', tags: [] },
      { level: 'trusted', integrity: 'agent', tags: ['health'] },
      { level: 'sealed', integrity: 'owner', tags: [] },
    ]
    const ids: string[] = []
    for (const label of labels) ids.push((await node.create(`a note of ${label.level}`, label)).entry.id)
    for (const id of ids) await node.forget(id)
    const told = async (level: Label['level'], tags: string[]) =>
      (await tombstonesOf(node, { level, tags })).map(({ id }) => ids.indexOf(id)).toSorted((a, b) => a - b)
    expect(await told('public', [])).toEqual([0])
    expect(await told('private', [])).toEqual([0])
    expect(await told('private', ['health'])).toEqual([0, 1])
    expect(await told('sealed', ['health'])).toEqual([0, 1, 2])
    expect(isVisible({ level: 'private', tags: [] }, 'nonsense')).toBe(false)
    expect(isVisible({ level: 'private', tags: [] }, 'trusted:agent')).toBe(true)
  })
})

test('a run branch that forked before the forgetting can go on', async () => {
  const node = await openHome()
  const { id } = (await node.create('x')).entry
  const fork = { ...node.words(), branch: 'runs/one', from: 'memory' }
  await node.store.transact((tx) =>
    commitFiles(tx, { ...fork, changes: [{ path: 'work.md', bytes: new Uint8Array([65]) }] }),
  )
  await node.forget(id)
  await finishErasures(node.store)
  await node.store.transact((tx) =>
    commitFiles(tx, { ...node.words(), branch: 'runs/one', changes: [{ path: 'work.md', bytes: null }] }),
  )
  const read = () => readFile(node.store.view(), { home: node.home.id, at: 'runs/one', path: notePath(id) })
  expect(read).toThrow(expect.objectContaining({ code: 'FORGOTTEN' }))
})
