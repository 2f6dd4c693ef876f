/** What a witness finds out about a record, shown with real processes on real folders. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { digestOf, toHex, until } from '@csb/core'
import { contradict, readRecords, verifyProof, type RecordHeader } from '@csb/authority'
import { key, openStore, prefix, type Store } from '@csb/store'
import { createCluster, type Cluster, type Member } from '../../apps/harness/src/cluster.ts'
import { completedBy, leafHash } from '../../packages/authority/src/merkle.ts'
import { headerBytes, headerRow } from '../../packages/authority/src/record-row.ts'
import { nodesOf } from '../../packages/authority/src/record.ts'

type State = {
  log: number
  size: number
  latest: { size: number; root: string; note: string } | null
  settled: { size: number; root: string; cosigners: { did: string }[]; note: string } | null
  held: { reason: string; checkpoint: string; witness: string } | null
}
type Witnessed = {
  logs: { did: string; number: number; size: number; note: string; shorter: { size: number } | null }[]
  contradictions: { kind: string; origin: string; first: string; second: string }[]
}

const WAIT_MS = 30_000

let cluster: Cluster
afterEach(() => cluster.close())

const state = (member: Member) => member.client.call<State>('GET', '/v1/record/checkpoint')
const witnessed = (member: Member) => member.client.call<Witnessed>('GET', '/v1/record/witnessed')
const write = async (member: Member, content: string) =>
  (await member.client.call<{ id: string }>('POST', '/v1/memory', { content, type: 'discovery', level: 'hot' })).id

/** Two nodes of one owner: the second knows the first, and stands witness for it as the first does for the second. */
async function pair(): Promise<readonly [Member, Member]> {
  cluster = await createCluster()
  for (const name of ['one', 'two']) {
    await mkdir(join(cluster.directory, name))
    await writeFile(join(cluster.directory, name, 'config.json'), '{"witness":{"interval_ms":300}}')
  }
  const one = await cluster.add({ name: 'one' })
  const two = await cluster.add({ name: 'two', join: one })
  for (const [member, other] of [
    [one, two],
    [two, one],
  ] as const) {
    await member.client.call('POST', '/v1/trust', { did: other.did, name: other.name, ceiling: 'request' })
  }
  return [one, two]
}

const settledAt = (member: Member, size: number) =>
  until(async () => ((await state(member)).settled?.size ?? 0) >= size && state(member), WAIT_MS, 'it is settled', 100)

const heldState = (member: Member) =>
  until(async () => (await state(member)).held ?? undefined, WAIT_MS, 'the record is held', 100)

/** As an owner would who knows the database: on the folder of a stopped node. */
async function tamper(member: Member, work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(join(member.directory, 'db'))
  try {
    await work(store)
  } finally {
    await store.close()
  }
}

/** Change who acted in an entry and compute everything after it anew, so that the record verifies. */
async function rewrite(store: Store, from: number): Promise<void> {
  const headers = (await readRecords(store.view(), { limit: 1000 })).map(({ header }) => header)
  await store.transact((tx) => {
    let prev: string | null = null
    for (const before of headers) {
      const header: RecordHeader = { ...before, prev, ...(before.seq === from ? { actor: 'nobody' } : {}) }
      const bytes = headerBytes(header)
      const nodes = completedBy(header.seq, leafHash(bytes), nodesOf(tx))
      tx.put(
        key('header', header.seq),
        headerRow(
          nodes.map(({ hash }) => hash),
          bytes,
        ),
      )
      prev = toHex(leafHash(bytes))
    }
    const last = headers.at(-1)
    tx.putJson(key('meta', 'record'), { size: headers.length, ts: last?.ts ?? 0 })
    // the checkpoints that were made stand in the way of a clean story
    tx.del(key('meta', 'checkpoint'))
    tx.del(key('meta', 'checkpoint-settled'))
  })
}

/** Take out what came after the first `size` entries. */
async function truncate(store: Store, size: number): Promise<void> {
  const [last] = await readRecords(store.view(), { after: size - 2, limit: 1 })
  const gone: string[] = []
  for (const table of ['header', 'payload'] as const) {
    for await (const [fullKey] of store.view().range({ prefix: prefix(table), after: key(table, size - 1) }))
      gone.push(fullKey)
  }
  await store.transact((tx) => {
    for (const fullKey of gone) tx.del(fullKey)
    tx.putJson(key('meta', 'record'), { size, ts: last?.header.ts })
    tx.del(key('meta', 'checkpoint'))
    tx.del(key('meta', 'checkpoint-settled'))
  })
}

describe('witnesses over real processes', () => {
  test('L1.6 a checkpoint of a growing record is cosigned by a peer, and a proof of it holds without any node', async () => {
    const [one, two] = await pair()
    await write(one, 'something that others vouch for')
    const { size } = await state(one)
    const { settled } = await settledAt(one, size)
    expect(settled?.cosigners).toMatchObject([{ did: two.did }])
    const { file } = await one.client.call<{ file: string }>('GET', `/v1/record/prove/${size - 1}`)
    const proved = verifyProof(file)
    expect(proved).toMatchObject({
      header: { seq: size - 1, operation: 'memory.create' },
      checkpoint: { log: { did: one.did } },
    })
    expect(proved.checkpoint.cosignatures).toMatchObject([{ did: two.did }])
    await one.client.call('GET', '/v1/record/verify')
    expect((await witnessed(two)).contradictions).toEqual([])
    // vouching for another does not make a record grow: both come to rest
    const before = [(await state(one)).size, (await state(two)).size]
    await settledAt(two, before[1] ?? 0)
    expect([(await state(one)).size, (await state(two)).size]).toEqual(before)
  })

  test('L1.6 attack 36: a record that its owner rewrote is found by the witness, who keeps two signatures that contradict', async () => {
    const [one, two] = await pair()
    for (const word of ['a', 'b', 'c']) await write(one, `note ${word}`)
    const { settled } = await settledAt(one, (await state(one)).size)
    const size = settled?.size ?? 0
    await one.stop()
    await tamper(one, (store) => rewrite(store, 2))
    await one.start()
    expect(await one.client.call('GET', '/v1/record/verify')).toMatchObject({ ok: true, size })
    expect(await heldState(one)).toMatchObject({ reason: 'differs', witness: two.did })
    const { contradictions } = await until(
      async () => {
        const found = await witnessed(two)
        return found.contradictions.some(({ kind }) => kind === 'same-size') && found
      },
      WAIT_MS,
      'the witness has the evidence',
      100,
    )
    const evidence = contradictions.find(({ kind }) => kind === 'same-size')
    expect(evidence?.origin).toBe(`${one.did}/record`)
    expect(contradict(evidence?.first ?? '', evidence?.second ?? '')).toBe(true)
    await expect(write(one, 'more')).rejects.toMatchObject({ code: 'RECORD_HELD', details: { reason: 'differs' } })
    expect(await one.client.call<{ items: unknown[] }>('GET', '/v1/memory')).toMatchObject({ items: [{}, {}, {}] })
    const { items } = await two.client.call<{ items: { payload: { effect: object } }[] }>('GET', '/v1/record?limit=100')
    expect(items.map(({ payload }) => payload.effect)).toContainEqual(
      expect.objectContaining({ contradiction: expect.any(String), log: one.did }),
    )
  })

  test('L1.6 attack 35: a record whose end was cut off is held, and the witness remembers that it came shorter', async () => {
    const [one, two] = await pair()
    for (const word of ['a', 'b', 'c']) await write(one, `note ${word}`)
    const { settled } = await settledAt(one, (await state(one)).size)
    const size = settled?.size ?? 0
    await one.stop()
    await tamper(one, (store) => truncate(store, size - 2))
    await one.start()
    expect(await heldState(one)).toMatchObject({ reason: 'shorter', witness: two.did })
    expect((await witnessed(two)).logs).toMatchObject([{ did: one.did, size, shorter: { size: size - 2 } }])
    await expect(write(one, 'more')).rejects.toMatchObject({ code: 'RECORD_HELD' })
    // held for good, not for one run
    await one.stop()
    await one.start()
    await expect(write(one, 'more')).rejects.toMatchObject({ code: 'RECORD_HELD' })
  })

  test('L1.6 attack 35: a node restored from an old backup finds out, reads on, and writes again when its owner says so', async () => {
    const [one, two] = await pair()
    const kept = await write(one, 'before the backup')
    await settledAt(one, (await state(one)).size)
    await one.stop()
    const backup = join(cluster.directory, 'backup')
    await cp(join(one.directory, 'db'), backup, { recursive: true })
    await one.start()
    await write(one, 'after the backup')
    const { settled } = await settledAt(one, (await state(one)).size)
    await one.kill()
    await rm(join(one.directory, 'db'), { recursive: true })
    await cp(backup, join(one.directory, 'db'), { recursive: true })
    await one.start()
    expect(await heldState(one)).toMatchObject({ reason: 'shorter', witness: two.did })
    await expect(write(one, 'too early')).rejects.toMatchObject({ code: 'RECORD_HELD' })
    expect(await one.client.call('GET', `/v1/memory/${kept}`)).toMatchObject({ content: 'before the backup' })

    const resumed = await one.client.call<{ log: number; after: object }>('POST', '/v1/record/resume', {
      after_restore: true,
    })
    expect(resumed).toMatchObject({
      log: 1,
      after: { origin: `${one.did}/record`, size: settled?.size, root: settled?.root },
    })
    await write(one, 'in time')
    const { items } = await one.client.call<{
      items: { header: { operation: string }; payload: { effect: object } }[]
    }>('GET', '/v1/record?limit=100')
    expect(items.find(({ header }) => header.operation === 'record.resume')?.payload.effect).toMatchObject({
      log: 1,
      after: { size: settled?.size, root: settled?.root, witness: two.did },
    })
    const again = await settledAt(one, (await state(one)).size)
    expect(again).toMatchObject({ log: 1, held: null })
    expect((await witnessed(two)).logs).toMatchObject([{ number: 0, size: settled?.size }, { number: 1 }])
    expect(digestOf(again.settled?.note ?? '')).not.toBe(digestOf(settled?.note ?? ''))
  })
})
