import { expect, test } from 'vitest'
import { createKeyPair } from '@csb/core'
import {
  createToken,
  draftGrant,
  signCompromise,
  signGrant,
  signKeyChange,
  tokenHash,
  trust,
  trusted,
  type GrantInit,
} from '@csb/authority'
import { NOW, attach, createHouse, messageOf, type House, type Task } from './house.ts'
import { createNetwork } from './network.ts'

const next = createKeyPair()

/** A command line that the new key leased. */
const leaseOf = (house: House, extra: Partial<GrantInit> = {}) =>
  signGrant(
    draftGrant({
      type: 'global',
      from: { name: 'owner', did: next.did },
      to: { name: 'owner', did: next.did },
      audience: [house.key.did],
      scope: ['*'],
      level: 'request',
      now: house.clock.now(),
      ttlMs: null,
      lease: {
        type: 'urn:csb:lease:1',
        locations: [`nas://*/${house.home}`, `nas://${house.key.peerId}/*`],
        actions: ['list', 'read', 'write', 'send', 'exec'],
        paths: ['/'],
        branches: ['*'],
        labels_max: 'sealed',
        label_tags: ['*'],
        capabilities: ['B', 'C'],
      },
      ...extra,
    }),
    next,
  )

test('L1.3 the owner changes the key: the new one rules, then the old one is void, and both are in the record', async () => {
  const house = await createHouse()
  const token = createToken()
  const accept = () => house.owned('authority.accept', { grant: leaseOf(house), token_hash: tokenHash(token) })
  await expect(accept()).rejects.toMatchObject({ code: 'GRANT_INVALID', details: { reason: 'untrusted_root' } })
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW })
  expect(await house.owned('keys.state', { statement })).toMatchObject({ said: 'changed', to: next.did })
  // made at the very time of the change: the old key could not grant it any more
  await expect(house.owned('memory.list')).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
})

test('L1.3 what was granted before the change goes on, until the key is said to be in other hands', async () => {
  const house = await createHouse()
  const token = createToken()
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 })
  await house.owned('keys.state', { statement })
  await house.owned('authority.accept', { grant: leaseOf(house), token_hash: tokenHash(token) })
  const byNew = { kind: 'bearer', token, door: 'http' } as const
  expect(await house.owned('memory.list')).toMatchObject({ items: [] })
  const compromise = signCompromise(house.owner.did, NOW + 1, next)
  await house.service.perform(byNew, 'keys.state', { statement: compromise })
  await expect(house.owned('memory.list')).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
  expect(await house.service.perform(byNew, 'keys.list', {})).toEqual({
    items: expect.arrayContaining([statement, compromise]) as unknown,
  })
  expect((await house.records()).filter(({ operation }) => operation === 'keys.state')).toMatchObject([
    { effect: { said: 'changed', to: next.did } },
    { effect: { said: 'compromised', all_before: NOW + 1 } },
  ])
})

test('L1.3 a peer is told, and takes it in where it trusts that key', async () => {
  const network = createNetwork()
  const house = await createHouse({ network })
  const friend = await createHouse({ network })
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW })
  const tell = () => house.owned('keys.tell', { did: friend.key.did, statement })
  await expect(tell()).rejects.toMatchObject({ code: 'DENIED' })
  await friend.store.transact((tx) => trust(tx, { did: house.owner.did, name: 'Ines', ceiling: 'execute' }))
  expect(await tell()).toMatchObject({ key: house.owner.did, said: 'changed' })
  expect(trusted(friend.store.view(), next.did)).toMatchObject({ name: 'Ines', ceiling: 'execute' })
})

test('L1.3 a node whose grant is void runs agents again when the key that followed grants it anew', async () => {
  const house = await createHouse()
  await attach(house)
  const token = createToken()
  await house.owned('keys.state', {
    statement: signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 }),
  })
  await house.owned('authority.accept', { grant: leaseOf(house), token_hash: tokenHash(token) })
  const perform = (operation: string, input: object) =>
    house.service.perform({ kind: 'bearer', token, door: 'http' }, operation, input)
  await perform('keys.state', { statement: signCompromise(house.owner.did, NOW + 1, next) })
  const stateOfRun = async () => {
    const sent = await perform('agents.send', { agent: 'clerk', params: { message: messageOf('count') } })
    return (sent as { task: Task }).task.status.state
  }
  expect(await stateOfRun()).not.toBe('TASK_STATE_COMPLETED')
  const grant = leaseOf(house, { to: { name: house.name, did: house.key.did }, maxDepth: 2, audience: ['*'] })
  await perform('authority.accept', { grant })
  expect(await stateOfRun()).toBe('TASK_STATE_COMPLETED')
})
