/** Payload rows that belong to no entry: the check reads payloads beside the headers, and one that is skipped hides others. */
import { expect, test } from 'vitest'
import { key, prefix, type Store } from '@csb/store'
import { appendRecord, verifyRecord } from '@csb/authority'
import { NOW, agent, testStore } from './cast.ts'

const SIZE = 10
const start = prefix('payload')

async function recorded(): Promise<Store> {
  const store = await testStore()
  await store.transact((tx) => {
    for (let count = 0; count < SIZE; count++) {
      const said = { operation: 'files.write', outcome: 'done', actor: agent.did, door: 'http' } as const
      appendRecord(tx, { ...said, run: null, lease: null, reads: [], effect: { count } }, NOW + count)
    }
  })
  return store
}

const found = (seq: number, reason: string) => ({ code: 'RECORD_DAMAGED', details: { seq, reason } })

test('L1.6 a payload row in front of the first one hides no change behind it', async () => {
  const store = await recorded()
  const at = key('payload', 5)
  const bytes = Uint8Array.from(store.view().get(at) ?? [])
  bytes[40] = (bytes[40] ?? 0) ^ 1
  await store.transact((tx) => tx.put(at, bytes))
  await expect(verifyRecord(store.view())).rejects.toMatchObject(found(5, 'payload'))
  await store.transact((tx) => tx.put(`${start}!`, new Uint8Array([1])))
  await expect(verifyRecord(store.view())).rejects.toMatchObject(found(0, 'payload without a header'))
})

test.each([
  ['in front', '!', 0],
  ['in between', `${key('payload', 4).slice(start.length)}!`, 5],
  ['of an entry that is still to come', key('payload', SIZE).slice(start.length), SIZE],
  ['behind everything', '~', SIZE],
])('L1.6 a payload row %s is damage', async (_where, at, seq) => {
  const store = await recorded()
  expect(await verifyRecord(store.view())).toMatchObject({ ok: true, size: SIZE, erased: 0 })
  await store.transact((tx) => tx.put(`${start}${at}`, new Uint8Array([1])))
  await expect(verifyRecord(store.view())).rejects.toMatchObject(found(seq, 'payload without a header'))
})

test('L1.6 a payload row of an empty record is damage', async () => {
  const store = await testStore()
  await store.transact((tx) => tx.put(key('payload', 0), new Uint8Array([1])))
  await expect(verifyRecord(store.view())).rejects.toMatchObject(found(0, 'payload without a header'))
})
