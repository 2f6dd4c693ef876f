import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { getRef, readBlob, readFile, readLog, streamBlob } from '../src/index.ts'
import { deltaOf } from './deltas.ts'
import { openHome, text } from './open-home.ts'
import { make, makerOf, push, simple } from './packs.ts'

describe.each(['sha256', 'sha1'] as const)('a pack into a %s home', (hash) => {
  test('objects whole, as deltas by offset and by id, and on what is here already', async () => {
    const { store, home } = await openHome(hash)
    const its = makerOf(hash)
    const [one, two, three] = [
      'first version of a long line\n',
      'second version of a long line\n',
      'third version of a long line\n',
    ].map((line) => its.blob(line.repeat(5)))
    if (one === undefined || two === undefined || three === undefined) throw new Error('never')
    const tree = its.tree(['100644', 'a', one.oid], ['100644', 'b', two.oid], ['100644', 'c', three.oid])
    const commit = its.commit(tree.oid)
    const base = its.whole(one)
    const onBase = its.onOffset(base.byteLength, deltaOf(one.body, two.body))
    // the base of the last one comes behind it
    const pack = its.pack([
      its.onId(two.oid, deltaOf(two.body, three.body)),
      base,
      onBase,
      its.whole(tree),
      its.whole(commit),
    ])
    expect(await push(store, home, pack, commit.oid)).toEqual([commit.oid])
    for (const { oid, body } of [one, two, three])
      expect(Buffer.from(readBlob(store.view(), home.id, oid))).toEqual(body)
    const four = its.blob('fourth version of a long line\n'.repeat(5))
    const next = its.tree(['100644', 'a', four.oid])
    const child = its.commit(next.oid, [commit.oid])
    await push(
      store,
      home,
      its.pack([its.onId(three.oid, deltaOf(three.body, four.body)), its.whole(next), its.whole(child)]),
      child.oid,
    )
    expect(Buffer.from(readFile(store.view(), { home: home.id, at: 'runs/one', path: 'a' }).bytes)).toEqual(four.body)
    expect(readLog(store.view(), { home: home.id, at: 'runs/one', limit: 9 }).map((entry) => entry.commit)).toEqual([
      child.oid,
      commit.oid,
    ])
  })
})

describe('a push', () => {
  test('a blob of several MB goes through in pieces, and one that is deflated to almost nothing too', async () => {
    const { store, home } = await openHome()
    const noise = make.blob(randomBytes(3 * 1024 * 1024))
    const zeros = make.blob(Buffer.alloc(20 * 1024 * 1024))
    const tree = make.tree(['100644', 'noise', noise.oid], ['100644', 'zeros', zeros.oid])
    const commit = make.commit(tree.oid)
    await push(store, home, make.pack([noise, zeros, tree, commit].map(make.whole)), commit.oid)
    for (const { oid, body } of [noise, zeros]) {
      let at = 0
      for await (const chunk of streamBlob(store.view(), home.id, oid)) {
        expect(Buffer.compare(chunk, body.subarray(at, at + chunk.byteLength))).toBe(0)
        at += chunk.byteLength
      }
      expect(at).toBe(body.byteLength)
    }
  })

  test('a chain of deltas longer than the store keeps is stored in part whole, and reads back', async () => {
    const { store, home } = await openHome()
    const versions = Array.from({ length: 150 }, (_, i) =>
      make.blob(`a line that stays the same\n`.repeat(4) + `version ${i}\n`),
    )
    const first = versions[0] ?? make.blob('')
    const deltas = versions
      .slice(1)
      .map(({ body }, i) => make.onId(versions[i]?.oid ?? '', deltaOf(versions[i]?.body ?? text(''), body)))
    const tree = make.tree(...versions.map(({ oid }, i) => ['100644', `v${String(i).padStart(3, '0')}`, oid] as const))
    const commit = make.commit(tree.oid)
    await push(store, home, make.pack([make.whole(first), ...deltas, make.whole(tree), make.whole(commit)]), commit.oid)
    for (const { oid, body } of versions) expect(Buffer.from(readBlob(store.view(), home.id, oid))).toEqual(body)
  })

  test('what no tip needs is not stored', async () => {
    const { store, home } = await openHome()
    const { commit, entries } = simple()
    const stray = make.blob('nobody needs this')
    await push(store, home, make.pack([...entries, make.whole(stray)]), commit.oid)
    expect(() => readBlob(store.view(), home.id, stray.oid)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
  })

  test('history that is here already is named and need not come', async () => {
    const { store, home } = await openHome()
    const { commit, entries } = simple()
    await push(store, home, make.pack(entries), commit.oid)
    expect(await push(store, home, make.pack([]), commit.oid, { branch: 'runs/two' })).toEqual([])
    expect(getRef(store.view(), home.id, 'runs/two')?.commit).toBe(commit.oid)
  })
})
