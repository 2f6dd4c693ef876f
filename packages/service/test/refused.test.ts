/** Refusals that stand alone: nothing behind them would stop what they stop, or would say why. */
import { expect, test } from 'vitest'
import { createKeyPair } from '@csb/core'
import { trust } from '@csb/authority'
import { askWitness } from '../src/witness/witnessing.ts'
import type { Service } from '../src/index.ts'
import { attach, codeOf, createHouse, messageOf } from './house.ts'
import { createNetwork } from './network.ts'
import { createWorld, session } from './every-operation-rig.ts'

test('L4.4 work of an origin that may only inform is not taken in, and nothing of it runs', async () => {
  const network = createNetwork()
  const nas = await createHouse({ name: 'nas', network })
  const friend = await createHouse({ name: 'friend', network })
  await attach(friend)
  const listing = (ceiling: 'inform' | 'request') =>
    friend.store.transact((tx) => trust(tx, { did: nas.owner.did, name: 'Ines', ceiling }))
  const offer = () => nas.owned('handoff.offer', { did: friend.key.did, agent: 'clerk', text: 'show' })
  await listing('inform')
  const before = await friend.dump((fullKey) => /^(?:r|m\/|a[sv])/.test(fullKey))
  await expect(offer()).rejects.toMatchObject({ code: 'DENIED', details: { reason: 'over_ceiling' } })
  expect(await friend.dump((fullKey) => /^(?:r|m\/|a[sv])/.test(fullKey))).toEqual(before)
  expect((await friend.records()).at(-1)).toMatchObject({ operation: 'handoff.receive', outcome: 'refused' })
  await listing('request')
  await expect(offer()).resolves.toMatchObject({ outcome: 'completed' })
})

test('DEL-003.3.2 a node speaks by no delegation that was made out to somebody else, and sends nothing', async () => {
  const { house, friend } = await createWorld()
  const grant = await house.grant({ to: { name: 'other', did: createKeyPair().did }, level: 'request' })
  const params = { message: messageOf('x') }
  const speaking = { did: friend.key.did, agent: 'clerk', params, delegation: grant.delegation.id }
  const heard = (await friend.records()).length
  await expect(house.owned('agents.send', speaking)).rejects.toMatchObject({
    code: 'GRANT_INVALID',
    details: { reason: 'holder_mismatch' },
  })
  expect((await friend.records()).length).toBe(heard)
})

test('L3.2 notes bear their own labels: the branch of notes is not labelled as files are', async () => {
  const { house } = await createWorld()
  const label = { branch: 'memory', path: 'notes', label: 'sealed:owner' }
  const before = await house.dump()
  expect(await codeOf(house.owned('files.label', label))).toBe('PROTECTED')
  expect(await house.dump()).toEqual(before)
})

test.each([
  ['git.refs', {}],
  ['git.fetch', { wants: ['ab'.repeat(32)], done: true }],
])('L1.2 a lease without any path clones nothing: %s', async (operation, input) => {
  const world = await createWorld()
  const caller = await session(world, { paths: [] })
  const asked =
    operation === 'git.refs'
      ? world.house.service.perform(caller, operation, input)
      : world.house.service.open(caller, operation, input)[Symbol.asyncIterator]().next()
  await expect(asked).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'paths' } })
})

test('a branch that is not there is said to be that', async () => {
  const { house } = await createWorld()
  for (const input of [
    { from: 'runs/none', to: 'main' },
    { from: 'main', to: 'runs/none' },
  ])
    await expect(house.owned('files.diff', input)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      details: { branch: 'runs/none' },
    })
})

test.each([400, 403])(
  'L1.6 a witness that answers %i stands none for this log, whatever else it says',
  async (status) => {
    const network = createNetwork()
    const house = await createHouse({ network })
    await house.owned('memory.create', { entry: { content: 'x', type: 'other' } })
    const peer = createKeyPair()
    network.join(peer.did, {
      attend: async (_caller, _operation, _input, port) => {
        await port.receive()
        await port.send({ status, body: '1\n' })
        await port.close()
      },
    } as Service)
    const { signal } = new AbortController()
    await expect(askWitness(house.parts, peer.did, signal)).rejects.toMatchObject({
      code: 'DENIED',
      details: { status },
    })
  },
)
