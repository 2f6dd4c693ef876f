import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyPair, parseLabel, utf8 } from '@csb/core'
import {
  commitFiles,
  getRef,
  listFiles,
  readCommit,
  readFile,
  staleProjections,
  writeBlob,
  writeCommit,
  type CommitFiles,
} from '@csb/files'
import { putNotes } from '@csb/memory'
import { projectCommit } from '../src/index.ts'
import { NOW, openHome } from './open-home.ts'
import {
  BRANCH,
  FULL,
  LOW,
  OWNER,
  everything,
  filesOf,
  isHidden,
  nextHome,
  project,
  replay,
  steps,
  wordsAt,
} from './replay.ts'

/** Another node of the owner. */
const OTHER = createKeyPair().did

describe('what a reader sees of a commit', () => {
  test('L4.2 no name, id, byte or message of a hidden file is in any object of the projection', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(store, home, taken)
        const head = commits.at(-1) ?? ''
        const seen = (await project(store, home, head)) ?? ''
        const { text, oids } = everything(store, home, seen)
        // a key may spell anything
        expect(text.replaceAll(OWNER.did, '')).not.toContain('zz')
        expect(text).not.toContain('f'.repeat(64))
        for (const commit of commits) {
          const hidden = listFiles(store.view(), { home, at: commit, recursive: true }).filter(({ path }) =>
            isHidden(path),
          )
          for (const { oid } of hidden) expect(oids.has(oid)).toBe(false)
        }
        const open = (at: string) =>
          filesOf(store, home, at).filter((path) => !isHidden(path) && path !== '.csb/labels.json')
        expect(open(seen)).toEqual(open(head))
        for (const path of open(seen)) {
          const [a, b] = [head, seen].map((at) => readFile(store.view(), { home, at, path }))
          expect(a).toEqual(b)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('L4.2 the words of a commit that changes nothing are told to nobody they may not be about', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const [first = ''] = await replay(store, home, [{ changes: [['a.md', 1]], message: 'tidy up' }])
    const { tree, ...commit } = readCommit(store.view(), home, first)
    const written = await store.transact((tx) =>
      writeCommit(tx, home, { ...commit, tree, parents: [first], message: 'Bob earns 90000 a year', trailers: {} }),
    )
    const seen = (await project(store, home, written)) ?? ''
    expect(readCommit(store.view(), home, seen).message).not.toContain('Bob')
  })

  test('L4.2 the ids are equal on every node, whatever was stored and projected in which order', async () => {
    const [one, two] = [await openHome(), await openHome()]
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(one.store, home, taken)
        expect(await replay(two.store, home, taken)).toEqual(commits)
        await two.store.transact((tx) => writeBlob(tx, home, utf8('something else')))
        const seen: (string | null)[] = []
        for (const commit of commits) seen.push(await project(one.store, home, commit))
        const other: (string | null)[] = []
        for (const commit of commits.toReversed()) {
          other.unshift(await project(two.store, home, commit))
          await two.store.transact((tx) => staleProjections(tx, home))
        }
        expect(other).toEqual(seen)
      }),
      { numRuns: 25 },
    )
  })

  test('L4.2 nothing that is seen changes when hidden files have other bytes', async () => {
    const { store } = await openHome()
    const { store: other } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(store, home, taken, 'one')
        const changed = await replay(other, home, taken, 'another and longer one')
        for (const [at, commit] of commits.entries())
          expect(await project(other, home, changed[at] ?? '')).toBe(await project(store, home, commit))
      }),
      { numRuns: 25 },
    )
  })

  test('L4.2 it is the identity for who sees everything, and where nothing is hidden', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const head = (await replay(store, home, taken)).at(-1) ?? ''
        expect(await project(store, home, head, FULL)).toBe(head)
        expect(await project(store, home, head, { level: 'sealed', tags: ['health'] })).toBe(head)
      }),
      { numRuns: 10 },
    )
    const open = await openHome()
    const taken: CommitFiles = {
      ...wordsAt(open.home.id, 1, 'nothing hidden\n\nat length'),
      branch: BRANCH,
      changes: [{ path: 'a.md', bytes: utf8('a') }],
    }
    const { commit } = await open.store.transact((tx) => commitFiles(tx, taken))
    expect(await project(open.store, open.home.id, commit)).toBe(commit)
  })

  test('what is broken off leaves off between two steps, and goes on where it is asked for again', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const [head = ''] = await replay(store, home, [{ changes: [['a.md', 1]], message: 'one' }])
    const stopped = AbortSignal.abort(new Error('the node stops'))
    await expect(projectCommit(store, { home, commit: head, clearance: LOW }, stopped)).rejects.toThrow('stops')
    expect(await project(store, home, head)).toEqual(expect.any(String))
  })

  test('commits that only change hidden files are left out, and others keep author, time and first line', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const commits = await replay(store, home, [
      {
        changes: [
          ['a.md', 1],
          ['zzplain', 1],
        ],
        message: 'both',
      },
      { changes: [['zzplain', 2]], message: 'only hidden' },
      { changes: [['a.md', 2]], message: 'write a.md\n\nat length' },
      { changes: [['docs/b.md', 2]], message: 'beside docs/zzfirst.md' },
    ])
    const seen = await Promise.all(commits.map((commit) => project(store, home, commit)))
    expect(seen[1]).toBe(seen[0])
    const read = (at: number) => readCommit(store.view(), home, seen[at] ?? '')
    expect(read(0).message).toBe('Change files.')
    expect(read(2)).toMatchObject({
      message: 'write a.md',
      parents: [seen[1]],
      author: { name: 'Ada', did: OWNER.did, at: NOW + 2000 },
      trailers: { 'Csb-Run': `run_${NOW}_abc` },
    })
    expect(read(3).message).toBe('Change files.')
  })

  test('labels of what is hidden are not in the projected labels, and those of what is seen are the same', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const [commit = ''] = await replay(store, home, [
      {
        changes: [
          ['docs/b.md', 1],
          ['zzplain', 1],
        ],
        message: 'x',
      },
    ])
    const seen = (await project(store, home, commit)) ?? ''
    const { bytes } = readFile(store.view(), { home, at: seen, path: '.csb/labels.json' })
    expect(JSON.parse(Buffer.from(bytes).toString())).toEqual({ docs: 'private:agent' })
    expect(await project(store, home, commit, { level: 'public', tags: [] })).not.toBeNull()
  })
})

describe('notes', () => {
  test('L4.2 a note is hidden by its own label, in every version that bore it', async () => {
    const node = await openHome()
    const { store, home } = node
    const open = await node.create('everybody may know', parseLabel('public:owner'))
    const secret = await node.create('zz nobody may know', parseLabel('sealed:owner'))
    const head = () => getRef(store.view(), home.id, 'memory')?.commit ?? ''
    const read = async (commit = head()) => {
      const seen = (await project(store, home.id, commit)) ?? ''
      return everything(store, home.id, seen).text
    }
    expect(await read()).toContain(open.entry.id)
    expect(await read()).not.toContain(secret.entry.id)
    // raised later: what was seen before is not seen any more, in no commit of before either
    const before = head()
    await node.relabel(open.entry.id, 'sealed:owner')
    expect(await read()).not.toContain(open.entry.id)
    expect(await read(before)).not.toContain(open.entry.id)
    expect(await read(before)).not.toContain('everybody may know')
    // lowered again: the newest version is seen, the sealed one between is not
    await node.relabel(open.entry.id, 'private:owner')
    expect(await read()).toContain(open.entry.id)
    expect(await read()).not.toContain('sealed:owner')
  })

  test('L4.2 raised by a version from elsewhere, under words that are later here, it is hidden in history too', async () => {
    const node = await openHome()
    const { store, home } = node
    const first = await node.create('everybody may know', parseLabel('public:owner'))
    const raising = { actor: OTHER, at: first.hlc, label: parseLabel('sealed:owner') }
    await node.softDelete(first.entry.id)
    const head = () => getRef(store.view(), home.id, 'memory')?.commit ?? ''
    const before = head()
    const read = async (commit: string) =>
      everything(store, home.id, (await project(store, home.id, commit)) ?? '').text
    expect(await read(before)).toContain('everybody may know')
    const raised = {
      ...first,
      actor: OTHER,
      label: raising.label,
      clock: { written: raising.label, made: [], changes: { [OTHER]: raising } },
    }
    await store.transact((tx) => putNotes(tx, { ...node.words(), notes: [raised] }))
    expect(node.get(first.entry.id)).toMatchObject({ label: raising.label, deletedAt: expect.any(Number) as number })
    for (const commit of [before, head()]) expect(await read(commit)).not.toContain('everybody may know')
  })

  test('L3.4 what was forgotten is a fixed text for everybody, and its name is told only to who could see it', async () => {
    const node = await openHome()
    const { store, home } = node
    const before = await node.create('before')
    const gone = await node.create('zz to be forgotten')
    const sealed = await node.create('zz sealed', parseLabel('sealed:owner'))
    const old = getRef(store.view(), home.id, 'memory')?.commit ?? ''
    await node.forget(gone.entry.id)
    await node.forget(sealed.entry.id)
    const low = (await project(store, home.id, old)) ?? ''
    const { text } = everything(store, home.id, low)
    expect(text).toContain('This was forgotten.')
    expect(text).toContain(gone.entry.id)
    expect(text).toContain(before.entry.id)
    expect(text).not.toContain(sealed.entry.id)
    const full = (await project(store, home.id, old, FULL)) ?? ''
    expect(full).not.toBe(old)
    expect(everything(store, home.id, full).text).toContain(sealed.entry.id)
  })
})
