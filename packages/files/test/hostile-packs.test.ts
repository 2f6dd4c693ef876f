import { deflateSync, inflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { LIMITS } from '@csb/core'
import { deltaOf } from './deltas.ts'
import { openHome, snapshot, text } from './open-home.ts'
import { make, push, refuses, simple } from './packs.ts'

/** Some bits of a deflated stream mean nothing: with others in their place it says the same. */
function isSameStream(entry: Uint8Array, at: number, byte: number): boolean {
  const start = entry.indexOf(0x78)
  const inflated = (bytes: Uint8Array) => inflateSync(bytes.subarray(start)).toString('hex')
  try {
    return at >= start && inflated(entry) === inflated(entry.with(at, byte))
  } catch {
    return false
  }
}

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
              i === which && at < entry.byteLength && entry[at] !== byte && !isSameStream(entry, at, byte)
                ? Buffer.from(entry.with(at, byte))
                : entry,
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
}) // within the deflated stream: before it and at its end there are bits that say nothing
