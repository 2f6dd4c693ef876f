import { expect, test } from 'vitest'
import { LIMITS, utf8 } from '@csb/core'
import { key, prefix, type Store } from '@csb/store'
import {
  beginExport,
  collectGarbage,
  commitFiles,
  importArchive,
  listTags,
  removeBranch,
  streamExport,
  type ExportSources,
} from '../src/index.ts'
import { oidOf } from '../src/objects.ts'
import { putWhole } from '../src/stored.ts'
import { createTag } from '../src/tags.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'

const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }

const exported = async (store: Store, home: string): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  const begun = await beginExport(store, home, SOURCES, { now: NOW })
  for await (const part of streamExport(store, begun, SOURCES)) parts.push(part)
  return Buffer.concat(parts)
}

test.each(['sha256', 'sha1'] as const)('L0.4 tags and what they say go along, in a home of %s', async (hash) => {
  const { store, home } = await openHome(hash)
  const { commit } = await store.transact((tx) =>
    commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/one', changes: [{ path: 'a', bytes: text('a') }] }),
  )
  const tagOf = (target: string, kind: string, name: string): string => {
    const body = utf8(`object ${target}\ntype ${kind}\ntag ${name}\ntagger Ada <a@b> 1 +0000\n\nsigned\n`)
    return oidOf(hash, 'tag', body)
  }
  await store.transact((tx) => {
    for (const [target, kind, name] of [
      [commit, 'commit', 'v1'],
      [tagOf(commit, 'commit', 'v1'), 'tag', 'v2'],
    ] as const) {
      const body = utf8(`object ${target}\ntype ${kind}\ntag ${name}\ntagger Ada <a@b> 1 +0000\n\nsigned\n`)
      putWhole(tx, home.id, tagOf(target, kind, name), 'tag', body)
    }
    createTag(tx, home.id, 'v2', { oid: tagOf(tagOf(commit, 'commit', 'v1'), 'tag', 'v2'), now: NOW })
    createTag(tx, home.id, 'plain', { oid: commit, now: NOW })
  })
  const archive = await exported(store, home.id)
  const other = (await openHome()).store
  const source = async function* () {
    yield archive
  }
  const rules = { checkEvidence: () => undefined, write: other.transact, finish: async () => undefined }
  await importArchive(other, source(), rules)
  expect(await listTags(other.view(), home.id)).toEqual(await listTags(store.view(), home.id))
  expect(await exported(other, home.id)).toEqual(archive)
})

/** Asked for the second time when it is measured: between the two calls anything may happen to the home. */
const sourcesWith = (between: () => Promise<unknown>): ExportSources => {
  let calls = 0
  return {
    ...SOURCES,
    tombstones: async function* (view, home) {
      if (++calls === 2) await between()
      yield* SOURCES.tombstones(view, home)
    },
  }
}

const pinsIn = async (store: Store, home: string): Promise<string[]> => {
  const rows: string[] = []
  for await (const [row] of store.view().range({ prefix: prefix('pin', home) })) rows.push(row)
  return rows
}

test('L0.4 what goes while an export is measured is in it: it is held from the beginning', async () => {
  const { store, home } = await openHome()
  const { commit } = await store.transact((tx) =>
    commitFiles(tx, {
      ...WORDS,
      home: home.id,
      branch: 'runs/one',
      changes: [{ path: 'a', bytes: text('only here') }],
    }),
  )
  await store.transact((tx) => removeBranch(tx, home.id, 'runs/one', { expect: commit, now: NOW }))
  // its time is over between the first look and the measuring
  const end = NOW + LIMITS.recycleMs
  const collect = async () => {
    for await (const _ of collectGarbage(store, home.id, { now: end })) continue
  }
  const sources = sourcesWith(collect)
  const begun = await beginExport(store, home.id, sources, { now: end - 1 })
  const parts: Uint8Array[] = []
  for await (const part of streamExport(store, begun, sources)) parts.push(part)
  const archive = Buffer.concat(parts)
  expect(archive.byteLength).toBe(begun.bytes)
  expect(archive.includes('only here')).toBe(true)
  expect(await pinsIn(store, home.id)).toHaveLength(1)
})

test('L0.4 an export of which something is forgotten meanwhile does not begin, and holds nothing', async () => {
  const { store, home } = await openHome()
  const sources = sourcesWith(() => store.transact((tx) => tx.put(key('erased', home.id, '/gone.md'), utf8('x'))))
  await expect(beginExport(store, home.id, sources, { now: NOW })).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await pinsIn(store, home.id)).toEqual([])
  expect((await beginExport(store, home.id, SOURCES, { now: NOW })).bytes).toBeGreaterThan(0)
})
