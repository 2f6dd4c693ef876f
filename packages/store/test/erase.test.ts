import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eraseKeys, key, openStore, scanFiles, type Store } from '@csb/store'
import { bytesOf, testFolder, testStore } from './folder.ts'

const secret = () => bytesOf(`secret ${randomBytes(24).toString('hex')}`)
const put = (store: Store, at: string, value: Uint8Array) => store.transact((tx) => tx.put(at, value))

async function fill(store: Store, table: 'payload' | 'object', count: number): Promise<void> {
  for (let i = 0; i < count; i += 50) {
    await store.transact((tx) => {
      for (let j = i; j < i + 50; j++) tx.put(key(table, `fill${j}`), bytesOf(`filling ${j} `.repeat(40)))
    })
  }
}

test('L3.4 a value that was just written leaves no byte in any file', async () => {
  const store = await testStore()
  const value = secret()
  await put(store, key('payload', 1), value)
  expect(await scanFiles(store.directory, [value])).not.toEqual([])
  expect(await eraseKeys(store, [key('payload', 1)], [value])).toEqual({ keys: 1, remains: [] })
  expect(await scanFiles(store.directory, [value])).toEqual([])
  expect(store.view().has(key('payload', 1))).toBe(false)
})

test('L3.4 values among many others, overwritten, reopened and in several tables, leave none either', async () => {
  const folder = await testFolder()
  const first = await openStore(join(folder, 'db'))
  const [one, old, other] = [secret(), secret(), secret()]
  await fill(first, 'payload', 400)
  await put(first, key('payload', 'fill200x'), one)
  await put(first, key('payload', 'fill200y'), old)
  await fill(first, 'object', 200)
  await put(first, key('object', 'fill100x'), other)
  await first.close()

  const store = await testStore(folder)
  await put(store, key('payload', 'fill200y'), bytesOf('newer'))
  const keys = [key('payload', 'fill200x'), key('payload', 'fill200y'), key('object', 'fill100x')]
  expect(await eraseKeys(store, keys, [one, old, other])).toEqual({ keys: 3, remains: [] })
  expect(await scanFiles(folder, [one, old, other])).toEqual([])
  expect(store.view().has(key('payload', 'fill201'))).toBe(true)
})

test('L3.4 what still stands somewhere is reported, not denied', async () => {
  const store = await testStore()
  const value = secret()
  await put(store, key('payload', 1), value)
  await put(store, key('payload', 2), value)
  const report = await eraseKeys(store, [key('payload', 1)], [value])
  expect(report.remains.length).toBeGreaterThan(0)
})

test('L3.4 the scan sees plain text that repeats itself: nothing on the disk is compressed out of its sight', async () => {
  const store = await testStore()
  const value = bytesOf('the doctor said the doctor knows what the doctor said')
  await put(
    store,
    key('payload', 1),
    bytesOf(`{"a":"the doctor","b":"said the"} ${'said the doctor knows '.repeat(30)}`),
  )
  await put(store, key('payload', 2), value)
  await store.db.compactRange('', '\u{10ffff}')
  expect(await scanFiles(store.directory, [value])).not.toEqual([])
  expect(await eraseKeys(store, [key('payload', 2)], [value])).toEqual({ keys: 1, remains: [] })
})

test('erasing nothing, or what is not there, is no error', async () => {
  const store = await testStore()
  expect(await eraseKeys(store, [], [])).toEqual({ keys: 0, remains: [] })
  expect(await eraseKeys(store, [key('payload', 9)], [secret()])).toEqual({ keys: 1, remains: [] })
})

test('many markers are looked for at once, and each that is there is found wherever it stands', async () => {
  const folder = await testFolder()
  const noise = randomBytes(200_000)
  const markers = Array.from({ length: 60 }, () => Uint8Array.from(randomBytes(24)))
  const file = join(folder, 'some.file')
  const short = bytesOf('xyz')
  await writeFile(file, noise)
  expect(await scanFiles(folder, markers)).toEqual([])
  for (const [place, marker] of [
    [0, markers[7]],
    [noise.byteLength - 24, markers[31]],
    [99_999, markers[59]],
    [noise.byteLength - 3, short],
  ] as const) {
    const bytes = Buffer.from(noise)
    bytes.set(marker ?? [], place)
    await writeFile(file, bytes)
    expect(await scanFiles(folder, [...markers, short])).toEqual(['some.file'])
    // a piece of one is not the whole of it
    bytes.set([bytes[place] === 0 ? 1 : 0], place)
    await writeFile(file, bytes)
    expect(await scanFiles(folder, markers)).toEqual([])
  }
})
