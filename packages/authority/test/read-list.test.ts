import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OWNER_PRIVATE, canonicalize, utf8, type Label } from '@csb/core'
import { commitFiles, createHome, getRef, listFiles } from '@csb/files'
import { key, type ReadEntry, type Store } from '@csb/store'
import {
  appendRecord,
  createRunReads,
  explainCommit,
  payloadsThatMention,
  readRecords,
  verifyRecord,
} from '@csb/authority'
import { groupsOf, readsIn, type ReadGroup } from '../src/read-list.ts'
import { filesAt, placesOf } from '../src/read-set.ts'
import { HOME, NOW, agent, owner, testStore, thrownBy } from './cast.ts'

const health: Label = { level: 'private', integrity: 'agent', tags: ['health'] }
const COMMIT = 'c'.repeat(64)
const WORDS = { author: { name: 'Ada', did: owner.did }, message: 'more', trailers: {}, now: NOW }

/** A home whose branch `memory` holds these files. */
async function homeWith(paths: readonly string[], branch = 'memory'): Promise<Store> {
  const store = await testStore()
  await store.transact((tx) => createHome(tx, { id: HOME, owner: owner.did, origin: owner.did, now: NOW }))
  await write(store, paths, branch)
  return store
}

const write = (store: Store, paths: readonly string[], branch = 'memory', text = 'text of ') =>
  store.transact((tx) =>
    commitFiles(tx, {
      ...WORDS,
      home: HOME,
      branch,
      changes: paths.map((path) => ({ path, bytes: utf8(text + path) })),
    }),
  )

const filesOf = (store: Store, at = 'memory') =>
  listFiles(store.view(), { home: HOME, at, recursive: true }).filter(({ kind }) => kind === 'file')

const readOf = ({ path, oid }: { path: string; oid: string }, label: Label = OWNER_PRIVATE): ReadEntry => ({
  home: HOME,
  path,
  oid,
  label,
})
const append = (store: Store, reads: readonly ReadEntry[], readGroups?: readonly ReadGroup[]) =>
  store.transact((tx) =>
    appendRecord(
      tx,
      {
        operation: 'files.write',
        outcome: 'done',
        actor: agent.did,
        door: 'http',
        run: 'run_1',
        lease: null,
        reads,
        effect: {},
        commit: COMMIT,
        ...(readGroups === undefined ? {} : { readGroups }),
      },
      NOW,
    ),
  )
const expanded = (store: Store, groups: readonly ReadGroup[]) => readsIn(() => store.view(), groups)
/** Sets are compared: the order is that of the snapshot. */
const asSet = (reads: readonly ReadEntry[]) => reads.map((read) => canonicalize(read)).sort()
const notePath = (i: number) =>
  `notes/2026/${String((i % 12) + 1).padStart(2, '0')}/${(i % 256).toString(16)}/mem_${i}.md`

describe('files by their places in a snapshot', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd.md', 'é', '🌸', 'z')
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => `${parts.join('/')}.txt`)

  test('L1.5 what was asked for and is there comes back, and nothing else', async () => {
    const store = await homeWith(['first.txt'])
    let round = 0
    const property = fc.asyncProperty(
      fc.uniqueArray(path, { minLength: 1, maxLength: 40 }),
      fc.infiniteStream(fc.boolean()),
      fc.array(path, { maxLength: 4 }),
      async (paths, picks, others) => {
        const branch = `runs/${round++}`
        await write(store, paths, branch)
        const { tree } = await store.transact((tx) =>
          commitFiles(tx, { ...WORDS, home: HOME, branch, changes: [{ path: 'last', bytes: utf8('x') }] }),
        )
        const there = filesOf(store, branch)
        const picked = there.filter(() => picks.next().value === true)
        const elsewhere = others.map((at) => ({ path: at, oid: 'a'.repeat(64) }))
        const { set, found } = placesOf(store.view(), HOME, tree, [...picked, ...elsewhere])
        expect([...found]).toEqual(picked)
        expect(filesAt(store.view(), HOME, tree, set)).toEqual(picked.map((one) => ({ path: one.path, oid: one.oid })))
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test('L1.5 a snapshot read as a whole takes a few bytes, half of it one byte a file', async () => {
    const store = await homeWith(Array.from({ length: 600 }, (_, i) => notePath(i)))
    const { tree } = await write(store, ['one-more'])
    const all = filesOf(store)
    expect(placesOf(store.view(), HOME, tree, all).set.length).toBeLessThan(8)
    const half = all.filter((_, i) => i % 2 === 0)
    const { set } = placesOf(store.view(), HOME, tree, half)
    expect(set.length).toBeLessThan(half.length * 2)
    expect(filesAt(store.view(), HOME, tree, set)).toHaveLength(half.length)
  })

  test('places that fit no tree are refused, whatever their bytes are', async () => {
    const store = await homeWith(['a/b', 'a/c', 'd'])
    const { tree } = await write(store, ['e'])
    const read = (bytes: Uint8Array) =>
      thrownBy(() => filesAt(store.view(), HOME, tree, Buffer.from(bytes).toString('base64url')))
    for (const bytes of [
      [],
      [1],
      [2, 0],
      [1, 40],
      [1, 3],
      [1, 1, 9],
      [1, 2],
      [1, 6, 1, 0],
      [1, 0, 0],
      [255, 255, 255, 255, 255, 255, 255, 255, 255],
    ])
      expect(read(Uint8Array.from(bytes)), String(bytes)).toMatchObject({ code: 'MALFORMED' })
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        expect([undefined, 'MALFORMED']).toContain((read(bytes) as { code?: string } | undefined)?.code)
      }),
      { numRuns: 300 },
    )
  })
})

describe('a list in the record', () => {
  test('L1.5 explained it is what was read, each thing once, whatever its size and labels', async () => {
    const store = await homeWith(Array.from({ length: 120 }, (_, i) => notePath(i)))
    await write(
      store,
      Array.from({ length: 20 }, (_, i) => `work/${i}.txt`),
      'runs/base',
    )
    await store.transact((tx) => tx.putJson(key('ref', HOME, 'main'), getRef(tx, HOME, 'runs/base')))
    const there = [...filesOf(store), ...filesOf(store, 'main')]
    const property = fc.asyncProperty(
      fc.array(
        fc.record({ file: fc.constantFrom(...there), kind: fc.constantFrom('as is', 'health', 'older', 'twice') }),
        {
          maxLength: 90,
        },
      ),
      async (picks) => {
        const reads = picks.flatMap(({ file, kind }) => {
          const one = readOf(
            kind === 'older' ? { ...file, oid: 'b'.repeat(64) } : file,
            file.path.length % 2 === 0 ? health : OWNER_PRIVATE,
          )
          return kind === 'twice' ? [one, { ...one }] : [one]
        })
        const { seq } = await append(store, reads)
        const [item] = await readRecords(store.view(), { limit: 1, after: seq - 1 })
        const once = new Set(reads.map((read) => canonicalize(read)))
        expect(item?.header.reads).toBe(once.size)
        expect(asSet(item?.payload?.reads ?? [])).toEqual([...once].sort())
      },
    )
    await fc.assert(property, { numRuns: 60 })
    expect(await verifyRecord(store.view())).toMatchObject({ ok: true })
  })

  test('L1.5 two hundred notes take less than a thousand bytes, and explain names each', async () => {
    const store = await homeWith(Array.from({ length: 400 }, (_, i) => notePath(i)))
    const reads = filesOf(store)
      .filter((_, i) => i % 2 === 0)
      .map((file) => readOf(file))
    await append(store, reads)
    const stored = store.view().get(key('payload', 0)) ?? new Uint8Array()
    expect(stored.byteLength).toBeLessThan(1000)
    const explained = await explainCommit(store.view(), COMMIT)
    expect(asSet(explained.reads ?? [])).toEqual(asSet(reads))
    expect(explained.readCount).toBe(200)
  })

  test('L1.5 notes that changed later are still those that were read', async () => {
    const store = await homeWith(Array.from({ length: 30 }, (_, i) => notePath(i)))
    const reads = filesOf(store).map((file) => readOf(file))
    await append(store, reads)
    await write(
      store,
      reads.map(({ path }) => path),
      'memory',
      'another text of ',
    )
    expect(asSet((await explainCommit(store.view(), COMMIT)).reads ?? [])).toEqual(asSet(reads))
  })

  test('a snapshot that can not be read leaves the number, and the rest of the entry', async () => {
    const store = await homeWith(Array.from({ length: 30 }, (_, i) => notePath(i)))
    const missing = { files: [['a.md', 'a'.repeat(64)] as const], home: HOME, label: 'private:owner' }
    const lost = { at: 'd'.repeat(64), home: HOME, label: 'private:owner', set: 'AQA' }
    expect(expanded(store, [missing, lost])).toEqual([readOf({ path: 'a.md', oid: 'a'.repeat(64) })])
    await append(
      store,
      [readOf({ path: 'a.md', oid: 'a'.repeat(64) }), readOf({ path: 'b', oid: 'b' })],
      [missing, lost],
    )
    expect(await explainCommit(store.view(), COMMIT)).toMatchObject({ readCount: 2, reads: [{ path: 'a.md' }] })
  })

  test('L3.4 what a place names is found by the words of it, and nothing else is', async () => {
    const store = await homeWith(Array.from({ length: 40 }, (_, i) => notePath(i)))
    const [first, ...others] = filesOf(store).map((file) => readOf(file))
    await append(store, others)
    await append(store, first === undefined ? [] : [first, ...others.slice(1)])
    expect(Buffer.from(store.view().get(key('payload', 1)) ?? []).toString()).not.toContain(first?.path)
    const found = await payloadsThatMention(store.view(), [first?.path ?? ''])
    expect(found.map(({ seq }) => seq)).toEqual([1])
    expect(await payloadsThatMention(store.view(), [others[0]?.oid ?? ''])).toMatchObject([{ seq: 0 }])
    expect(await payloadsThatMention(store.view(), ['notes/none'])).toEqual([])
  })
})

describe('the list of a run', () => {
  test('L1.5 grows from entry to entry, is worked out once, and always says all of it', async () => {
    const store = await homeWith(Array.from({ length: 60 }, (_, i) => notePath(i)))
    const reads = filesOf(store).map((file) => readOf(file))
    const property = fc.property(
      fc.array(fc.integer({ min: 0, max: 59 }), { maxLength: 80 }),
      fc.integer({ min: 1, max: 30 }),
      (order, step) => {
        const run = createRunReads()
        const told = new Set<string>()
        for (let at = 0; at < order.length; at += step) {
          for (const i of order.slice(at, at + step)) {
            const read = reads[i] ?? readOf({ path: '', oid: '' })
            run.noteRead(read)
            told.add(canonicalize(read))
          }
          const groups = run.groups(store.view())
          expect(asSet(expanded(store, groups))).toEqual([...told].sort())
          expect(asSet(run.reads)).toEqual([...told].sort())
          expect(groups.filter((group) => 'files' in group).length).toBeLessThanOrEqual(1)
        }
      },
    )
    fc.assert(property, { numRuns: 60 })
  })

  test('L1.5 one thing under a new label is another read', async () => {
    const store = await homeWith(['a'])
    const run = createRunReads()
    const [file] = filesOf(store)
    if (file === undefined) throw new Error('no file')
    run.noteRead(readOf(file))
    run.groups(store.view())
    run.noteRead(readOf(file))
    run.noteRead(readOf(file, health))
    expect(asSet(run.reads)).toEqual(asSet([readOf(file), readOf(file, health)]))
    expect(asSet(expanded(store, run.groups(store.view())))).toEqual(asSet(run.reads))
    run.noteRead(readOf(file))
    expect(run.reads).toHaveLength(2)
  })

  test('few are named, so that nothing has to be looked for', async () => {
    const store = await homeWith(Array.from({ length: 20 }, (_, i) => notePath(i)))
    const reads = filesOf(store)
      .slice(0, 7)
      .map((file) => readOf(file))
    expect(groupsOf(store.view(), reads)).toEqual([
      { files: reads.map(({ path, oid }) => [path, oid]), home: HOME, label: 'private:owner' },
    ])
  })
})
