import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS, OWNER_PRIVATE } from '@csb/core'
import { FORMAT, key, openStore, prefix, tail, type Store } from '@csb/store'
import { bytesOf, pairsOf, testFolder, testStore, textOf } from './folder.ts'

const put = (store: Store, at: string, value: string) => store.transact((tx) => tx.put(at, bytesOf(value)))
const get = (store: Store, at: string) => textOf(store.view().get(at))

/** Counts the batches that reach the disk from now on. */
function countBatches(store: Store): { readonly count: number } {
  const counted = { count: 0 }
  store.db.on('write', () => counted.count++)
  return counted
}

describe('a transaction', () => {
  test('is on the disk when it resolves', async () => {
    const folder = await testFolder()
    const store = await openStore(join(folder, 'db'))
    await put(store, 'm/a', 'one')
    expect(get(store, 'm/a')).toBe('one')
    await store.close()
    expect(get(await testStore(folder), 'm/a')).toBe('one')
  })

  test('that throws writes nothing, and the next one goes on', async () => {
    const store = await testStore()
    await put(store, 'm/a', 'one')
    const failing = store.transact(async (tx) => {
      tx.put('m/a', bytesOf('two'))
      tx.put('m/b', bytesOf('two'))
      tx.del('m/a')
      await Promise.resolve()
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect(await pairsOf(store.view(), { prefix: 'm/' })).toEqual([
      ['m/a', 'one'],
      ['m/format', String(FORMAT)],
    ])
    await put(store, 'm/b', 'three')
    expect(get(store, 'm/b')).toBe('three')
  })

  test('sees what it staged; nobody else does before it ends', async () => {
    const store = await testStore()
    await put(store, 'm/a', 'one')
    const view = store.view()
    await store.transact(async (tx) => {
      tx.put('m/a', bytesOf('two'))
      tx.putJson('m/b', { n: 1 })
      expect(textOf(tx.get('m/a'))).toBe('two')
      expect(tx.getJson('m/b')).toEqual({ n: 1 })
      tx.del('m/b')
      expect(tx.has('m/b')).toBe(false)
      expect(textOf(view.get('m/a'))).toBe('one')
      await Promise.resolve()
    })
    expect(textOf(view.get('m/a'))).toBe('two')
  })

  test('sees what one before it staged, though that is not on the disk yet', async () => {
    const store = await testStore()
    const seen: (string | undefined)[] = []
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        store.transact((tx) => {
          seen.push(textOf(tx.get('m/n')))
          tx.put('m/n', bytesOf(String(i)))
        }),
      ),
    )
    expect(seen).toEqual([undefined, ...Array.from({ length: 49 }, (_, i) => String(i))])
    expect(get(store, 'm/n')).toBe('49')
  })

  test('runs alone: a slow one is not overtaken', async () => {
    const store = await testStore()
    const add = () =>
      store.transact(async (tx) => {
        const count = tx.getJson<number>('m/n') ?? 0
        await new Promise((resolve) => setImmediate(resolve))
        tx.putJson('m/n', count + 1)
      })
    await Promise.all(Array.from({ length: 40 }, add))
    expect(store.view().getJson('m/n')).toBe(40)
  })

  test('those in flight together share a synced batch', async () => {
    const store = await testStore()
    const batches = countBatches(store)
    await Promise.all(Array.from({ length: 600 }, (_, i) => put(store, `m/k${i}`, 'x')))
    expect(batches.count).toBeLessThanOrEqual(1 + Math.ceil(600 / LIMITS.recordGroup) + 1)
    expect((await pairsOf(store.view(), { prefix: 'm/k' })).length).toBe(600)
  })

  test('waits with its work where the disk is slow: no more than three groups are made ahead of it', async () => {
    const store = await testStore()
    const disk = Promise.withResolvers<void>()
    const batch = store.db.batch.bind(store.db)
    const slow = () => {
      const chained = batch()
      const write = chained.write.bind(chained)
      return Object.assign(chained, { write: () => disk.promise.then(() => write({ sync: true })) })
    }
    store.db.batch = slow as unknown as typeof batch
    let ran = 0
    const all = Array.from({ length: 2000 }, (_, i) =>
      store.transact((tx) => {
        ran++
        tx.put(`m/k${i}`, bytesOf('x'))
      }),
    )
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran).toBe(3 * LIMITS.recordGroup)
    disk.resolve()
    await Promise.all(all)
    expect((await pairsOf(store.view(), { prefix: 'm/k' })).length).toBe(2000)
  })

  test('that only reads writes nothing, and is answered once what it saw is on the disk', async () => {
    const store = await testStore()
    const batches = countBatches(store)
    let isWritten = false
    const writing = put(store, 'm/a', 'one').then(() => (isWritten = true))
    const seen = await store.transact((tx) => textOf(tx.get('m/a')))
    expect(seen).toBe('one')
    await writing
    expect(isWritten).toBe(true)
    expect(batches.count).toBe(1)
    await store.transact((tx) => tx.get('m/a'))
    expect(batches.count).toBe(1)
  })

  test('that only reads is answered though others never stop writing', async () => {
    const store = await testStore()
    const stop = new AbortController()
    const writers = [0, 1].map(async (lane) => {
      for (let i = 0; !stop.signal.aborted; i++) await put(store, `m/${lane}`, String(i))
    })
    for (let i = 0; i < 5; i++) await store.transact((tx) => tx.has('m/0'))
    stop.abort()
    await Promise.all(writers)
  })

  test('a value that is no JSON is named as damaged', async () => {
    const store = await testStore()
    await put(store, 'm/a', '{')
    expect(() => store.view().getJson('m/a')).toThrow(
      expect.objectContaining({ code: 'OBJECT_DAMAGED', details: { key: 'm/a' } }),
    )
    expect(store.view().getJson('m/none')).toBeUndefined()
  })

  test('closing waits for what is under way', async () => {
    const folder = await testFolder()
    const store = await openStore(join(folder, 'db'))
    const writes = Promise.all(Array.from({ length: 20 }, (_, i) => put(store, `m/k${i}`, 'x')))
    await store.close()
    await writes
    expect(await pairsOf((await testStore(folder)).view(), { prefix: 'm/k' })).toHaveLength(20)
  })
})

describe('a write that failed', () => {
  /** The next batch reaches the disk, and the disk says it did not. */
  function doubt(store: Store): void {
    const batch = store.db.batch.bind(store.db)
    const doubtful = () => {
      store.db.batch = batch
      const chained = batch()
      const write = chained.write.bind(chained)
      return Object.assign(chained, {
        write: async () => {
          await write({ sync: true })
          throw new Error('not synced')
        },
      })
    }
    store.db.batch = doubtful as unknown as typeof batch
  }

  test('is told as failed, and the next one sees what the disk really has', async () => {
    const store = await testStore()
    await put(store, 'm/a', 'one')
    expect(await store.transact((tx) => textOf(tx.get('m/a')))).toBe('one')
    doubt(store)
    const seen: (string | undefined)[] = []
    const outcomes = await Promise.allSettled([
      put(store, 'm/a', 'two'),
      store.transact(async (tx) => {
        seen.push(textOf(tx.get('m/a')))
        await new Promise((resolve) => setImmediate(resolve))
        tx.put('m/b', bytesOf('rests on it'))
      }),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(seen).toEqual(['two'])
    const now = await store.transact((tx) => {
      tx.put('m/c', bytesOf('three'))
      return [textOf(tx.get('m/a')), textOf(tx.get('m/b'))]
    })
    expect(now).toEqual([get(store, 'm/a'), undefined])
    expect(get(store, 'm/c')).toBe('three')
  })
})

describe('ranges', () => {
  // an emoji is two UTF-16 units that sort before U+FF01 and UTF-8 bytes that sort after it
  const part = fc.string({ unit: fc.constantFrom('a', 'b', '/', '0', 'é', '！', '🌸'), minLength: 1, maxLength: 3 })
  const change = fc.record({ at: part, value: fc.option(fc.nat(99).map(String), { nil: null }) })
  const question = fc.record(
    { under: fc.constantFrom('', 'a', 'b', '🌸'), after: part, limit: fc.nat(4), reverse: fc.boolean() },
    { requiredKeys: ['under', 'reverse'] },
  )
  const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

  test('over disk, waiting and staged changes are what one sorted map would give', async () => {
    const store = await testStore()
    let round = 0
    const property = fc.asyncProperty(
      fc.array(change, { maxLength: 8 }),
      fc.array(change, { maxLength: 4 }),
      fc.array(change, { maxLength: 8 }),
      fc.array(question, { minLength: 1, maxLength: 6 }),
      async (durable, waiting, staged, questions) => {
        const root = prefix('meta', `r${round++}`)
        const model = new Map<string, string>()
        const apply = (tx: { put(k: string, v: Uint8Array): void; del(k: string): void }, changes: typeof durable) => {
          for (const { at, value } of changes) {
            if (value === null) tx.del(root + at)
            else tx.put(root + at, bytesOf(value))
            if (value === null) model.delete(root + at)
            else model.set(root + at, value)
          }
        }
        await store.transact((tx) => apply(tx, durable))
        const before = store.transact((tx) => apply(tx, waiting))
        await store.transact(async (tx) => {
          apply(tx, staged)
          for (const { under, after, limit, reverse } of questions) {
            const from = after === undefined ? undefined : root + under + after
            const expected = [...model]
              .filter(([k]) => k.startsWith(root + under))
              .filter(([k]) => from === undefined || (reverse ? byBytes(k, from) < 0 : byBytes(k, from) > 0))
              .sort(([a], [b]) => (reverse ? byBytes(b, a) : byBytes(a, b)))
              .slice(0, limit ?? Number.POSITIVE_INFINITY)
            const options = {
              prefix: root + under,
              reverse,
              ...(from === undefined ? {} : { after: from }),
              ...(limit === undefined ? {} : { limit }),
            }
            expect(await pairsOf(tx, options)).toEqual(expected)
          }
          const asked = [...durable, ...waiting, ...staged].map(({ at }) => root + at).concat(`${root}none`)
          const absent = asked.filter((k) => !model.has(k))
          expect(await tx.missing(asked)).toEqual(absent)
          expect(asked.filter((k) => !tx.has(k))).toEqual(absent)
        })
        await before
      },
    )
    await fc.assert(property, { numRuns: 150 })
  })

  test('in a view shows one moment, whatever is written meanwhile', async () => {
    const store = await testStore()
    for (const k of ['a', 'b', 'c']) await put(store, `m/x${k}`, k)
    const seen: string[] = []
    for await (const [k] of store.view().range({ prefix: 'm/x' })) {
      seen.push(k)
      if (k === 'm/xa') await store.transact((tx) => tx.del('m/xb'))
      if (k === 'm/xb') await put(store, 'm/xd', 'd')
    }
    expect(seen).toEqual(['m/xa', 'm/xb', 'm/xc'])
  })
})

describe('keys', () => {
  test('numbers sort as numbers, and what follows a prefix is given back', () => {
    expect(key('header', 9) < key('header', 10)).toBe(true)
    expect(key('ref', 'home_x', 'runs/7')).toBe('fr/home_x/runs/7')
    expect(tail(key('ref', 'home_x', 'runs/7'), 'ref', 'home_x')).toBe('runs/7')
    expect(prefix('note', 'home_x').endsWith('/')).toBe(true)
  })
})

test('what was read is noted once per thing', async () => {
  const view = (await testStore()).view()
  const read = { home: 'h', path: 'a', oid: '1', label: OWNER_PRIVATE }
  view.noteRead(read)
  view.noteRead({ ...read })
  view.noteRead({ ...read, oid: '2' })
  expect(view.reads).toEqual([read, { ...read, oid: '2' }])
})

test('the folder is the owner’s alone', async () => {
  const folder = await testFolder()
  await testStore(folder)
  expect((await stat(join(folder, 'db'))).mode & 0o077).toBe(0)
})
