import assert from 'node:assert/strict'
import { join } from 'node:path'
import { key, openStore } from '@csb/store'
import type { Acceptance } from './acceptance.ts'

export const L1: readonly Acceptance[] = [
  {
    clause: 'L1.1',
    title: 'a request without a lease is refused, and the refusal is in the record',
    run: async ({ node }) => {
      const before = Math.max(...(await node.record()).map(({ header }) => header.seq))
      const refused = await node.as(null).call<{ code?: string }>('POST', '/v1/memory', {
        entry: { type: 'event', level: 'hot', content: 'nobody said so' },
      })
      assert.equal(refused.status, 401)
      assert.equal(refused.body.code, 'LEASE_REQUIRED')
      const found = (await node.record()).find(({ header }) => header.seq > before && header.outcome === 'refused')
      assert.ok(found, 'no refusal is in the record')
      assert.equal(found.header.operation, 'memory.create')
      assert.equal(found.header.code, 'LEASE_REQUIRED')
      assert.equal(found.header.lease, null)
    },
  },
  {
    clause: 'L1.5',
    title: 'a commit leads to its run, its lease and its read list',
    run: async ({ node }) => {
      const note = await node.remember('something to be read before it is changed')
      const { commit } = await node.softDelete(note.id)
      const told = await node.explain(commit)
      assert.equal(told.commit, commit)
      assert.ok(told.run, 'no run')
      assert.match(told.lease?.hash ?? '', /[0-9a-f]{64}/)
      assert.ok((told.lease?.chain.length ?? 0) > 0, 'no chain of grants')
      assert.ok(
        told.reads?.some(({ path }) => path.endsWith(`${note.id}.md`)),
        'the note that was read is not in the list',
      )
    },
  },
  {
    clause: 'L1.6',
    title: 'the record verifies, and no longer after one entry was changed',
    needsOwnNodes: true,
    run: async ({ spawn }) => {
      const node = await spawn({ name: 'tampered' })
      const note = await node.door.remember('what happened')
      const whole = await node.door.verifyRecord()
      assert.equal(whole.status, 200)
      assert.ok(whole.body.size >= 2)
      const door = await node.whileStopped((directory) => changeOneByte(directory, whole.body.size - 1))
      const damaged = await door.verifyRecord()
      assert.equal(damaged.body.code, 'RECORD_DAMAGED')
      assert.equal((await door.note(note.id)).status, 200, 'the node no longer answers')
    },
  },
]

/** Rewrite the time of one entry, as somebody with access to the disk could. */
async function changeOneByte(directory: string, seq: number): Promise<void> {
  const store = await openStore(join(directory, 'db'))
  await store.transact((tx) => {
    const header = tx.getJson<{ ts: number }>(key('header', seq))
    assert.ok(header, `there is no entry ${seq}`)
    tx.putJson(key('header', seq), { ...header, ts: header.ts + 1 })
  })
  await store.close()
}
