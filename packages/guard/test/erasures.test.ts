/** The data folder itself is searched, byte for byte, for what was stored of a forgotten note. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createKeyPair, random, toBase64Url, until } from '@csb/core'
import { createHome, readBlob, type Home } from '@csb/files'
import { renderNote } from '@csb/memory'
import { key, openStore, scanFiles, type Store } from '@csb/store'
import { finishErasures } from '../src/index.ts'
import { NOW, nodeOf, openFolder, openHome } from './open-home.ts'

const SECRET = 'meet at the old lighthouse at nine, bring the blue notebook and tell nobody about 41.40338, 2.17403'

const storedOf = (store: Store, home: string, oids: readonly string[]) =>
  oids.map((oid) => Uint8Array.from(store.view().get(key('object', home, oid)) ?? []))

/** Every window of the bytes that is long enough not to turn up by chance. */
function windowsOf(bytes: Uint8Array): Uint8Array[] {
  const windows: Uint8Array[] = []
  for (let at = 0; at + 24 <= bytes.byteLength; at += 8) windows.push(bytes.subarray(at, at + 24))
  return windows
}

describe('the disk after forgetting', () => {
  test('L3.4 partial, attack 38: neither deflated nor plain bytes of any version are left, and the report says what it can not reach', async () => {
    const node = await openHome()
    for (let i = 0; i < 30; i++) await node.create(`another note, number ${i}`)
    const note = await node.create(SECRET)
    await node.softDelete(note.entry.id)
    for (let i = 0; i < 30; i++) await node.create(`one more note, number ${i}`)
    const { erase } = await node.forget(note.entry.id)
    const stored = storedOf(node.store, node.home.id, erase.oids)
    expect(stored.map((bytes) => bytes.byteLength > 100)).toEqual([true, true])
    // the control: before the erasure the scan does find them
    for (const bytes of stored)
      expect(await scanFiles(dirname(node.store.directory), [bytes.subarray(-40)])).not.toEqual([])

    const [report] = await finishErasures(node.store)
    expect(report).toMatchObject({ home: node.home.id, id: note.entry.id, cleared: 2, remains: [], scanned: true })
    expect(report?.not_covered.map(({ kind }) => kind)).toEqual(['names', 'derivatives', 'peers', 'exports', 'backups'])
    const pieces = [
      ...stored.flatMap((bytes) => windowsOf(bytes.subarray(-60))),
      ...windowsOf(renderNote(note).subarray(-SECRET.length)),
    ]
    expect(await scanFiles(dirname(node.store.directory), pieces)).toEqual([])
    expect(await finishErasures(node.store)).toEqual([])
  })

  test('they do not come back when the store is closed and opened again', async () => {
    const folder = await openFolder()
    const first = await openStore(folder)
    const { did } = createKeyPair()
    const home = await first.transact((tx) => createHome(tx, { owner: did, origin: did, now: NOW }))
    const { create, forget } = nodeOf(first, home)
    const { erase } = await forget((await create(SECRET)).entry.id)
    const stored = storedOf(first, home.id, erase.oids)
    await finishErasures(first)
    await first.close()
    const second = await openStore(folder)
    onTestFinished(() => second.close())
    expect(await scanFiles(folder, stored)).toEqual([])
    expect(() => readBlob(second.view(), home.id, erase.oids[0] ?? '')).toThrow(
      expect.objectContaining({ code: 'FORGOTTEN' }),
    )
  })

  test('L3.4 partial: a live copy under another path keeps its bytes and is named in the report', async () => {
    const node = await openHome()
    const note = await node.create(SECRET)
    await node.copy('runs/one', 'copies/mine.md', note)
    const { erase } = await node.forget(note.entry.id)
    expect(erase).toMatchObject({ oids: [], kept: [{ branch: 'runs/one', path: 'copies/mine.md' }] })
    const [report] = await finishErasures(node.store)
    expect(report).toMatchObject({
      cleared: 0,
      remains: [],
      not_covered: expect.arrayContaining([{ kind: 'copy', branch: 'runs/one', path: 'copies/mine.md' }]),
    })
    expect(Buffer.from(readBlob(node.store.view(), node.home.id, erase.kept[0]?.oid ?? ''))).toEqual(
      Buffer.from(renderNote(note)),
    )
  })

  test('the same text elsewhere in the store is found and reported, once', async () => {
    const node = await openHome()
    // no words: the database may store repeated ones as references, which a search for the text does not find
    const text = toBase64Url(random(60))
    const note = await node.create(text)
    await node.store.transact((tx) => tx.putJson(key('task', 'task_1'), { said: text }))
    await node.forget(note.entry.id)
    const [report] = await finishErasures(node.store)
    expect(report?.remains).not.toEqual([])
    expect(await finishErasures(node.store)).toMatchObject([{ remains: [], scanned: false }])
    expect(await finishErasures(node.store)).toEqual([])
  })

  test('a reader that holds old values open for a moment is waited for', async () => {
    const node = await openHome()
    const note = await node.create(SECRET)
    const reader = node.store.db.iterator()
    await reader.next()
    const { erase } = await node.forget(note.entry.id)
    const stored = storedOf(node.store, node.home.id, erase.oids)
    const done = finishErasures(node.store)
    const isDeleted = () => !node.store.view().has(key('object', node.home.id, erase.oids[0] ?? ''))
    await until(isDeleted, 30_000, 'the first attempt has deleted')
    await reader.close()
    expect(await done).toMatchObject([{ remains: [], scanned: true }])
    expect(await scanFiles(node.store.directory, stored)).toEqual([])
  })

  test('where a reader holds old values open for long, the bytes are reported and tried again', async () => {
    const node = await openHome()
    const note = await node.create(SECRET)
    const reader = node.store.db.iterator()
    await reader.next()
    const { erase } = await node.forget(note.entry.id)
    const stored = storedOf(node.store, node.home.id, erase.oids)
    const [held] = await finishErasures(node.store)
    expect(held?.remains).not.toEqual([])
    await reader.close()
    expect(await finishErasures(node.store)).toMatchObject([{ id: note.entry.id, remains: [], scanned: false }])
    expect(await scanFiles(node.store.directory, stored)).toEqual([])
    expect(await finishErasures(node.store)).toEqual([])
  })
})

describe('a node that is killed', () => {
  test.each([
    ['after the commit', true],
    ['after the delete', false],
  ])('%s finishes the erasure at the next start', async (point, scanned) => {
    const folder = await openFolder()
    const script = new URL('./killed.ts', import.meta.url).pathname
    const child = spawn(process.execPath, ['--conditions=csb-source', script, folder, point, SECRET], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    const [, signal] = (await once(child, 'close')) as [number | null, string | null]
    expect(signal).toBe('SIGKILL')
    const { home, id, other, stored } = JSON.parse(output) as {
      home: Home
      id: string
      other: string
      stored: string[]
    }
    const markers = stored.map((hex) => Buffer.from(hex, 'hex').subarray(-40))
    expect(markers).toHaveLength(1)
    expect(await scanFiles(folder, markers)).not.toEqual([])

    const store = await until(() => openStore(folder), 30_000, 'the lock of the killed process is free')
    onTestFinished(() => store.close())
    expect(await finishErasures(store)).toMatchObject([{ home: home.id, id, cleared: 1, remains: [], scanned }])
    expect(await scanFiles(folder, markers)).toEqual([])
    const node = nodeOf(store, home)
    expect(() => node.get(id)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    expect(node.get(other).entry.content).toBe('this one stays')
  })
})
