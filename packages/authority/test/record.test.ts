import { describe, expect, test } from 'vitest'
import { OWNER_PRIVATE, toHex, utf8, type Label } from '@csb/core'
import { eraseKeys, key, type ReadEntry, type Store } from '@csb/store'
import {
  appendRecord,
  effectiveNow,
  explainCommit,
  grantHash,
  payloadsThatMention,
  proveConsistency,
  proveInclusion,
  readRecords,
  recordSize,
  revoke,
  signRevocation,
  storeGrant,
  trust,
  verifyConsistency,
  verifyInclusion,
  verifyRecord,
  type RecordEntry,
  type RecordHeader,
} from '@csb/authority'
import { completedBy, leafHash } from '../src/merkle.ts'
import { headerBytes, headerRow } from '../src/record-row.ts'
import { nodesOf } from '../src/record.ts'
import {
  HOME,
  NOW,
  agent,
  childGrant,
  helper,
  owner,
  ownerGrant,
  reopened,
  testStore,
  thrownBy,
  wideLease,
} from './cast.ts'

const health: Label = { level: 'private', integrity: 'agent', tags: ['health'] }
const read = (path: string, label: Label = OWNER_PRIVATE): ReadEntry => ({
  home: HOME,
  path,
  oid: 'a'.repeat(64),
  label,
})
const entry = (extra: Partial<RecordEntry> = {}): RecordEntry => ({
  operation: 'memory.create',
  outcome: 'done',
  actor: agent.did,
  door: 'http',
  run: 'run_1',
  lease: null,
  reads: [],
  effect: { note: 'mem_1' },
  ...extra,
})
const append = (store: Store, extra?: Partial<RecordEntry>, now = NOW) =>
  store.transact((tx) => appendRecord(tx, entry(extra), now))

async function recorded(count: number): Promise<Store> {
  const store = await testStore()
  await Promise.all(Array.from({ length: count }, (_, i) => append(store, { effect: { i } }, NOW + i)))
  return store
}
const put = (store: Store, at: string, value: Uint8Array | null) =>
  store.transact((tx) => (value === null ? tx.del(at) : tx.put(at, value)))
const damage = (store: Store) => verifyRecord(store.view()).catch((error: unknown) => error)

describe('the record', () => {
  test('L1.6 verifies, with one number, one link and one root for every entry', async () => {
    const store = await recorded(21)
    const report = await verifyRecord(store.view())
    expect(report).toMatchObject({ ok: true, size: 21, erased: 0 })
    expect(recordSize(store.view())).toBe(21)
    const items = await readRecords(store.view(), { limit: 100 })
    expect(items.map(({ header }) => header.seq)).toEqual(Array.from({ length: 21 }, (_, i) => i))
    items.forEach(({ header }, i) => expect(header.prev).toBe(items[i - 1]?.leaf ?? null))
    expect(await verifyRecord((await reopened(store)).view())).toEqual(report)
  })

  test('L1.6 an empty one verifies too', async () => {
    expect(await verifyRecord((await testStore()).view())).toMatchObject({ ok: true, size: 0 })
  })

  test('L1.6 attack 34: a record changed by one byte is found, wherever it is, and its number named', async () => {
    const store = await recorded(9)
    for (let seq = 0; seq < 9; seq++) {
      for (const table of ['header', 'payload'] as const) {
        const at = key(table, seq)
        const good = store.view().get(at) ?? new Uint8Array()
        for (let byte = 0; byte < good.byteLength; byte += 37) {
          const spoiled = Uint8Array.from(good)
          spoiled[byte] = (spoiled[byte] ?? 0) ^ 1
          await put(store, at, spoiled)
          expect(await damage(store), `${table} ${seq} byte ${byte}`).toMatchObject({
            code: 'RECORD_DAMAGED',
            details: { seq },
          })
        }
        await put(store, at, good)
      }
    }
    expect(await damage(store)).toMatchObject({ ok: true })
  })

  test('L1.6 a node or the head changed is found', async () => {
    const store = await recorded(8)
    const head = key('meta', 'record')
    for (const [at, level] of [[key('header', 3), 0], [key('header', 7), 3], [head]] as const) {
      const good = store.view().get(at) ?? new Uint8Array()
      const bad =
        level === undefined ? utf8('{"size":8,"ts":0}') : Uint8Array.from(good).fill(0, level * 32, level * 32 + 32)
      await put(store, at, bad)
      expect(await damage(store), at).toMatchObject({ code: 'RECORD_DAMAGED' })
      await put(store, at, good)
    }
    expect(await damage(store)).toMatchObject({ ok: true })
  })

  test('L1.6 attack 34: an entry removed, at the end, in the middle, or put in, is found', async () => {
    for (const seq of [8, 4, 0]) {
      const store = await recorded(9)
      await put(store, key('header', seq), null)
      expect(await damage(store), `removed ${seq}`).toMatchObject({ code: 'RECORD_DAMAGED', details: { seq } })
    }
    const store = await recorded(3)
    await put(store, key('header', 3), store.view().get(key('header', 2)) ?? null)
    expect(await damage(store)).toMatchObject({ code: 'RECORD_DAMAGED', details: { seq: 3 } })
  })

  test('L1.6 attack 34: two entries in the other order are found', async () => {
    const store = await recorded(4)
    const [one, two] = [store.view().get(key('header', 1)) ?? null, store.view().get(key('header', 2)) ?? null]
    await put(store, key('header', 1), two)
    await put(store, key('header', 2), one)
    expect(await damage(store)).toMatchObject({ code: 'RECORD_DAMAGED', details: { seq: 1 } })
  })

  describe('rewritten with a tree that fits', () => {
    /** What somebody with the disk in hand can do: new headers, all nodes and the head computed again. */
    async function rewrite(change: (headers: RecordHeader[]) => void): Promise<unknown> {
      const store = await recorded(6)
      const headers = (await readRecords(store.view(), { limit: 9 })).map(({ header }) => ({ ...header }))
      change(headers)
      await store.transact((tx) => {
        let leaf: string | null = null
        headers.forEach((header, seq) => {
          const bytes = headerBytes({ ...header, seq, prev: leaf })
          const nodes = completedBy(seq, leafHash(bytes), nodesOf(tx))
          leaf = toHex(leafHash(bytes))
          tx.put(
            key('header', seq),
            headerRow(
              nodes.map(({ hash }) => hash),
              bytes,
            ),
          )
        })
        tx.putJson(key('meta', 'record'), { size: headers.length, ts: headers.at(-1)?.ts })
      })
      return damage(store)
    }
    const found = (seq: number, reason: string) => ({ code: 'RECORD_DAMAGED', details: { seq, reason } })
    const set = (at: number, change: Partial<RecordHeader>) => (headers: RecordHeader[]) => {
      headers.splice(at, 1, ...headers.slice(at, at + 1).map((header) => ({ ...header, ...change })))
    }

    test('L1.6 an entry is hashed with the one before it: one changed changes the leaf of every later one', async () => {
      expect(await rewrite(() => undefined)).toMatchObject({ ok: true, size: 6 })
      const store = await recorded(6)
      const { root } = await verifyRecord(store.view())
      const items = await readRecords(store.view(), { limit: 9 })
      const changed = items.map(({ header }, seq) => (seq === 2 ? { ...header, actor: helper.did } : header))
      let prev: string | null = null
      const leaves = changed.map((header) => (prev = toHex(leafHash(headerBytes({ ...header, prev })))))
      expect(leaves.map((leaf, seq) => leaf === items[seq]?.leaf)).toEqual([true, true, false, false, false, false])
      expect(await rewrite(set(2, { actor: helper.did }))).not.toMatchObject({ root })
      // the payloads stay where they are: one entry fewer, and they are those of others
      expect(await rewrite((headers) => headers.splice(2, 1))).toMatchObject(found(2, 'payload'))
    })

    test('L1.6 with everything computed again times and payloads still tell', async () => {
      expect(await rewrite(set(2, { ts: NOW - 1 }))).toMatchObject(found(2, 'time'))
      expect(await rewrite(set(2, { payload: `sha256:${'0'.repeat(64)}` }))).toMatchObject(found(2, 'payload'))
    })

    test('L1.6 an entry behind the head is found', async () => {
      const store = await recorded(4)
      const old = store.view().get(key('meta', 'record')) ?? null
      await append(store)
      await put(store, key('meta', 'record'), old)
      expect(await damage(store)).toMatchObject(found(4, 'behind the head'))
    })

    test('L1.6 rewritten as a whole it is another record: an old root does not fit it', async () => {
      const store = await recorded(6)
      const { root } = await verifyRecord(store.view())
      const forged = await rewrite(set(2, { actor: helper.did }))
      expect(forged).toMatchObject({ ok: true, size: 6 })
      expect(forged).not.toMatchObject({ root })
    })
  })

  test('an act whose transaction fails leaves no entry, and the next one takes its number', async () => {
    const store = await recorded(2)
    const failing = store.transact((tx) => {
      appendRecord(tx, entry(), NOW)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect((await append(store)).seq).toBe(2)
    expect(await damage(store)).toMatchObject({ ok: true, size: 3 })
  })

  test('several entries in one transaction follow each other', async () => {
    const store = await testStore()
    const seqs = await store.transact((tx) => [0, 1, 2, 3, 4].map(() => appendRecord(tx, entry(), NOW).seq))
    expect(seqs).toEqual([0, 1, 2, 3, 4])
    expect(await damage(store)).toMatchObject({ ok: true, size: 5 })
  })

  test('L1.1 a refusal is an entry with its code', async () => {
    const store = await testStore()
    await append(store, { outcome: 'refused', code: 'LEASE_REQUIRED', actor: 'http:nobody', run: null })
    const [item] = await readRecords(store.view(), { limit: 1 })
    expect(item?.header).toMatchObject({ outcome: 'refused', code: 'LEASE_REQUIRED', actor: 'http:nobody', run: null })
  })

  test('L1.5 what was read stands in the entry, and its labels joined', async () => {
    const store = await testStore()
    const reads = [read('notes/a.md'), read('notes/b.md', health)]
    await append(store, { reads })
    const [item] = await readRecords(store.view(), { limit: 1 })
    expect(item?.header).toMatchObject({ reads: 2, label: 'private:agent:health' })
    expect(item?.payload?.reads).toEqual(reads)
  })

  test('time in it never goes back, and authority is judged by it', async () => {
    const store = await testStore()
    await append(store, {}, NOW + 1000)
    await append(store, {}, NOW)
    const items = await readRecords(store.view(), { limit: 2 })
    expect(items.map(({ header }) => header.ts)).toEqual([NOW + 1000, NOW + 1000])
    expect(effectiveNow(store.view(), NOW)).toBe(NOW + 1000)
    expect(effectiveNow(store.view(), NOW + 2000)).toBe(NOW + 2000)
  })

  test('is read from both ends and by run', async () => {
    const store = await recorded(12)
    await append(store, { run: 'run_2' })
    const seqs = async (options: Parameters<typeof readRecords>[1]) =>
      (await readRecords(store.view(), options)).map(({ header }) => header.seq)
    expect(await seqs({ limit: 3 })).toEqual([0, 1, 2])
    expect(await seqs({ limit: 3, after: 9 })).toEqual([10, 11, 12])
    expect(await seqs({ limit: 2, reverse: true })).toEqual([12, 11])
    expect(await seqs({ limit: 2, reverse: true, after: 5 })).toEqual([4, 3])
    expect(await seqs({ limit: 9, run: 'run_2' })).toEqual([12])
    expect(await seqs({ limit: 2, run: 'run_1', after: 1 })).toEqual([2, 3])
  })
})

describe('what can be erased', () => {
  test('L3.4 the payload goes and the record still verifies; the header tells nothing of it', async () => {
    const store = await testStore()
    await append(store, {
      reads: [read('notes/secret-diagnosis.md')],
      effect: { oid: 'cafe'.repeat(16) },
      commit: 'c'.repeat(64),
    })
    await append(store)
    const header = Buffer.from(store.view().get(key('header', 0)) ?? []).toString('latin1')
    expect(header).toContain('memory.create')
    for (const word of ['secret-diagnosis', 'cafecafe', 'cccccccc', 'aaaaaaaa']) expect(header).not.toContain(word)

    const found = await payloadsThatMention(store.view(), ['secret-diagnosis'])
    expect(found.map((payload) => payload.key)).toEqual([key('payload', 0)])
    const marker = utf8('secret-diagnosis')
    const report = await eraseKeys(
      store,
      found.map((payload) => payload.key),
      [marker],
    )
    expect(report).toEqual({ keys: 1, remains: [] })
    expect(await verifyRecord(store.view())).toMatchObject({ ok: true, size: 2, erased: 1 })
    expect((await readRecords(store.view(), { limit: 1 }))[0]?.payload).toBeNull()
  })

  test('attack 38: equal payloads have unequal commitments: none can be guessed from a header', async () => {
    const store = await testStore()
    await append(store)
    await append(store)
    const items = await readRecords(store.view(), { limit: 2 })
    expect(items[0]?.header.payload).not.toBe(items[1]?.header.payload)
    expect(items[0]?.payload).toEqual(items[1]?.payload)
    expect(items[0]?.payload).not.toHaveProperty('salt')
  })
})

describe('proofs', () => {
  test('L1.6 an entry is proved to stand in the record, now and as it was', async () => {
    const store = await recorded(13)
    const { root } = await verifyRecord(store.view())
    for (let seq = 0; seq < 13; seq++) {
      const proof = proveInclusion(store.view(), seq)
      expect(proof).toMatchObject({ root, size: 13 })
      expect(verifyInclusion(proof)).toBe(true)
      expect(verifyInclusion({ ...proof, leaf: 'ab'.repeat(32) })).toBe(false)
      expect(verifyInclusion({ ...proof, seq: seq + 1 })).toBe(false)
    }
    expect(verifyInclusion(proveInclusion(store.view(), 3, 5))).toBe(true)
    expect(thrownBy(() => proveInclusion(store.view(), 13))).toMatchObject({ code: 'NOT_FOUND' })
    expect(thrownBy(() => proveInclusion(store.view(), 1, 14))).toMatchObject({ code: 'INVALID_INPUT' })
    expect(verifyInclusion({ ...proveInclusion(store.view(), 3), root: 'short' })).toBe(false)
  })

  test('L1.6 the record only grew: the old root is the beginning of the new one', async () => {
    const store = await recorded(7)
    const { root } = await verifyRecord(store.view())
    for (let i = 0; i < 6; i++) await append(store)
    const proof = proveConsistency(store.view(), 7)
    expect(proof).toMatchObject({ from: 7, to: 13, fromRoot: root })
    expect(verifyConsistency(proof)).toBe(true)
    expect(verifyConsistency({ ...proof, fromRoot: 'ab'.repeat(32) })).toBe(false)
    expect(thrownBy(() => proveConsistency(store.view(), 14))).toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('explain', () => {
  const commit = '1234abcd'.padEnd(64, '0')

  test('L1.5 from a commit to its run, its chain of grants with names, what was read, and a proof', async () => {
    const store = await testStore()
    const root = ownerGrant({ lease: wideLease() })
    const child = childGrant(root, { lease: wideLease({ actions: ['read'] }) })
    await store.transact((tx) => {
      trust(tx, { did: owner.did, name: 'Mum', ceiling: 'execute' })
      storeGrant(tx, { chain: [root, child] })
    })
    await append(store)
    await append(store, { commit, actor: helper.did, lease: grantHash(child), reads: [read('notes/a.md')] })
    await append(store)

    const explanation = await explainCommit(store.view(), commit.slice(0, 8))
    expect(explanation).toMatchObject({
      commit,
      seq: 1,
      run: 'run_1',
      actor: { did: helper.did, name: 'helper' },
      reads: [{ path: 'notes/a.md' }],
      lease: {
        hash: grantHash(child),
        chain: [
          { from: { name: 'Mum', did: owner.did }, to: { name: '若兰 🌸' }, level: 'execute', revoked: false },
          { from: { did: agent.did }, to: { name: 'helper', did: helper.did }, hash: grantHash(child), revoked: false },
        ],
      },
    })
    const { inclusion } = explanation
    expect(inclusion !== null && verifyInclusion(inclusion)).toBe(true)
    expect(inclusion?.root).toBe((await verifyRecord(store.view())).root)

    await store.transact((tx) => revoke(tx, signRevocation({ target: grantHash(root), now: NOW }, owner), NOW))
    expect((await explainCommit(store.view(), commit)).lease?.chain.map(({ revoked }) => revoked)).toEqual([true, true])
  })

  test('L1.5 the entry that made a commit stays its entry', async () => {
    const store = await testStore()
    await append(store, { commit })
    await append(store, { commit })
    expect((await explainCommit(store.view(), commit)).seq).toBe(0)
  })

  test('a beginning that fits none, several, or is too short is told apart', async () => {
    const store = await testStore()
    await append(store, { commit })
    await append(store, { commit: '1234ffff'.padEnd(64, '0') })
    await expect(explainCommit(store.view(), 'ffff')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(explainCommit(store.view(), '123')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(explainCommit(store.view(), '1234/')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(explainCommit(store.view(), '1234')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      details: { matches: [expect.any(String), expect.any(String)] },
    })
  })

  test('L3.4 of an erased entry it still tells who and by what right', async () => {
    const store = await testStore()
    await append(store, { commit, lease: grantHash(ownerGrant()), reads: [read('notes/a.md')] })
    await put(store, key('payload', 0), null)
    expect(await explainCommit(store.view(), commit)).toMatchObject({ reads: null, effect: null, lease: { chain: [] } })
  })
})
