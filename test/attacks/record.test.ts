/** Attacks 34, 36 and 38: a record that is changed, told in two versions, or guessed after it was erased. */
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NodeError, OWNER_PRIVATE, canonicalize, digestOf, isNodeError, utf8, type KeyPair } from '@csb/core'
import { key, prefix, scanFiles, type Store, type View } from '@csb/store'
import {
  addCheckpoint,
  addCheckpointBody,
  appendRecord,
  contradict,
  listContradictions,
  makeCheckpoint,
  payloadsThatMention,
  proveConsistency,
  readCheckpoint,
  readRecords,
  signedHead,
  verifyConsistency,
  verifyRecord,
  type RecordEntry,
} from '@csb/authority'
import { NOW, node, otherNode, stranger, testStore } from '../../packages/authority/test/cast.ts'
import { createHouse, type House } from '../../packages/service/test/house.ts'

const entry = (effect: Record<string, unknown>): RecordEntry => ({
  operation: 'memory.create',
  outcome: 'done',
  actor: node.did,
  door: 'http',
  run: 'run_1',
  lease: null,
  reads: [{ home: 'home_a', path: 'notes/a.md', oid: 'a'.repeat(64), label: OWNER_PRIVATE }],
  effect,
})

async function recorded(count: number, word = 'one', store?: Store): Promise<Store> {
  const log = store ?? (await testStore())
  for (let i = 0; i < count; i++) await log.transact((tx) => appendRecord(tx, entry({ word, i }), NOW + i))
  return log
}

describe('attack 34: an entry is changed', () => {
  /** The view of somebody whose disk says something else in one place. */
  function turned(view: View, at: string, value: Uint8Array | undefined): View {
    const get = (fullKey: string) => (fullKey === at ? value : view.get(fullKey))
    const shown = (rows: readonly (readonly [string, Uint8Array])[]) =>
      rows.flatMap(([fullKey, bytes]) => {
        const told = fullKey === at ? value : bytes
        return told === undefined ? [] : [[fullKey, told] as const]
      })
    return {
      ...view,
      get,
      has: (fullKey) => get(fullKey) !== undefined,
      missing: async (keys) => keys.filter((fullKey) => get(fullKey) === undefined),
      getJson: <T>(fullKey: string) => {
        if (fullKey !== at) return view.getJson<T>(fullKey)
        try {
          return value === undefined ? undefined : (JSON.parse(Buffer.from(value).toString()) as T)
        } catch (error) {
          throw new NodeError('OBJECT_DAMAGED', { key: at }, error)
        }
      },
      range: async function* (options) {
        for await (const row of view.range(options)) yield* shown([row])
      },
      pages: async function* (options) {
        for await (const rows of view.pages(options)) yield shown(rows)
      },
    }
  }

  async function verdictOn(view: View): Promise<{ code: string; seq: unknown }> {
    try {
      await verifyRecord(view)
      return { code: 'ok', seq: undefined }
    } catch (error) {
      if (!isNodeError(error)) throw error
      return { code: error.code, seq: error.details['seq'] }
    }
  }

  test('attack 34: any byte of any header, node, payload or of the head is found, and a number named', async () => {
    const store = await recorded(5)
    const view = store.view()
    expect(await verdictOn(turned(view, 'nothing', undefined))).toEqual({ code: 'ok', seq: undefined })
    const rows: (readonly [string, Uint8Array, number | undefined])[] = []
    for (const table of ['header', 'payload'] as const) {
      for await (const [fullKey, bytes] of view.range({ prefix: prefix(table) }))
        rows.push([fullKey, bytes, rows.length % 5])
    }
    expect(rows).toHaveLength(5 + 5)
    rows.push([key('meta', 'record'), view.get(key('meta', 'record')) ?? new Uint8Array(), undefined])
    let changed = 0
    for (const [at, bytes, seq] of rows) {
      for (let byte = 0; byte < bytes.byteLength; byte++) {
        const spoiled = Uint8Array.from(bytes)
        spoiled[byte] = (spoiled[byte] ?? 0) ^ 1
        const found = await verdictOn(turned(view, at, spoiled))
        changed++
        expect(found, `${at} byte ${byte}`).toEqual({ code: 'RECORD_DAMAGED', seq: seq ?? expect.any(Number) })
      }
      // taken out altogether: only a payload may be, and that is told as erased
      const gone = await verdictOn(turned(view, at, undefined))
      expect(gone.code, `${at} gone`).toBe(at.startsWith(prefix('payload')) ? 'ok' : 'RECORD_DAMAGED')
    }
    expect(changed).toBeGreaterThan(1000)
  })
})

describe('attack 36: two histories', () => {
  const headOf = (store: Store) => store.transact((tx) => makeCheckpoint(tx, node, NOW))
  async function showTo(witness: Store, log: Store, old: number, by: KeyPair) {
    const { size = 0, note = '' } = (await headOf(log)) ?? {}
    const { proof } = proveConsistency(log.view(), old, size)
    const body = addCheckpointBody({ old, proof, checkpoint: note })
    return witness.transact((tx) => addCheckpoint(tx, { body, from: node.did, now: NOW }, by))
  }

  test('attack 36: shown to two peers, each cosigns what it saw, and the two notes alone convict the log anywhere', async () => {
    const [one, other] = [await recorded(6), await recorded(6, 'two')]
    const [left, right] = [await testStore(), await testStore()]
    expect((await showTo(left, one, 0, otherNode)).answer.status).toBe(200)
    expect((await showTo(right, other, 0, stranger)).answer.status).toBe(200)
    const evidence = [(await headOf(one))?.note ?? '', (await headOf(other))?.note ?? ''] as const
    // no store, no network: the notes are all there is
    const [a, b] = evidence.map((note) => readCheckpoint(note))
    expect(a?.log).toEqual(b?.log)
    expect(a).toMatchObject({ log: { did: node.did }, size: 6 })
    expect(contradict(...evidence)).toBe(true)
    expect(contradict(evidence[0], evidence[0])).toBe(false)
    // and nobody can make such evidence up against an honest log
    const forged = evidence[1].replace(b?.root === undefined ? '' : base64Of(b.root), base64Of('ab'.repeat(32)))
    expect(forged).not.toBe(evidence[1])
    expect(() => contradict(evidence[0], forged)).toThrow(expect.objectContaining({ code: 'GRANT_INVALID' }))
  })

  test('attack 36: a peer that saw the one is given no proof for the other, and keeps both', async () => {
    const one = await recorded(4)
    const other = await recorded(9, 'two')
    const witness = await testStore()
    await showTo(witness, one, 0, otherNode)
    const { answer } = await showTo(witness, other, 4, otherNode)
    expect(answer.status).toBe(422)
    const { proof } = proveConsistency(other.view(), 4, 9)
    const honest = { from: 4, to: 9, fromRoot: rootOf(one, 4), toRoot: rootOf(other, 9), proof }
    expect(verifyConsistency(honest)).toBe(false)
    expect(await listContradictions(witness.view())).toMatchObject([{ kind: 'no-proof' }])
    // asked for the size that the witness knows, it convicts itself
    const own = addCheckpointBody({ old: 4, proof: [], checkpoint: signedHead(other.view(), node, 4) })
    const told = await witness.transact((tx) => addCheckpoint(tx, { body: own, from: node.did, now: NOW }, otherNode))
    expect(contradict(told.found?.first ?? '', told.found?.second ?? '')).toBe(true)
  })

  const base64Of = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
  const rootOf = (store: Store, size: number) => proveConsistency(store.view(), size, size).toRoot
})

describe('attack 38: what was erased is guessed, or lies about', () => {
  const MARKER = '会议 1234, at the old lighthouse'

  async function forgotten() {
    const house = await createHouse()
    const { id } = await house.owned<{ id: string }>('memory.create', {
      entry: { content: MARKER, level: 'warm', type: 'lesson' },
    })
    await house.owned('memory.delete', { id })
    return { house, id }
  }
  const headersOf = async ({ store }: House) => readRecords(store.view(), { limit: 100 })

  test('attack 38: who knows the very words of a payload can not tell from its header that it held them', async () => {
    const { house, id } = await forgotten()
    const items = await headersOf(house)
    const read = items.flatMap(({ payload }) => payload?.reads ?? [])
    expect(read.map(({ path }) => path)).toEqual([expect.stringContaining(id)])
    for (const { header, payload, leaf } of items) {
      // no path, no id, no object id: nothing that could be looked up
      const told = canonicalize(header)
      for (const word of [id, MARKER, ...read.map(({ path }) => path), ...oidsIn(payload)])
        expect(told, header.operation).not.toContain(word)
      // the exact payload, with every salt that a header gives away
      for (const salt of [
        '',
        '\0'.repeat(32),
        String(header.seq),
        String(header.ts),
        header.prev ?? '',
        leaf,
        header.run ?? '',
      ])
        for (const guess of [canonicalize(payload), canonicalize(payload?.effect ?? null), id, MARKER])
          expect(digestOf(Buffer.concat([utf8(salt), utf8(guess)]))).not.toBe(header.payload)
    }
    const commitments = new Set(items.map(({ header }) => header.payload))
    expect(commitments.size).toBe(items.length)
  })

  test('attack 38: after forgetting, no file of the node holds the words, and the record still verifies', async () => {
    const { house, id } = await forgotten()
    const folder = dirname(house.store.directory)
    const before = await headersOf(house)
    const words = [utf8(MARKER)]
    const rows = await payloadsThatMention(house.store.view(), [id])
    expect(rows.length).toBeGreaterThanOrEqual(2)
    const gone = rows.map(({ bytes }) => Uint8Array.from(bytes))
    const { report } = await house.forget([id])
    expect(report).toMatchObject([{ id, records: expect.any(Number), remains: [] }])
    expect(await scanFiles(folder, words)).toEqual([])
    // what the entries told of it is gone as well: their numbers and commitments stay
    expect(await payloadsThatMention(house.store.view(), [id])).toEqual([])
    const after = await headersOf(house)
    expect(after.slice(0, before.length).map(({ header }) => header)).toEqual(before.map(({ header }) => header))
    expect(JSON.stringify(after)).not.toContain(id)
    expect(await verifyRecord(house.store.view())).toMatchObject({ ok: true, erased: report[0]?.records })
    const again = await house.reopen()
    await again.store.close()
    expect(await scanFiles(folder, [...words, ...gone])).toEqual([])
  })

  const oidsIn = (value: unknown): string[] => [...(JSON.stringify(value) ?? '').matchAll(/[0-9a-f]{64}/g)].map(String)
})
