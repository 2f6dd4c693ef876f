import { describe, expect, test } from 'vitest'
import { createKeyPair } from '@csb/core'
import { heldOf, holdRecord, signCheckpoint, trust, witnessState } from '@csb/authority'
import { askWitness } from '../src/witness/witnessing.ts'
import type { Service } from '../src/index.ts'
import { createHouse, type House } from './house.ts'
import { createNetwork } from './network.ts'

const { signal } = new AbortController()

const trusts = (house: House, did: string) =>
  house.store.transact((tx) => trust(tx, { did, name: 'a peer', ceiling: 'request' }))

/** A peer that answers every checkpoint in the same way. */
const saying = (answer: unknown): Service =>
  ({
    attend: async (_caller, _operation, _input, port) => {
      await port.receive()
      await port.send(answer)
      await port.close()
    },
  }) as Service

describe('who stands witness for whom', () => {
  test('L1.6 a stranger is refused; a peer that is trusted, and another node of the same owner, are heard', async () => {
    const network = createNetwork()
    const owner = createKeyPair()
    const witness = await createHouse({ name: 'witness', owner, network })
    const sibling = await createHouse({ name: 'sibling', owner, network })
    const friend = await createHouse({ name: 'friend', network })
    for (const house of [sibling, friend])
      await house.owned('memory.create', { entry: { content: 'x', type: 'other' } })
    await expect(askWitness(friend.parts, witness.key.did, signal)).rejects.toMatchObject({ code: 'DENIED' })
    expect(await witness.records()).toContainEqual(
      expect.objectContaining({ operation: 'witness.serve', outcome: 'refused', code: 'DENIED' }),
    )
    await trusts(witness, friend.key.did)
    for (const house of [sibling, friend]) {
      expect(await askWitness(house.parts, witness.key.did, signal)).toBe(true)
      const { settled, size } = witnessState(house.store.view())
      expect(settled).toMatchObject({ size, cosigners: [{ did: witness.key.did }] })
    }
    const { logs } = await witness.owned<{ logs: { did: string }[] }>('record.witnessed')
    expect(logs.map(({ did }) => did).sort()).toEqual([sibling.key.did, friend.key.did].sort())
  })

  test('L1.6 attack 37: a witness that shows what this node never signed holds nothing up', async () => {
    const network = createNetwork()
    const house = await createHouse({ network })
    await house.owned('memory.create', { entry: { content: 'x', type: 'other' } })
    const liar = createKeyPair()
    const forged = signCheckpoint(0, { size: 999, root: 'ab'.repeat(32) }, liar)
    for (const answer of [
      { status: 409, body: '999\n', checkpoint: forged },
      { status: 409, body: '999\n', checkpoint: forged.replaceAll(liar.did, house.key.did) },
      { status: 409, body: '999\n', checkpoint: 'anything' },
      { status: 422, body: '999\n' },
      { status: 500, body: '' },
      { add_checkpoint: 'old 0' },
      'hello',
    ]) {
      network.join(liar.did, saying(answer))
      await expect(askWitness(house.parts, liar.did, signal), JSON.stringify(answer)).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:PEER_MISBEHAVED|PEER_UNREACHABLE|MALFORMED)$/),
      })
      expect(heldOf(house.store.view())).toBeUndefined()
    }
    network.join(liar.did, saying({ status: 200, body: '— did:key:zNobody AAAAAAA=\n' }))
    await askWitness(house.parts, liar.did, signal)
    expect(witnessState(house.store.view()).settled).toBeNull()
  })

  test('L1.6 while the record is held writes fail, refusals stay refusals, reads and witnessing go on', async () => {
    const network = createNetwork()
    const owner = createKeyPair()
    const house = await createHouse({ owner, network })
    const sibling = await createHouse({ owner, network })
    const { id } = await house.owned<{ id: string }>('memory.create', { entry: { content: 'x', type: 'other' } })
    await sibling.owned('memory.create', { entry: { content: 'y', type: 'other' } })
    const checkpoint = signCheckpoint(0, { size: 999, root: 'ab'.repeat(32) }, house.key)
    const before = await house.records()
    await house.store.transact((tx) =>
      holdRecord(tx, { reason: 'shorter', checkpoint, witness: sibling.key.did, size: 1, at: 0 }),
    )
    const refusal = { code: 'RECORD_HELD', details: { reason: 'shorter', witness: sibling.key.did } }
    await expect(house.owned('memory.create', { entry: { content: 'z', type: 'other' } })).rejects.toMatchObject(
      refusal,
    )
    await expect(house.owned('memory.delete', { id })).rejects.toMatchObject(refusal)
    // nor does anything leave, or stay behind
    const [said, kept] = [network.heard.length, await house.dump()]
    const to = { did: sibling.key.did }
    for (const [operation, input] of [
      ['sync.run', to],
      ['agents.send', { ...to, agent: 'clerk', params: {} }],
      ['authority.distribute', { ...to, chain: [{}] }],
      ['keys.tell', { ...to, statement: {} }],
      ['handoff.offer', { ...to, agent: 'clerk', text: 'x' }],
    ] as const)
      await expect(house.owned(operation, input), operation).rejects.toMatchObject(refusal)
    const exporting = house.service.open(house.owning, 'files.export', {})[Symbol.asyncIterator]()
    await expect(exporting.next()).rejects.toMatchObject(refusal)
    expect([network.heard.length, await house.dump()]).toEqual([said, kept])
    await expect(house.service.perform({ kind: 'nobody', door: 'http' }, 'memory.list', {})).rejects.toMatchObject({
      code: 'LEASE_REQUIRED',
    })
    expect(await house.owned('memory.get', { id })).toMatchObject({ content: 'x' })
    expect(await askWitness(sibling.parts, house.key.did, signal)).toBe(true)
    expect(await house.records()).toEqual(before)
    expect(await house.owned('record.checkpoint')).toMatchObject({ held: { reason: 'shorter' } })

    await expect(house.owned('record.resume', {})).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await house.owned('record.resume', { after_restore: true })).toMatchObject({ log: 1, after: { size: 999 } })
    await expect(house.owned('record.resume', { after_restore: true })).rejects.toMatchObject({ code: 'CONFLICT' })
    await house.owned('memory.create', { entry: { content: 'z', type: 'other' } })
    expect((await house.records()).map(({ operation }) => operation)).toContain('record.resume')
  })
})
