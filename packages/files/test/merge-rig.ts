/** Trees as plain maps, and the real merge over them. */
import { parseLabel } from '@csb/core'
import type { Store, Transaction } from '@csb/store'
import {
  applyMerge,
  commitFiles,
  listFiles,
  previewMerge,
  readBlob,
  readCommit,
  writeBlob,
  type Home,
} from '../src/index.ts'
import { advanceRef, getRef } from '../src/refs.ts'
import { writeCommit } from '../src/objects.ts'
import { placeFiles } from '../src/tree-place.ts'
import type { Mode } from '../src/tree.ts'
import { entryAt } from '../src/walk.ts'
import { NOW, WORDS, asText, text } from './open-home.ts'

/** Path to content; a content that begins with `#!` is executable, one that begins with `->` a link. */
export type Files = Readonly<Record<string, string>>

const modeOf = (content: string): Mode => {
  if (content.startsWith('#!')) return '100755'
  return content.startsWith('->') ? '120000' : '100644'
}

export type Rig = ReturnType<typeof createRig>

export function createRig(store: Store, home: Home) {
  let now = NOW
  const tick = () => (now += 1000)
  const commitOf = (tx: Transaction, parents: readonly string[], files: Files): string => {
    const empty = readCommit(tx, home.id, getRef(tx, home.id, 'snapshots/root')?.commit ?? '').tree
    const sides = Object.entries(files).map(
      ([path, content]) => [path, { mode: modeOf(content), oid: writeBlob(tx, home.id, text(content)) }] as const,
    )
    const person = { ...WORDS.author, at: tick() }
    return writeCommit(tx, home.id, {
      tree: placeFiles(tx, home.id, empty, new Map(sides)),
      parents,
      author: person,
      committer: person,
      message: 'made by hand',
      trailers: {},
    })
  }
  return {
    /** Put a branch on a commit of exactly these files. */
    set: (branch: string, files: Files, parents?: readonly string[]) =>
      store.transact((tx) => {
        const head = getRef(tx, home.id, branch)?.commit ?? null
        const to = commitOf(tx, parents ?? (head === null ? [] : [head]), files)
        advanceRef(tx, home.id, branch, { expect: head, to, now: tick() })
        return to
      }),
    write: (branch: string, path: string, content: string | null, label?: string, from = 'main') =>
      store.transact((tx) =>
        commitFiles(tx, {
          ...WORDS,
          now: tick(),
          home: home.id,
          branch,
          from,
          changes: [{ path, bytes: content === null ? null : text(content) }],
          ...(label === undefined ? {} : { labels: [{ path, label: parseLabel(label) }] }),
        }),
      ),
    preview: (from: string, into: string) => previewMerge(store.view(), { home: home.id, from, into }),
    merge: (from: string, into: string) =>
      store.transact((tx) => {
        const preview = previewMerge(tx, { home: home.id, from, into })
        return applyMerge(tx, { ...WORDS, now: tick(), home: home.id, from, into, preview })
      }),
    /** Path to content, labels left out. */
    files: (at: string): Record<string, string> => {
      const view = store.view()
      const found = listFiles(view, { home: home.id, at, recursive: true }).filter(
        ({ kind, path }) => kind === 'file' && !path.startsWith('.csb/'),
      )
      return Object.fromEntries(found.map(({ path, oid }) => [path, asText(readBlob(view, home.id, oid))]))
    },
    modes: (at: string): Record<string, string> => {
      const view = store.view()
      const { tree } = readCommit(view, home.id, getRef(view, home.id, at)?.commit ?? at)
      const found = listFiles(view, { home: home.id, at, recursive: true }).filter(({ kind }) => kind === 'file')
      return Object.fromEntries(found.map(({ path }) => [path, entryAt(view, home.id, tree, path)?.mode ?? '']))
    },
    labels: (at: string): Record<string, string> =>
      Object.fromEntries(
        listFiles(store.view(), { home: home.id, at, recursive: true }).map(({ path, label }) => [
          path,
          [label.level, label.integrity, label.tags.join(',')].filter((part) => part !== '').join(':'),
        ]),
      ),
  }
}

/** A home whose empty root is kept under a name, so that trees can be made from nothing. */
export async function openRig(store: Store, home: Home): Promise<Rig> {
  await store.transact((tx) => {
    const root = getRef(tx, home.id, 'main')?.commit ?? ''
    tx.putJson(`fr/${home.id}/snapshots/root`, { commit: root, protected: true, updatedAt: NOW })
  })
  return createRig(store, home)
}
