import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { LIMITS } from '@csb/core'
import type { Store } from '@csb/store'
import {
  commitFiles,
  eraseVersions,
  getRef,
  listFiles,
  readBlob,
  readFile,
  readLog,
  setLabel,
  streamBlob,
  type Home,
} from '../src/index.ts'
import { deltaOf } from './deltas.ts'
import { WORDS, openHome, snapshot, text } from './open-home.ts'
import { makerOf, push, type Entry } from './packs.ts'

const make = makerOf('sha256')
const refusedWith = (code: string) => expect.objectContaining({ code })

/** A pack of one commit with a file `a`. */
function simple() {
  const blob = make.blob('hello\n')
  const tree = make.tree(['100644', 'a', blob.oid])
  const commit = make.commit(tree.oid)
  return { blob, tree, commit, entries: [blob, tree, commit].map(make.whole) }
}

/** The push is refused with that code and nothing is changed, neither in the store nor beside it. */
async function refuses(
  store: Store,
  home: Home,
  pack: Uint8Array,
  tip: string,
  code: string,
  rules: Parameters<typeof push>[4] = {},
) {
  const before = await snapshot(store)
  await expect(push(store, home, pack, tip, rules)).rejects.toEqual(refusedWith(code))
  expect(await snapshot(store)).toEqual(before)
  expect((await readdir(dirname(store.directory))).filter((name) => name.startsWith('push-'))).toEqual([])
}

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
    expect(() => readBlob(store.view(), home.id, stray.oid)).toThrow(refusedWith('NOT_FOUND'))
  })

  test('history that is here already is named and need not come', async () => {
    const { store, home } = await openHome()
    const { commit, entries } = simple()
    await push(store, home, make.pack(entries), commit.oid)
    expect(await push(store, home, make.pack([]), commit.oid, { branch: 'runs/two' })).toEqual([])
    expect(getRef(store.view(), home.id, 'runs/two')?.commit).toBe(commit.oid)
  })
})

describe('hostile packs', () => {
  test('L0.5 partial: any pack that was cut, changed in one byte or is junk is refused and leaves nothing', async () => {
    const { store, home } = await openHome()
    const { commit, entries } = simple()
    const pack = make.pack(entries)
    const before = await snapshot(store)
    const hostile = fc.oneof(
      fc.nat(pack.byteLength - 1).map((cut) => pack.subarray(0, cut)),
      fc
        .tuple(fc.nat(pack.byteLength - 1), fc.integer({ min: 1, max: 255 }))
        .map(([at, by]) => Buffer.from(pack.with(at, (pack[at] ?? 0) ^ by))),
      fc.uint8Array({ maxLength: 200 }),
      // with a checksum that fits
      fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 4 }).map((junk) => make.pack(junk)),
      fc
        .tuple(fc.nat(2), fc.nat(5), fc.nat(255))
        .map(([which, at, byte]) =>
          make.pack(
            entries.map((entry, i) =>
              i === which && at < entry.byteLength && entry[at] !== byte ? Buffer.from(entry.with(at, byte)) : entry,
            ),
          ),
        ),
    )
    await fc.assert(
      fc.asyncProperty(hostile, async (bytes) => {
        fc.pre(!Buffer.from(bytes).equals(pack))
        await expect(push(store, home, bytes, commit.oid)).rejects.toMatchObject({
          code: expect.stringMatching(/^(MALFORMED|TOO_LARGE|NOT_FOUND|INVALID_INPUT)$/),
        })
      }),
      { numRuns: 250 },
    )
    expect(await snapshot(store)).toEqual(before)
  })

  test('sizes that are not true, more objects than are there, bytes behind the last one', async () => {
    const { store, home } = await openHome()
    const { commit, entries, blob } = simple()
    const rest = entries.slice(1)
    for (const size of [blob.body.byteLength - 1, blob.body.byteLength + 1, 200_000, 300_000]) {
      await refuses(
        store,
        home,
        make.pack([make.entry(3, size, deflateSync(blob.body)), ...rest]),
        commit.oid,
        'MALFORMED',
      )
    }
    for (const [all, count] of [
      [entries, 4],
      [entries, 2],
      [entries, 0xffff],
    ] as const) {
      await refuses(store, home, make.pack(all, count), commit.oid, 'MALFORMED')
    }
    await refuses(store, home, make.pack([], 4_000_000_000), commit.oid, 'TOO_LARGE')
    await refuses(store, home, make.pack([make.entry(0, 1, deflateSync(text('x')))]), commit.oid, 'MALFORMED')
    await refuses(store, home, make.pack([make.entry(5, 1, deflateSync(text('x')))]), commit.oid, 'MALFORMED')
  })

  test('objects that are announced too large are refused before they are inflated', async () => {
    const { store, home } = await openHome()
    const { commit } = simple()
    const bomb = deflateSync(Buffer.alloc(1_000_000))
    for (const [code, size] of [
      [3, 4 * 1024 ** 3],
      [3, LIMITS.objectBytes + 1],
      [2, LIMITS.treeBytes + 1],
      [1, LIMITS.commitBytes + 1],
      [3, Number.MAX_SAFE_INTEGER],
    ] as const) {
      await refuses(store, home, make.pack([make.entry(code, size, bomb)]), commit.oid, 'TOO_LARGE')
    }
    // one that says it is small and is not
    await refuses(store, home, make.pack([make.entry(3, 100, bomb)]), commit.oid, 'MALFORMED')
    await refuses(store, home, make.pack([make.entry(3, 500_000, bomb)]), commit.oid, 'MALFORMED')
  })

  test('a delta that makes something huge of little is refused before it is made', async () => {
    const { store, home } = await openHome()
    const { commit, blob } = simple()
    const huge = Buffer.from([6, 0x80, 0x80, 0x80, 0x80, 0x40, 0x90, 6])
    await refuses(store, home, make.pack([make.whole(blob), make.onId(blob.oid, huge)]), commit.oid, 'TOO_LARGE')
  })

  test('a bomb of deltas that double each time ends at the bound', async () => {
    const { store, home } = await openHome()
    const { commit } = simple()
    let bytes = Buffer.alloc(1024 * 1024, 1)
    const first = make.blob(bytes)
    const entries = [make.whole(first)]
    let base = first.oid
    const copy = (size: number) => Buffer.from([0x80 | 0x70, size & 255, (size >> 8) & 255, (size >> 16) & 255])
    const number = (value: number) =>
      Buffer.from([(value & 127) | 128, ((value >> 7) & 127) | 128, ((value >> 14) & 127) | 128, value >> 21])
    for (let i = 0; i < 7; i++) {
      const next = Buffer.concat([bytes, bytes])
      const ops = Array.from({ length: 2 }, () =>
        Array.from(
          { length: Math.ceil(bytes.byteLength / 0x800000) },
          (_, at) => [at * 0x800000, Math.min(0x800000, bytes.byteLength - at * 0x800000)] as const,
        ),
      ).flat()
      const copies = ops.map(([from, size]) =>
        Buffer.concat([
          Buffer.from([0xff, from & 255, (from >> 8) & 255, (from >> 16) & 255, from >>> 24]),
          copy(size).subarray(1),
        ]),
      )
      entries.push(make.onId(base, Buffer.concat([number(bytes.byteLength), number(next.byteLength), ...copies])))
      if (next.byteLength > LIMITS.deltaBytes) break
      bytes = next
      base = make.blob(bytes).oid
    }
    await refuses(store, home, make.pack(entries), commit.oid, 'TOO_LARGE')
  })

  test('circles of deltas, deltas on nothing, on another kind of thing, on themselves', async () => {
    const { store, home } = await openHome()
    const { commit, entries } = simple()
    const [a, b] = [make.blob('a'.repeat(40)), make.blob('b'.repeat(40))]
    const delta = deltaOf(a.body, b.body)
    await refuses(
      store,
      home,
      make.pack([...entries, make.onId(b.oid, delta), make.onId(a.oid, delta)]),
      commit.oid,
      'MALFORMED',
    )
    await refuses(store, home, make.pack([...entries, make.onId('0'.repeat(64), delta)]), commit.oid, 'MALFORMED')
    for (const back of [0, 1, 100]) {
      await refuses(store, home, make.pack([make.whole(a), make.onOffset(back, delta)]), commit.oid, 'MALFORMED')
    }
    await refuses(
      store,
      home,
      make.pack([make.whole(a), make.onId(a.oid, deltaOf(b.body.subarray(1), a.body))]),
      commit.oid,
      'MALFORMED',
    )
  })

  test('a chain of deltas longer than is followed', async () => {
    const { store, home } = await openHome()
    const { commit } = simple()
    const versions = Array.from({ length: LIMITS.packChain + 2 }, (_, i) => make.blob(`v${i}`))
    const deltas = versions
      .slice(1)
      .map(({ body }, i) => make.onId(versions[i]?.oid ?? '', deltaOf(versions[i]?.body ?? text(''), body)))
    await refuses(
      store,
      home,
      make.pack([make.whole(versions[0] ?? make.blob('')), ...deltas]),
      commit.oid,
      'TOO_LARGE',
    )
  })

  test('objects that name what is nowhere, or is of another kind', async () => {
    const { store, home } = await openHome()
    const { blob, tree, commit } = simple()
    const none = 'f'.repeat(64)
    const whole = (...objects: readonly (typeof blob)[]) => make.pack(objects.map(make.whole))
    await refuses(store, home, whole(tree, commit), commit.oid, 'NOT_FOUND')
    await refuses(store, home, whole(blob, commit), commit.oid, 'NOT_FOUND')
    await refuses(store, home, whole(blob, tree), commit.oid, 'NOT_FOUND')
    const orphan = make.commit(tree.oid, [none])
    await refuses(store, home, whole(blob, tree, orphan), orphan.oid, 'NOT_FOUND')
    const onBlob = make.commit(tree.oid, [blob.oid])
    await refuses(store, home, whole(blob, tree, onBlob), onBlob.oid, 'NOT_FOUND')
    const treeIsBlob = make.commit(blob.oid)
    await refuses(store, home, whole(blob, treeIsBlob), treeIsBlob.oid, 'NOT_FOUND')
    const folderIsBlob = make.tree(['40000', 'a', blob.oid])
    const commitOfIt = make.commit(folderIsBlob.oid)
    await refuses(store, home, whole(blob, folderIsBlob, commitOfIt), commitOfIt.oid, 'NOT_FOUND')
    await refuses(store, home, whole(blob, tree), tree.oid, 'NOT_FOUND')
  })
})

describe('what a push may not bring', () => {
  const treeWith = (...entries: Entry[]) => {
    const blob = make.blob('x')
    const inner = make.tree(['100644', 'x', blob.oid])
    const given = { '40000': inner.oid } as Readonly<Record<string, string>>
    const tree = make.tree(
      ...entries.map(([mode, name, oid]): Entry => [mode, name, oid === '' ? (given[mode] ?? blob.oid) : oid]),
    )
    const commit = make.commit(tree.oid)
    return { pack: make.pack([blob, inner, tree, commit].map(make.whole)), tip: commit.oid }
  }

  test.each([
    ['..', '100644'],
    ['.', '40000'],
    ['.git', '40000'],
    ['.GIT', '100644'],
    ['git~1', '40000'],
    ['.g\u200cit', '40000'],
    ['a/b', '100644'],
    ['a\\b', '100644'],
    ['', '100644'],
    ['a\u0007', '100644'],
    ['\u202egnp.exe', '100644'],
    ['cafe\u0301', '100644'],
    ['x'.repeat(300), '100644'],
    ['sub', '160000'],
    ['odd', '100664'],
  ])('a tree with an entry named %j of mode %s', async (name, mode) => {
    const { store, home } = await openHome()
    const { pack, tip } = treeWith([mode, name, ''])
    await refuses(store, home, pack, tip, 'MALFORMED')
  })

  test('names with a NUL or bytes that are no UTF-8, entries twice or out of order', async () => {
    const { store, home } = await openHome()
    for (const entries of [
      [['100644', 'a\0b', '']],
      [['100644', Buffer.from([0x66, 0xff, 0x6f]), '']],
      [
        ['100644', 'b', ''],
        ['100644', 'a', ''],
      ],
      [
        ['100644', 'a', ''],
        ['100644', 'a', ''],
      ],
      [
        ['40000', 'a', ''],
        ['100644', 'a.b', ''],
      ],
    ] as Entry[][]) {
      const { pack, tip } = treeWith(...entries)
      await refuses(store, home, pack, tip, 'MALFORMED')
    }
  })

  test.each([
    ['README', 'readme'],
    ['Straße', 'STRASSE'],
    ['file', 'ﬁle'],
    ['Ａ', 'a'],
  ])('two names that some system takes for one: %s and %s', async (one, other) => {
    const { store, home } = await openHome()
    const names = [one, other].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const { pack, tip } = treeWith(...names.map((name) => ['100644', name, ''] as const))
    await refuses(store, home, pack, tip, 'INVALID_INPUT')
  })

  test('symbolic links out of the tree at any depth; within it they are taken', async () => {
    const { store, home } = await openHome()
    const linked = (target: string | Uint8Array, depth: number) => {
      const link = make.blob(target)
      let tree = make.tree(['120000', 'l', link.oid])
      const trees = [tree]
      for (let i = 0; i < depth; i++) trees.push((tree = make.tree(['40000', `d${i}`, tree.oid])))
      const commit = make.commit(tree.oid)
      return { pack: make.pack([link, ...trees, commit].map(make.whole)), tip: commit.oid }
    }
    for (const [target, depth] of [
      ['/etc/passwd', 0],
      ['../x', 0],
      ['a/../../x', 0],
      ['../../../x', 2],
      ['C:\\x', 0],
      ['.git/hooks', 0],
      ['', 0],
      ['a\nb', 0],
      ['x'.repeat(5000), 0],
      [Buffer.from([0xff]), 0],
    ] as const) {
      const { pack, tip } = linked(target, depth)
      await refuses(store, home, pack, tip, 'INVALID_INPUT')
    }
    for (const [index, [target, depth]] of (
      [
        ['x', 0],
        ['../x', 1],
        ['../../a/b', 2],
        ['d/../x', 0],
      ] as const
    ).entries()) {
      const { pack, tip } = linked(target, depth)
      await push(store, home, pack, tip, { branch: `runs/link-${index}` })
    }
  })

  test('a link that stays within its folder is looked at again where the folder is put', async () => {
    const { store, home } = await openHome()
    const link = make.blob('../x')
    const inner = make.tree(['120000', 'l', link.oid])
    const outer = make.tree(['40000', 'd', inner.oid])
    const commit = make.commit(outer.oid)
    await push(store, home, make.pack([link, inner, outer, commit].map(make.whole)), commit.oid)
    const moved = make.commit(inner.oid, [commit.oid])
    await refuses(store, home, make.pack([make.whole(moved)]), moved.oid, 'INVALID_INPUT')
  })

  test('words of a node, unless the owner brings them', async () => {
    const { store, home } = await openHome()
    const { blob, tree } = simple()
    const forged = make.commit(tree.oid, [], 'a commit\n\nCsb-Run: run_1\n')
    const pack = make.pack([blob, tree, forged].map(make.whole))
    await refuses(store, home, pack, forged.oid, 'DENIED', { mayCarryTrailers: false })
    await push(store, home, pack, forged.oid, { mayCarryTrailers: true })
  })

  test('L3.2 a lower label, in any of the commits; a higher one is taken', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    const label = { level: 'private', integrity: 'owner', tags: ['health'] } as const
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 'a', bytes: text('a') }] }))
    const { commit } = await store.transact((tx) => setLabel(tx, { ...words, path: 'a', label }))
    const a =
      listFiles(store.view(), { home: home.id, at: 'runs/one', path: '' }).find(({ path }) => path === 'a')?.oid ?? ''
    const labelled = (labels: unknown, parents = [commit]) => {
      const file = make.blob(typeof labels === 'string' ? labels : JSON.stringify(labels))
      const folder = make.tree(['100644', 'labels.json', file.oid])
      const tree = make.tree(['40000', '.csb', folder.oid], ['100644', 'a', a])
      const next = make.commit(tree.oid, parents)
      return { objects: [file, folder, tree, next], tip: next.oid }
    }
    const bare = make.tree(['100644', 'a', a])
    const without = make.commit(bare.oid, [commit])
    await refuses(store, home, make.pack([bare, without].map(make.whole)), without.oid, 'DENIED')
    for (const labels of [
      { a: 'public:owner' },
      { a: 'private:owner' },
      { a: 'private:owner:health', b: 'public:owner' },
    ]) {
      const { objects, tip } = labelled(labels)
      await refuses(store, home, make.pack(objects.map(make.whole)), tip, 'DENIED')
      const back = labelled({ a: 'private:owner:health' }, [tip])
      await refuses(store, home, make.pack([...objects, ...back.objects].map(make.whole)), back.tip, 'DENIED')
    }
    const unread = labelled('no json')
    await refuses(store, home, make.pack(unread.objects.map(make.whole)), unread.tip, 'INVALID_INPUT')
    const higher = labelled({ a: 'sealed:owner:health' })
    await push(store, home, make.pack(higher.objects.map(make.whole)), higher.tip)
    const { tip, objects } = labelled({ a: 'public:owner' }, [])
    await refuses(store, home, make.pack(objects.map(make.whole)), tip, 'DENIED')
  })

  test('other files in the folder that is the node’s own', async () => {
    const { store, home } = await openHome()
    const blob = make.blob('x')
    const folder = make.tree(['100644', 'hook', blob.oid])
    const tree = make.tree(['40000', '.csb', folder.oid])
    const commit = make.commit(tree.oid)
    await refuses(store, home, make.pack([blob, folder, tree, commit].map(make.whole)), commit.oid, 'INVALID_INPUT')
  })

  test('L3.4 partial: what was forgotten, by its bytes or its path', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 's', bytes: text('secret') }] }))
    await store.transact((tx) => eraseVersions(tx, home.id, 's'))
    for (const [path, content] of [
      ['other', 'secret'],
      ['s', 'something else'],
    ] as const) {
      const blob = make.blob(content)
      const tree = make.tree(['100644', path, blob.oid])
      const commit = make.commit(tree.oid)
      await refuses(store, home, make.pack([blob, tree, commit].map(make.whole)), commit.oid, 'FORGOTTEN')
    }
  })

  test('each path that is written or taken away is asked for, and no other', async () => {
    const { store, home } = await openHome()
    const blobs = ['1', '2', '3'].map((content) => make.blob(content))
    const [one = '', two = '', three = ''] = blobs.map(({ oid }) => oid)
    const d = make.tree(['100644', 'gone', one], ['100644', 'kept', two])
    const first = make.tree(['100644', 'a', one], ['40000', 'd', d.oid])
    const commit = make.commit(first.oid)
    await push(store, home, make.pack([...blobs, d, first, commit].map(make.whole)), commit.oid)
    const d2 = make.tree(['100644', 'kept', two], ['100644', 'new', three])
    const second = make.tree(['100755', 'a', one], ['40000', 'd', d2.oid])
    const next = make.commit(second.oid, [commit.oid])
    const asked: string[] = []
    const pack = make.pack([...blobs, d2, second, next].map(make.whole))
    const deny = () => {
      throw new Error('not that path')
    }
    await expect(push(store, home, pack, next.oid, { onPath: deny })).rejects.toThrow('not that path')
    await push(store, home, pack, next.oid, { onPath: (path) => asked.push(path) })
    expect(asked.sort()).toEqual(['a', 'd/gone', 'd/new'])
  })

  test('an id alone opens nothing: what is named must come along or be in what the commits build on', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/hidden' }
    const hidden = await store.transact((tx) =>
      commitFiles(tx, { ...words, changes: [{ path: 'h', bytes: text('hidden') }] }),
    )
    const tree = make.tree(['100644', 'mine', hidden.changed[0]?.after ?? ''])
    const commit = make.commit(tree.oid)
    const pack = make.pack([tree, commit].map(make.whole))
    await refuses(store, home, pack, commit.oid, 'NOT_FOUND', { onlySeen: true })
    const onto = make.commit(tree.oid, [hidden.commit])
    await push(store, home, make.pack([tree, onto].map(make.whole)), onto.oid, { onlySeen: true, branch: 'runs/seen' })
    await push(store, home, pack, commit.oid)
  })
})
