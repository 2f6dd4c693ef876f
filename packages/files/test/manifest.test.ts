import { expect, test } from 'vitest'
import { commitFiles, manifestOf } from '../src/index.ts'
import { WORDS, openHome, text } from './open-home.ts'

test('a manifest says of bytes that are no text, before or afterwards, that they are none', async () => {
  const { store, home } = await openHome()
  const commit = (files: Readonly<Record<string, Uint8Array | null>>) =>
    store.transact((tx) => {
      const changes = Object.entries(files).map(([path, bytes]) => ({ path, bytes }))
      return commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/1', changes }).tree
    })
  const torn = new Uint8Array([0xc3, 0x28])
  const before = await commit({
    'a.bin': text('was text'),
    'b.bin': torn,
    'c.md': text('若兰 🌸'),
    'e.bin': new Uint8Array([0x80]),
  })
  const after = await commit({
    'a.bin': torn,
    'b.bin': text('is text'),
    'c.md': text('C'),
    'd.bin': torn,
    'e.bin': null,
  })
  const manifest = manifestOf(store.view(), home.id, before, after)
  expect(manifest.map(({ path, opaque }) => [path, opaque])).toEqual([
    ['a.bin', true],
    ['b.bin', true],
    ['c.md', undefined],
    ['d.bin', true],
    ['e.bin', true],
  ])
  // by the same name it is the same bytes
  expect(manifestOf(store.view(), home.id, after, after)).toEqual([])
})
