/** Attacks 14, 28 and 40 where work goes to peers: no more of a lease leaves a node than there is. */
import { describe, expect, test } from 'vitest'
import type { Grant, Lease } from '@csb/core'
import { createToken, holderOf, leaseOf, leftOf, listGrants, tokenHash, trust, type Unit } from '@csb/authority'
import type { Caller } from '@csb/service'
import { HOUR, attach, codeOf, createHouse, type House } from '../../packages/service/test/house.ts'
import { createNetwork } from '../../packages/service/test/network.ts'

const BUDGET = { calls: 40, bytes_written: 10_000, wall_ms: 60_000 }
const WORKING: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'propose', 'send'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'private',
  capabilities: ['C'],
  budget: BUDGET,
  max_children: 4,
}

/** A node, two peers that take work of its owner, and the holder of a lease with a budget. */
async function stage(lease: Partial<Lease> = WORKING) {
  const network = createNetwork()
  const nas = await createHouse({ name: 'nas', network })
  const peers = [await createHouse({ name: 'left', network }), await createHouse({ name: 'right', network })]
  for (const peer of peers) {
    await peer.store.transact((tx) => trust(tx, { did: nas.owner.did, name: 'Ines', ceiling: 'execute' }))
    await attach(peer)
  }
  const token = createToken()
  const grant = await nas.grant({
    type: 'scoped',
    scope: ['lease'],
    ttlMs: HOUR,
    maxDepth: 2,
    to: { name: 'builder', did: holderOf(token).did },
    audience: [nas.key.did],
    lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${nas.home}`], actions: ['list'], ...lease },
  })
  const { hash } = await nas.owned<{ hash: string }>('authority.accept', { grant, token_hash: tokenHash(token) })
  const caller: Caller = { kind: 'bearer', token, door: 'http' }
  const offer = (peer: House | undefined, by: Caller = caller) =>
    nas.service.perform(by, 'handoff.offer', { did: peer?.key.did, agent: 'clerk', text: 'write results/a.md x' })
  return { nas, peers, caller, hash, offer }
}

/** Leases that were minted for peers. */
const mintedAt = async (house: House): Promise<Lease[]> => {
  const grants: Grant[] = await listGrants(house.store.view())
  return grants
    .filter(({ delegation }) => delegation.task?.startsWith('hof_') === true)
    .map((grant) => leaseOf(grant))
    .filter((lease) => lease !== null)
}

describe('attack 28: a budget is multiplied by handing it to several', () => {
  test('attack 28: what two peers and a child are given is together no more than there was', async () => {
    const { nas, peers, caller, hash, offer } = await stage()
    const child = (await nas.service.perform(caller, 'authority.attenuate', {
      name: 'child',
      lease: { budget: { calls: 10 } },
    })) as { token: string }
    for (let n = 0; n < 3; n++) await nas.service.perform({ ...caller, token: child.token }, 'memory.list', {})
    const codes = [await codeOf(offer(peers[0])), await codeOf(offer(peers[1])), await codeOf(offer(peers[0]))]
    expect(codes[0]).toBe('done')
    // the first took all that was left: for the others nothing is
    expect(codes.slice(1).every((code) => code === 'SCOPE_EXCEEDED')).toBe(true)
    const minted = await mintedAt(nas)
    for (const unit of ['calls', 'bytes_written', 'wall_ms'] as const) {
      const given = minted.reduce((sum, lease) => sum + (lease.budget?.[unit] ?? Number.POSITIVE_INFINITY), 0)
      expect(given, unit).toBeLessThanOrEqual(BUDGET[unit])
      expect(leftOf(nas.store.view(), hash, unit satisfies Unit), unit).toBe(0)
    }
    // five calls were used here before, by the holder and its child
    expect(minted[0]?.budget?.calls).toBe(BUDGET.calls - 5)
    // the child has nothing left either: its parent pays for it
    expect(await codeOf(nas.service.perform({ ...caller, token: child.token }, 'memory.list', {}))).toBe(
      'SCOPE_EXCEEDED',
    )
  })
})

describe('attack 28: a peer uses more than it was given', () => {
  test('attack 28: what an agent there says it used is held against what was carved out, and its result does not come', async () => {
    const { nas, peers, hash, caller } = await stage({ ...WORKING, budget: { tokens: 100 } })
    const [left] = peers
    const offer = (text: string) =>
      nas.service.perform(caller, 'handoff.offer', { did: left?.key.did, agent: 'clerk', text })
    const done = (await offer('use 101')) as { outcome: string; code: string; commit?: string }
    expect([done.outcome, done.code, done.commit]).toEqual(['failed', 'SCOPE_EXCEEDED', undefined])
    expect(leftOf(nas.store.view(), hash, 'tokens')).toBe(0)
    // all of it went along: there is nothing left to give
    expect(await codeOf(offer('use 1'))).toBe('SCOPE_EXCEEDED')
  })
})

describe('attack 40: a lease is minted by handing work on', () => {
  test('attack 40: who may not act on others hands nothing on, and mints nothing', async () => {
    const { nas, peers, offer } = await stage({ ...WORKING, capabilities: ['B'] })
    await expect(offer(peers[0])).rejects.toMatchObject({
      code: 'SCOPE_EXCEEDED',
      details: { field: 'capabilities' },
    })
    expect(await mintedAt(nas)).toEqual([])
    expect((await nas.records()).at(-1)).toMatchObject({ operation: 'handoff.offer', outcome: 'refused' })
  })

  test('attack 14: a peer is given nothing that the caller does not hold, though the node does', async () => {
    const { nas, peers, offer } = await stage({ ...WORKING, actions: ['send', 'read'], paths: ['/notes'] })
    expect(await codeOf(offer(peers[0]))).toBe('done')
    const [lease] = await mintedAt(nas)
    expect(lease?.actions).toEqual(['read'])
    expect(lease?.paths ?? []).toEqual([])
    const { offer: mute, nas: other, peers: others } = await stage({ ...WORKING, actions: ['send'] })
    expect(await codeOf(mute(others[0]))).toBe('SCOPE_EXCEEDED')
    expect(await mintedAt(other)).toEqual([])
  })
})
