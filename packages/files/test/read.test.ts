import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MOST_RESTRICTIVE, OWNER_PRIVATE, PUBLIC, formatLabel, joinLabels, type Label } from '@csb/core'
import { key } from '@csb/store'
import {
  commitFiles,
  getRef,
  listFiles,
  moveRef,
  readBlob,
  readCommit,
  readFile,
  readLog,
  readTree,
  setLabel,
  writeBlob,
  writeCommit,
  writeTree,
} from '../src/index.ts'
import { NOW, OWNER, WORDS, asText, openHome, snapshot, text } from './open-home.ts'

const sealed: Label = { level: 'sealed', integrity: 'owner', tags: [] }
const health: Label = { level: 'trusted', integrity: 'agent', tags: ['health'] }

async function openBranch(paths: readonly string[]) {
  const { store, home } = await openHome()
  const input = { ...WORDS, home: home.id, branch: 'runs/one' }
  const done = await store.transact((tx) =>
    commitFiles(tx, { ...input, changes: paths.map((path) => ({ path, bytes: text(path) })) }),
  )
  const read = (path: string, at = 'runs/one') => readFile(store.view(), { home: home.id, at, path })
  return { store, home, input, done, read }
}

describe('reading', () => {
  test('what was read is noted in the view with its label, and nothing else is', async () => {
    const { store, home, done } = await openBranch(['a/b', 'c'])
    const view = store.view()
    const { oid, label } = readFile(view, { home: home.id, at: done.commit, path: 'a/b' })
    listFiles(view, { home: home.id, at: 'runs/one', recursive: true })
    expect(view.reads).toEqual([{ home: home.id, path: 'a/b', oid, label }])
    expect(label).toEqual(OWNER_PRIVATE)
  })

  test('a folder lists its own entries, or with recursive all below', async () => {
    const { store, home } = await openBranch(['a/b/c', 'a/d', 'e'])
    const list = (input: { path?: string; recursive?: boolean }) =>
      listFiles(store.view(), { home: home.id, at: 'runs/one', ...input }).map(({ path, kind }) => `${kind} ${path}`)
    expect(list({})).toEqual(['folder a', 'file e'])
    expect(list({ path: '' })).toEqual(['folder a', 'file e'])
    expect(list({ path: 'a' })).toEqual(['folder a/b', 'file a/d'])
    expect(list({ path: 'a', recursive: true })).toEqual(['folder a/b', 'file a/b/c', 'file a/d'])
  })

  test('what is not there is NOT_FOUND and notes nothing', async () => {
    const { store, home, done } = await openBranch(['a/b'])
    const view = store.view()
    const missing = [
      ['runs/one', 'x'],
      ['runs/one', 'a'],
      ['runs/one', 'a/b/c'],
      ['runs/none', 'a/b'],
      ['f'.repeat(64), 'a/b'],
      [done.tree, 'a/b'],
      ['HEAD', 'a/b'],
      ['../memory', 'a/b'],
    ] as const
    for (const [at, path] of missing) {
      expect(() => readFile(view, { home: home.id, at, path })).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    }
    for (const path of ['a/b', 'x']) {
      expect(() => listFiles(view, { home: home.id, at: 'runs/one', path })).toThrow(
        expect.objectContaining({ code: 'NOT_FOUND' }),
      )
    }
    expect(() => readFile(view, { home: home.id, at: 'runs/one', path: '../a' })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
    expect(view.reads).toEqual([])
  })

  test('an object changed in the store by one bit is found out', async () => {
    const { store, home, done, read } = await openBranch(['a'])
    for (const oid of [done.changed[0]?.after ?? '', done.tree, done.commit]) {
      const at = key('object', home.id, oid)
      const sound = store.view().get(at) ?? new Uint8Array()
      for (const change of [
        (bytes: Uint8Array) => bytes.with(bytes.byteLength - 5, (bytes.at(-5) ?? 0) ^ 1),
        (bytes: Uint8Array) => bytes.subarray(0, 7),
        () => text('not deflated'),
        () =>
          store.view().get(key('object', home.id, readCommit(store.view(), home.id, done.parent).tree)) ??
          new Uint8Array(),
      ]) {
        await store.transact((tx) => tx.put(at, change(Uint8Array.from(sound))))
        expect(() => read('a')).toThrow(expect.objectContaining({ code: 'OBJECT_DAMAGED' }))
      }
      await store.transact((tx) => tx.put(at, sound))
      expect(asText(read('a').bytes)).toBe('a')
    }
  })

  test('the log follows both parents of a merge, newest first, each commit once', async () => {
    const { store, home, done, input } = await openBranch(['a'])
    const side = await store.transact((tx) =>
      commitFiles(tx, {
        ...input,
        branch: 'runs/two',
        from: done.commit,
        changes: [{ path: 'b', bytes: text('b') }],
        now: NOW + 1000,
      }),
    )
    const own = await store.transact((tx) =>
      commitFiles(tx, { ...input, changes: [{ path: 'c', bytes: text('c') }], now: NOW + 2000 }),
    )
    const merge = await store.transact((tx) => {
      const person = { ...WORDS.author, at: NOW + 3000 }
      const parents = [own.commit, side.commit]
      const oid = writeCommit(tx, home.id, {
        tree: own.tree,
        parents,
        author: person,
        committer: person,
        message: 'merge',
        trailers: {},
      })
      moveRef(tx, home.id, 'runs/one', { expect: own.commit, to: oid, now: NOW })
      return oid
    })
    const root = getRef(store.view(), home.id, 'main')?.commit
    const log = (limit: number) =>
      readLog(store.view(), { home: home.id, at: 'runs/one', limit }).map(({ commit }) => commit)
    expect(log(50)).toEqual([merge, own.commit, side.commit, done.commit, root])
    expect(log(2)).toEqual([merge, own.commit])
  })

  test('objects written one by one read back', async () => {
    const { store, home } = await openHome('sha1')
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const oid = await store.transact((tx) => writeBlob(tx, home.id, bytes))
        expect(oid).toHaveLength(40)
        expect(new Uint8Array(readBlob(store.view(), home.id, oid))).toEqual(bytes)
        expect(() => readTree(store.view(), home.id, oid)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
        const entries = [{ mode: '100644', name: 'x', oid }] as const
        const tree = await store.transact((tx) => writeTree(tx, home.id, entries))
        expect(readTree(store.view(), home.id, tree)).toEqual(entries)
      }),
      { numRuns: 30 },
    )
  })

  test('a commit that names ids of another kind of home is refused', async () => {
    const { store, home } = await openHome('sha1')
    const before = await snapshot(store)
    const person = { name: 'Ada', did: OWNER.did, at: NOW }
    const commit = { tree: 'a'.repeat(64), parents: [], author: person, committer: person, message: 'x', trailers: {} }
    await expect(store.transact((tx) => writeCommit(tx, home.id, commit))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect(await snapshot(store)).toEqual(before)
  })
})

describe('labels of files', () => {
  test('L3.2 a file bears the join of its own label and those of the folders above it', async () => {
    const { store, input, read } = await openBranch(['a/b/c', 'a/d', 'ab', 'p'])
    const set = (path: string, label: Label | null) => store.transact((tx) => setLabel(tx, { ...input, path, label }))
    await set('a', health)
    await set('a/b/c', sealed)
    await set('p', PUBLIC)
    expect(read('a/b/c').label).toEqual(joinLabels([health, sealed]))
    expect(read('a/d').label).toEqual(health)
    expect(read('ab').label).toEqual(OWNER_PRIVATE)
    expect(read('p').label).toEqual(PUBLIC)
    const listed = listFiles(store.view(), { home: input.home, at: 'runs/one', recursive: true })
    for (const { path, label, kind } of listed) if (kind === 'file') expect(label).toEqual(read(path).label)
    await set('a/b/c', null)
    expect(read('a/b/c').label).toEqual(health)
  })

  test('labels are a file with sorted keys that goes with the last label', async () => {
    const { store, input, done, read } = await openBranch(['a', 'z'])
    const set = (path: string, label: Label | null) => store.transact((tx) => setLabel(tx, { ...input, path, label }))
    await set('z', sealed)
    await set('a', health)
    expect(asText(read('.csb/labels.json').bytes)).toBe('{\n  "a": "trusted:agent:health",\n  "z": "sealed:owner"\n}\n')
    await set('z', null)
    expect((await set('a', null)).tree).toBe(done.tree)
  })

  test('a label set with a write is in the same commit, and an old commit keeps its old label', async () => {
    const { store, input, read, done } = await openBranch(['a'])
    const label = await store.transact((tx) =>
      commitFiles(tx, {
        ...input,
        changes: [{ path: 'a', bytes: text('secret') }],
        labels: [{ path: 'a', label: sealed }],
      }),
    )
    expect(label.changed.map(({ path }) => path)).toEqual(['.csb/labels.json', 'a'])
    expect(read('a').label).toEqual(sealed)
    expect(read('a', done.commit).label).toEqual(OWNER_PRIVATE)
  })

  test('a label stays with the path when the file is deleted and written again', async () => {
    const { store, input, read } = await openBranch(['a', 'b'])
    await store.transact((tx) => setLabel(tx, { ...input, path: 'a', label: sealed }))
    await store.transact((tx) => commitFiles(tx, { ...input, changes: [{ path: 'a', bytes: null }] }))
    await store.transact((tx) => commitFiles(tx, { ...input, changes: [{ path: 'a', bytes: text('again') }] }))
    expect(read('a').label).toEqual(sealed)
  })

  test.each(['', 'not json', '[]', '{"a":"public:owner","a":"public:owner"}', '{"a":', 'null'])(
    'a file of labels that can not be read makes everything most restrictive, and is not written over: %j',
    async (broken) => {
      const { store, home, input, read } = await openBranch(['a'])
      await store.transact((tx) => {
        const blob = writeBlob(tx, home.id, text(broken))
        const folder = writeTree(tx, home.id, [{ mode: '100644', name: 'labels.json', oid: blob }])
        const head = getRef(tx, home.id, 'runs/one')?.commit ?? ''
        const commit = readCommit(tx, home.id, head)
        const entries = [...readTree(tx, home.id, commit.tree), { mode: '40000', name: '.csb', oid: folder } as const]
        const oid = writeCommit(tx, home.id, { ...commit, tree: writeTree(tx, home.id, entries), parents: [head] })
        moveRef(tx, home.id, 'runs/one', { expect: head, to: oid, now: NOW })
      })
      expect(read('a').label).toEqual(MOST_RESTRICTIVE)
      const set = store.transact((tx) => setLabel(tx, { ...input, path: 'a', label: PUBLIC }))
      await expect(set).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
    },
  )

  test('one label that can not be read is most restrictive for its path only', async () => {
    const { store, home, input, read } = await openBranch(['a', 'b'])
    const at = await store.transact((tx) => setLabel(tx, { ...input, path: 'b', label: PUBLIC }))
    await store.transact((tx) => {
      const blob = writeBlob(tx, home.id, text('{"a":"secret","b":"public:owner"}'))
      const folder = writeTree(tx, home.id, [{ mode: '100644', name: 'labels.json', oid: blob }])
      const entries = readTree(tx, home.id, at.tree).map((entry) =>
        entry.name === '.csb' ? { ...entry, oid: folder } : entry,
      )
      const oid = writeCommit(tx, home.id, {
        ...readCommit(tx, home.id, at.commit),
        tree: writeTree(tx, home.id, entries),
        parents: [at.commit],
      })
      moveRef(tx, home.id, 'runs/one', { expect: at.commit, to: oid, now: NOW })
    })
    expect(read('a').label).toEqual(MOST_RESTRICTIVE)
    expect(read('b').label).toEqual(PUBLIC)
  })

  test('L3.2 no set of labels makes a file less restricted than any label on its way', async () => {
    const label = fc.record({
      level: fc.constantFrom('public', 'trusted', 'private', 'sealed'),
      integrity: fc.constantFrom('external', 'agent', 'owner'),
      tags: fc.subarray(['health', 'work']),
    }) as fc.Arbitrary<Label>
    const path = fc.constantFrom('a', 'a/b', 'a/b/c', 'd')
    const { store, input } = await openBranch(['a/b/c', 'd'])
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.record({ path, label }), { selector: (item) => item.path, maxLength: 4 }),
        async (labels) => {
          const branch = `runs/${labels
            .map((item) => `${item.path}-${formatLabel(item.label)}`)
            .join('')
            .replace(/[^a-z]/g, '')}x`
          const done = await store.transact((tx) =>
            commitFiles(tx, { ...input, branch, from: 'runs/one', changes: [], labels }),
          )
          for (const file of ['a/b/c', 'd']) {
            const above = labels
              .filter((item) => file === item.path || file.startsWith(`${item.path}/`))
              .map((item) => item.label)
            const read = readFile(store.view(), { home: input.home, at: done.commit, path: file })
            expect(read.label).toEqual(above.length === 0 ? OWNER_PRIVATE : joinLabels(above))
          }
        },
      ),
      { numRuns: 40 },
    )
  })
})
