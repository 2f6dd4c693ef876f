import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Level } from 'level'
import { expect, test } from 'vitest'
import { until } from '@csb/core'
import { FORMAT, eraseKeys, key, openStore } from '@csb/store'
import { bytesOf, pairsOf, startWriter, testFolder, testStore } from './folder.ts'

test('a second process on the same folder is told who holds it', async () => {
  const directory = join(await testFolder(), 'db')
  const holder = startWriter(directory, 'hold')
  await until(() => holder.lines.includes('open'), 30_000, 'the other process opens the store')
  await expect(openStore(directory)).rejects.toMatchObject({ code: 'HOME_LOCKED', details: { pid: holder.child.pid } })
  holder.child.kill('SIGKILL')
  await holder.ended
  const store = await openStore(directory)
  await store.close()
})

test('erasing does not let go of the folder: a second process is still refused', async () => {
  const folder = await testFolder()
  const store = await testStore(folder)
  await store.transact((tx) => tx.put(key('meta', 'secret'), bytesOf('plain words')))
  expect((await eraseKeys(store, [key('meta', 'secret')], [bytesOf('plain words')])).remains).toEqual([])
  const second = startWriter(join(folder, 'db'), 'hold')
  await second.ended
  expect(second.lines).not.toContain('open')
})

test('a second open in the same process is told so too', async () => {
  const folder = await testFolder()
  await testStore(folder)
  await expect(openStore(join(folder, 'db'))).rejects.toMatchObject({
    code: 'HOME_LOCKED',
    details: { pid: process.pid },
  })
})

test.each([
  ['a newer', FORMAT + 1, 'DATA_TOO_NEW'],
  ['an earlier', FORMAT - 1, 'DATA_TOO_OLD'],
])('a folder written by %s version is left as it is', async (_which, format, code) => {
  const folder = await testFolder()
  const store = await openStore(join(folder, 'db'))
  await store.transact((tx) => {
    tx.putJson(key('meta', 'format'), format)
    tx.putJson(key('meta', 'kept'), 'as it was')
  })
  await store.close()
  const before = await rowsIn(folder)
  for (let again = 0; again < 2; again++) {
    await expect(openStore(join(folder, 'db'))).rejects.toMatchObject({
      code,
      details: { format, understood: FORMAT },
    })
    expect(await readdir(folder)).toEqual(['db'])
    expect(await rowsIn(folder)).toEqual(before)
  }
})

test('a folder whose format is no number is damaged', async () => {
  const folder = await testFolder()
  const store = await openStore(join(folder, 'db'))
  await store.transact((tx) => tx.putJson(key('meta', 'format'), 'two'))
  await store.close()
  await expect(openStore(join(folder, 'db'))).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
  expect(await readdir(folder)).toEqual(['db'])
})

/** Every row of the database, without what opens it as a store. */
async function rowsIn(folder: string): Promise<readonly [string, string][]> {
  const db = new Level<string, string>(join(folder, 'db'))
  const rows = await db.iterator().all()
  await db.close()
  return rows
}

test.each([
  ['is missing', () => 'MANIFEST-999999\n', 'CURRENT'],
  ['is not one', () => 'nothing of the kind', 'CURRENT'],
  ['is spoiled', (text: string) => text.replaceAll(/[\s\S]/g, '?'), 'MANIFEST-000002'],
])('data files whose table of contents %s are named as damaged', async (_name, change, file) => {
  const folder = await testFolder()
  await (await openStore(join(folder, 'db'))).close()
  const path = join(folder, 'db', file)
  await writeFile(path, change(await readFile(path, 'latin1')))
  await expect(openStore(join(folder, 'db'))).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
})

test('a process killed in the middle of writing loses nothing it acknowledged, and no half of a transaction', async () => {
  const folder = await testFolder()
  const acknowledged = new Set<number>()
  for (let round = 0; round < 3; round++) {
    const writer = startWriter(join(folder, 'db'), 'write')
    await until(() => writer.lines.length > 60 + round * 77, 30_000, 'it has written some')
    writer.child.kill('SIGKILL')
    await writer.ended
    for (const line of writer.lines) if (line !== 'open') acknowledged.add(Number(line))

    const store = await openStore(join(folder, 'db'))
    const pairs = await pairsOf(store.view(), { prefix: 'm/' })
    await store.close()
    const numbers = (part: string) =>
      new Set(pairs.filter(([k]) => k.startsWith(`m/${part}/`)).map(([k]) => Number(k.slice(4))))
    const [a, b, c] = [numbers('a'), numbers('b'), numbers('c')]
    expect(acknowledged.size).toBeGreaterThan(50)
    expect(acknowledged.difference(a).size).toBe(0)
    expect(a.symmetricDifference(b).size + a.symmetricDifference(c).size).toBe(0)
  }
})

test('what is left of a process is opened and written on', async () => {
  const folder = await testFolder()
  const writer = startWriter(join(folder, 'db'), 'write')
  await until(() => writer.lines.length > 20, 30_000, 'it has written some')
  writer.child.kill('SIGKILL')
  await writer.ended
  const store = await testStore(folder)
  await store.transact((tx) => tx.put('m/after', bytesOf('x')))
  expect(store.view().has('m/after')).toBe(true)
})
