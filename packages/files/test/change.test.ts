import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  commitFiles,
  getRef,
  listFiles,
  moveRef,
  readFile,
  readLog,
  readTree,
  writeBlob,
  writeCommit,
  writeTree,
  type CommitFiles,
} from '../src/index.ts'
import { NOW, WORDS, asText, objectIds, openHome, snapshot, text } from './open-home.ts'

const write = (path: string, content = path) => ({ path, bytes: text(content) })
const drop = (path: string) => ({ path, bytes: null })

describe('commits of files', () => {
  test('L0.1 what a run writes into its branch leaves main as it was', async () => {
    const { store, home } = await openHome()
    const main = getRef(store.view(), home.id, 'main')
    const commit = (changes: CommitFiles['changes']) =>
      store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/one', changes }))
    const first = await commit([write('a/b.md'), write('c')])
    expect(first.parent).toBe(main?.commit)
    expect(first.changed.map(({ path, before }) => [path, before])).toEqual([
      ['a/b.md', null],
      ['c', null],
    ])
    const second = await commit([drop('c'), write('a/b.md', 'new')])
    expect(second.parent).toBe(first.commit)
    expect(second.changed).toMatchObject([
      { path: 'a/b.md', before: first.changed[0]?.after },
      { path: 'c', after: null },
    ])
    expect(getRef(store.view(), home.id, 'main')).toEqual(main)
    expect(listFiles(store.view(), { home: home.id, at: 'main', recursive: true })).toEqual([])
    expect(asText(readFile(store.view(), { home: home.id, at: 'runs/one', path: 'a/b.md' }).bytes)).toBe('new')
    expect(asText(readFile(store.view(), { home: home.id, at: first.commit, path: 'c' }).bytes)).toBe('c')
  })

  test('L0.2 a commit to a protected branch is refused and nothing is written', async () => {
    const { store, home } = await openHome()
    const before = await snapshot(store)
    const main = getRef(store.view(), home.id, 'main')?.commit ?? ''
    for (const extra of [{}, { expect: main }, { expect: null }, { from: 'memory' }]) {
      const commit = store.transact((tx) =>
        commitFiles(tx, { ...WORDS, ...extra, home: home.id, branch: 'main', changes: [write('a')] }),
      )
      await expect(commit).rejects.toMatchObject({ code: 'PROTECTED' })
    }
    expect(await snapshot(store)).toEqual(before)
  })

  test('where nothing changes there is no commit', async () => {
    const { store, home } = await openHome()
    const input = { ...WORDS, home: home.id, branch: 'runs/one', changes: [write('a')] }
    const first = await store.transact((tx) => commitFiles(tx, input))
    const before = await snapshot(store)
    const again = await store.transact((tx) =>
      commitFiles(tx, { ...input, changes: [write('a'), drop('missing/file')] }),
    )
    expect(again).toEqual({ commit: first.commit, parent: first.commit, tree: first.tree, changed: [] })
    expect(await snapshot(store)).toEqual(before)
  })

  test('a new branch starts from main, from another branch, or from a commit', async () => {
    const { store, home } = await openHome()
    const on = (branch: string, extra: object, changes = [write(branch)]) =>
      store.transact((tx) => commitFiles(tx, { ...WORDS, ...extra, home: home.id, branch, changes }))
    const one = await on('runs/one', {})
    await on('runs/one', {}, [write('later')])
    const files = (at: string) =>
      listFiles(store.view(), { home: home.id, at, recursive: true }).map(({ path }) => path)
    await on('runs/two', { from: 'runs/one', expect: null })
    await on('runs/three', { from: one.commit })
    await on('runs/four', { from: 'runs/one' }, [])
    expect(files('runs/two')).toEqual(['later', 'runs', 'runs/one', 'runs/two'])
    expect(files('runs/three')).toEqual(['runs', 'runs/one', 'runs/three'])
    expect(getRef(store.view(), home.id, 'runs/four')?.commit).toBe(getRef(store.view(), home.id, 'runs/one')?.commit)
  })

  const base = { changes: [write('x')] }
  test.each<[string, Partial<CommitFiles>, string]>([
    ['a head that has moved', { ...base, expect: '0'.repeat(64) }, 'CONFLICT'],
    ['a branch that should be new and is not', { ...base, expect: null }, 'CONFLICT'],
    ['a start that does not exist', { ...base, branch: 'runs/new', from: 'runs/none' }, 'NOT_FOUND'],
    ['a bad branch name', { ...base, branch: 'runs/../x' }, 'INVALID_INPUT'],
    ['a bad path beside a good one', { changes: [write('good'), write('../bad')] }, 'INVALID_INPUT'],
    ['a path changed twice', { changes: [write('x', '1'), write('x', '2')] }, 'INVALID_INPUT'],
    ['a file below a file', { changes: [write('good'), write('file/below')] }, 'INVALID_INPUT'],
    ['a file below a file of the same commit', { changes: [write('n'), write('n/below')] }, 'INVALID_INPUT'],
    ['a file where a folder is', { changes: [write('good'), write('folder')] }, 'INVALID_INPUT'],
    ['a folder deleted as a file', { changes: [write('good'), drop('folder')] }, 'INVALID_INPUT'],
    ['labels written as a file', { changes: [write('.csb/labels.json', '{}')] }, 'INVALID_INPUT'],
    ['labels written in other case', { changes: [write('.CSB/labels.json', '{}')] }, 'INVALID_INPUT'],
    ['a forged trailer', { ...base, message: 'x\n\nCsb-Run: y' }, 'INVALID_INPUT'],
    ['an author that breaks the line', { ...base, author: { name: 'a\nb', did: 'did:x' } }, 'INVALID_INPUT'],
    [
      'a file that is too large',
      { changes: [{ path: 'x', bytes: new Uint8Array(64 * 1024 * 1024 + 1) }] },
      'TOO_LARGE',
    ],
    ['a home that is not here', { ...base, home: 'home_x' }, 'NOT_FOUND'],
  ])('%s is refused and nothing is written', async (_, change, code) => {
    const { store, home } = await openHome()
    const input = { ...WORDS, home: home.id, branch: 'runs/one', changes: [write('file'), write('folder/in')] }
    await store.transact((tx) => commitFiles(tx, input))
    const before = await snapshot(store)
    await expect(store.transact((tx) => commitFiles(tx, { ...input, ...change }))).rejects.toMatchObject({ code })
    expect(await snapshot(store)).toEqual(before)
  })

  test('a commit of one file among thousands writes only the trees on its path', async () => {
    const { store, home } = await openHome()
    const paths = Array.from({ length: 4000 }, (_, i) => `notes/${i % 20}/${i % 7}/${i}.md`)
    const input = { ...WORDS, home: home.id, branch: 'memory' }
    await store.transact((tx) => commitFiles(tx, { ...input, changes: paths.map((path) => write(path)) }))
    const before = await objectIds(store, home.id)
    const done = await store.transact((tx) => commitFiles(tx, { ...input, changes: [write('notes/3/2/new.md')] }))
    const added = (await objectIds(store, home.id)).filter((oid) => !before.includes(oid))
    // blob, folder 2, folder 3, notes, root, commit
    expect(added).toHaveLength(6)
    expect(added).toEqual(expect.arrayContaining([done.commit, done.tree, done.changed[0]?.after]))
    expect(readTree(store.view(), home.id, done.tree)).toHaveLength(1)
  })

  test('a branch holds what a plain map of paths would hold', async () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.join('/'))
    const change = fc.record({ path, content: fc.option(fc.constantFrom('1', '2', '3')) })
    const commits = fc.array(fc.uniqueArray(change, { selector: (item) => item.path, maxLength: 5 }), { maxLength: 8 })
    const { store, home } = await openHome()
    let round = 0
    await fc.assert(
      fc.asyncProperty(commits, async (steps) => {
        const branch = `runs/${round++}`
        const model = new Map<string, string>()
        await store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch, changes: [] }))
        for (const step of steps) {
          const next = new Map(model)
          for (const { path: at, content } of step) if (content === null) next.delete(at)
          for (const { path: at, content } of step) if (content !== null) next.set(at, content)
          const isFolder = (files: Map<string, string>, at: string) =>
            [...files.keys()].some((file) => file.startsWith(`${at}/`))
          const clash =
            [...next.keys()].some((at) => isFolder(next, at)) ||
            step.some(({ path: at, content }) => content === null && isFolder(model, at))
          const changes = step.map(({ path: at, content }) => (content === null ? drop(at) : write(at, content)))
          const commit = store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch, changes }))
          if (clash) {
            await expect(commit).rejects.toMatchObject({ code: 'INVALID_INPUT' })
            continue
          }
          const { changed } = await commit
          const differing = step
            .filter(({ path: at, content }) => (model.get(at) ?? null) !== content)
            .map((item) => item.path)
          expect(changed.map((item) => item.path)).toEqual(differing.sort())
          model.clear()
          for (const [at, content] of next) model.set(at, content)
        }
        const view = store.view()
        const files = listFiles(view, { home: home.id, at: branch, recursive: true }).filter(
          ({ kind }) => kind === 'file',
        )
        const held = files.map(
          (file) => [file.path, asText(readFile(view, { home: home.id, at: branch, path: file.path }).bytes)] as const,
        )
        expect(new Map(held)).toEqual(model)
      }),
      { numRuns: 60 },
    )
  })

  test('an executable file stays executable when it is written, and a link stays where it is', async () => {
    const { store, home } = await openHome()
    await store.transact((tx) => {
      const oid = writeBlob(tx, home.id, text('#!/bin/sh'))
      const entries = [
        { mode: '100755', name: 'run', oid },
        { mode: '120000', name: 'link', oid },
      ] as const
      const person = { ...WORDS.author, at: NOW }
      const tree = writeTree(tx, home.id, entries)
      const to = writeCommit(tx, home.id, {
        tree,
        parents: [],
        author: person,
        committer: person,
        message: 'from a clone',
        trailers: {},
      })
      moveRef(tx, home.id, 'runs/one', { expect: null, to, now: NOW })
    })
    const done = await store.transact((tx) =>
      commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/one', changes: [write('run', 'new'), write('other')] }),
    )
    expect(readTree(store.view(), home.id, done.tree).map(({ mode, name }) => `${mode} ${name}`)).toEqual([
      '120000 link',
      '100644 other',
      '100755 run',
    ])
  })

  test('equal files give equal trees, whatever the way there', async () => {
    const { store, home } = await openHome()
    const commit = (branch: string, changes: CommitFiles['changes'], now = NOW) =>
      store.transact((tx) => commitFiles(tx, { ...WORDS, home: home.id, branch, changes, now }))
    const straight = await commit('runs/one', [write('a/b'), write('c')])
    await commit('runs/two', [write('c', 'other'), write('x/y/z')])
    await commit('runs/two', [write('a/b'), drop('x/y/z')])
    const crooked = await commit('runs/two', [write('c')], NOW + 5000)
    expect(crooked.tree).toBe(straight.tree)
    expect(readLog(store.view(), { home: home.id, at: 'runs/two', limit: 2 })).toMatchObject([
      { commit: crooked.commit, at: NOW + 5000, parents: [crooked.parent] },
      { commit: crooked.parent },
    ])
  })
})
