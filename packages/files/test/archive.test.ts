import { expect, test } from 'vitest'
import { utf8 } from '@csb/core'
import type { Store } from '@csb/store'
import { beginExport, commitFiles, importArchive, listTags, streamExport, type ExportSources } from '../src/index.ts'
import { oidOf } from '../src/objects.ts'
import { putWhole } from '../src/stored.ts'
import { createTag } from '../src/tags.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'

const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }

const exported = async (store: Store, home: string): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  const begun = await beginExport(store, home, SOURCES, NOW)
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
