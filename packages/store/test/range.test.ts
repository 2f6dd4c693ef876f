import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openStore, type RangeOptions, type View } from '../src/index.ts'

const folder = await mkdtemp(join(tmpdir(), 'csb-range-'))
const path = join(folder, 'db')
const first = await openStore(path)
await first.transact((tx) => {
  for (const key of ['rc/ab', 'rc/abc', 'rc/abd', 'rc/b', 'rd/a']) tx.putJson(key, key)
})
await first.close()

const store = await openStore(path)
afterAll(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

async function keysOf(view: View, options: RangeOptions): Promise<string[]> {
  const keys: string[] = []
  for await (const [key] of view.range(options)) keys.push(key)
  return keys
}

describe('a range over what is on disk', () => {
  test('holds the key that is the prefix itself, in both directions', async () => {
    expect(await keysOf(store.view(), { prefix: 'rc/ab' })).toEqual(['rc/ab', 'rc/abc', 'rc/abd'])
    expect(await keysOf(store.view(), { prefix: 'rc/ab', reverse: true })).toEqual(['rc/abd', 'rc/abc', 'rc/ab'])
  })

  test('starts behind `after`, in both directions', async () => {
    expect(await keysOf(store.view(), { prefix: 'rc/', after: 'rc/ab' })).toEqual(['rc/abc', 'rc/abd', 'rc/b'])
    expect(await keysOf(store.view(), { prefix: 'rc/', after: 'rc/abd', reverse: true })).toEqual(['rc/abc', 'rc/ab'])
  })

  test('shows what is staged above it and not what is staged as gone', async () => {
    await store.transact(async (tx) => {
      tx.del('rc/abc')
      tx.putJson('rc/abb', 1)
      expect(await keysOf(tx, { prefix: 'rc/ab', limit: 3 })).toEqual(['rc/ab', 'rc/abb', 'rc/abd'])
    })
  })
})
