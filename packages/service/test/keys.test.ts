import { expect, onTestFinished, test } from 'vitest'
import { createFakeClock, createKeyPair, until } from '@csb/core'
import {
  createToken,
  currentKey,
  draftGrant,
  grantHash,
  issueStatus,
  listKeyStatements,
  recoveryDigest,
  signCompromise,
  signGrant,
  signKeyChange,
  signRecovered,
  signRecovery,
  takeKeyStatements,
  untoldPeers,
  tokenHash,
  trust,
  trusted,
  type GrantInit,
} from '@csb/authority'
import { startJobs } from '../src/index.ts'
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
  expect(await house.service.perform(byNew, 'keys.list', {})).toMatchObject({
    items: [statement, compromise],
    recovery: null,
  })
  expect((await house.records()).filter(({ operation }) => operation === 'keys.state')).toMatchObject([
    { effect: { said: 'changed', to: next.did } },
    { effect: { said: 'compromised', all_before: NOW + 1 } },
  ])
})

test('a home of the key before is called by the name of its owner', async () => {
  const house = await createHouse()
  const named = async () => (await house.owned<{ held: { owner: { name: string } }[] }>('node.status')).held[0]?.owner
  const before = await named()
  await house.owned('keys.state', {
    statement: signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 }),
  })
  expect(before?.name).toEqual(expect.any(String))
  expect(await named()).toEqual(before)
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

test('L1.3 what the new key grants comes in the same batch, and a grant that does not fit leaves nothing', async () => {
  const house = await createHouse()
  const token = createToken()
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW })
  const compromise = signCompromise(house.owner.did, NOW, next)
  const node = leaseOf(house, { to: { name: house.name, did: house.key.did }, maxDepth: 2, audience: ['*'] })
  const command = { grant: leaseOf(house), token_hash: tokenHash(token) }
  const by = (caller: Parameters<House['service']['perform']>[0], input: object) =>
    house.service.perform(caller, 'keys.state', input)
  const before = await house.dump()
  for (const wrong of [
    // of the old key, of nobody's, changed after it was signed
    { ...command, grant: await house.grant({ to: { name: 'x', did: next.did } }) },
    { ...command, grant: { ...leaseOf(house), authorization_details: [] } },
    { ...command, grant: { ...node, delegation: { ...node.delegation, level: 'execute' } } },
  ]) {
    const kept = await house.dump()
    await expect(
      by(house.owning, { statement, also: [compromise], grants: [{ grant: node }, wrong] }),
    ).rejects.toMatchObject({
      code: 'GRANT_INVALID',
    })
    expect(await house.dump()).toEqual(kept)
  }
  expect(Object.keys(await house.dump()).length).toBeGreaterThanOrEqual(Object.keys(before).length)
  expect(await listKeyStatements(house.store.view())).toEqual([])
  await by(house.owning, { statement, also: [compromise], grants: [{ grant: node }, command] })
  await expect(house.owned('memory.list')).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
  const now = { kind: 'bearer', token, door: 'http' } as const
  expect(await house.service.perform(now, 'memory.list', {})).toMatchObject({ items: [] })
  await attach({ ...house, owned: (name, input) => house.service.perform(now, name, input ?? {}) as never })
  const sent = await house.service.perform(now, 'agents.send', {
    agent: 'clerk',
    params: { message: messageOf('count') },
  })
  expect((sent as { task: Task }).task.status.state).toBe('TASK_STATE_COMPLETED')
})

test('L1.3 who was shown a grant of the key hears, who was away when it comes back, in the order of the keys', async () => {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const house = await createHouse({ network, clock })
  const [near, far] = [await createHouse({ network, clock }), await createHouse({ network, clock })]
  for (const friend of [near, far]) {
    await friend.store.transact((tx) => trust(tx, { did: house.owner.did, name: 'Ines', ceiling: 'execute' }))
    const grant = await house.grant({ to: { name: 'friend', did: friend.key.did } })
    await house.owned('authority.distribute', { did: friend.key.did, chain: [grant] })
  }
  const third = createKeyPair()
  const says = (friend: House) => listKeyStatements(friend.store.view())
  const changes = [
    signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 }),
    signKeyChange({ old: next, next: third, seq: 2, effectiveAt: NOW + 2 }),
  ]
  network.away.add(far.key.did)
  clock.advance(10)
  // the network says of everybody that it is connected: who is away is told later
  const done = await house.owned<{ reached: { did: string }[]; unreached: { did: string }[] }>('keys.state', {
    statement: changes[0],
  })
  expect(done.reached.map(({ did }) => did)).toEqual([near.key.did])
  expect(done.unreached.map(({ did }) => did)).toEqual([far.key.did])
  await house.owned('keys.state', { statement: changes[1] })
  // said by the newest, of the oldest: believed only when all of the changes are
  await house.owned('keys.state', { statement: signCompromise(house.owner.did, NOW + 1, third) }).catch(() => undefined)
  await until(async () => (await says(near)).length === 3, 30_000, 'who is near has heard')
  const jobs = await startJobs(house.parts, house.service)
  onTestFinished(() => jobs.stop())
  network.back(far.key.did)
  await until(async () => (await says(far)).length === 3, 30_000, 'who was away has heard')
  expect(trusted(far.store.view(), third.did)).toMatchObject({ name: 'Ines', ceiling: 'execute' })
})

test('L1.3 grants of a stolen key are called revoked by their status key, for whom the word on the key does not reach', async () => {
  const house = await createHouse()
  const grant = await house.grant({
    to: { name: 'friend', did: createKeyPair().did },
    type: 'scoped',
    scope: ['x'],
    ttlMs: 60_000,
  })
  const status = () => house.store.transact((tx) => issueStatus(tx, house.key, house.clock.now()))
  const before = await status()
  expect(before.status.revoked).not.toContain(grantHash(grant))
  await house.owned('keys.state', { statement: signCompromise(house.owner.did, NOW + 1, house.owner) })
  const after = await status()
  expect(after.status.revoked).toContain(grantHash(grant))
  expect(after.status.seq).toBeGreaterThan(before.status.seq)
})

test('L1.3 who trusts only the new key believes of the old one what both signed, and takes in its home', async () => {
  const network = createNetwork()
  const house = await createHouse({ network })
  const friend = await createHouse({ network })
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 })
  await house.owned('keys.state', { statement })
  // a stranger there: nothing of it is kept
  expect(await listKeyStatements(friend.store.view())).toEqual([])
  await friend.store.transact((tx) => trust(tx, { did: next.did, name: 'Ines', ceiling: 'request' }))
  const grant = leaseOf(house, {
    to: { name: 'friend', did: friend.key.did },
    audience: ['*'],
    now: NOW + 1,
    statusKey: house.key.did,
    lease: {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${house.home}`],
      actions: ['list', 'read'],
      paths: ['/'],
      branches: ['memory'],
      labels_max: 'trusted',
    },
  })
  await house.owned('authority.accept', { grant })
  await house.owned('authority.distribute', { did: friend.key.did, chain: [grant] })
  expect(await listKeyStatements(friend.store.view())).toEqual([statement])
  await house.owned('memory.create', {
    entry: { content: 'shared', type: 'other', level: 'warm' },
    label: 'trusted:owner',
  })
  expect(await house.owned('sync.run', { did: friend.key.did, home: house.home })).toMatchObject({ sent: 1 })
})

test('L1.3 a recovery reaches who was away, and ends there what the thief was trusted for', async () => {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const house = await createHouse({ network, clock })
  const friend = await createHouse({ network, clock })
  const [recovery, thief] = [createKeyPair(), createKeyPair()]
  await friend.store.transact((tx) => trust(tx, { did: house.owner.did, name: 'Ines', ceiling: 'execute' }))
  const grant = await house.grant({ to: { name: 'friend', did: friend.key.did } })
  await house.owned('authority.distribute', { did: friend.key.did, chain: [grant] })
  const named = signRecovery({ digest: recoveryDigest(recovery.did) }, house.owner)
  const stolen = signKeyChange({ old: house.owner, next: thief, seq: 1, effectiveAt: NOW + 1 })
  const back = signRecovered({ old: house.owner.did, next, seq: 1, effectiveAt: NOW + 2 }, recovery)
  clock.advance(10)
  expect(await house.owned('keys.state', { statement: named })).toMatchObject({
    said: 'recovery',
    reached: [{ did: friend.key.did }],
  })
  expect(await listKeyStatements(friend.store.view())).toEqual([named])
  network.away.add(friend.key.did)
  // the thief comes to both, and would name a recovery key of its own
  const own = signRecovery({ digest: recoveryDigest(thief.did) }, thief)
  for (const one of [house, friend]) await takeIn(one, [stolen])
  await expect(takeIn(friend, [own])).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(trusted(friend.store.view(), thief.did)).toMatchObject({ name: 'Ines' })
  const done = await house.owned<{ unreached: { did: string }[] }>('keys.state', { statement: back })
  expect(done).toMatchObject({ said: 'recovered', to: next.did, unreached: [{ did: friend.key.did }] })
  const jobs = await startJobs(house.parts, house.service)
  onTestFinished(() => jobs.stop())
  network.back(friend.key.did)
  await until(async () => currentKey(friend.store.view(), house.owner.did) === next.did, 30_000, 'it has heard')
  expect(trusted(friend.store.view(), next.did)).toMatchObject({ name: 'Ines', ceiling: 'execute' })
  expect(trusted(friend.store.view(), thief.did)).toBeUndefined()
  expect(await listKeyStatements(friend.store.view())).toEqual([named, back])
})

test.each([
  ['of whom it does not know', false, { reason: 'that key is not known here' }],
  ['of a key that changed before', true, { reason: 'that key has changed before' }],
])(
  'L1.3 a recovery key %s is not taken in from a peer, and nothing is written but that',
  async (_, isKnown, details) => {
    const network = createNetwork()
    const house = await createHouse({ network })
    const friend = await createHouse({ network })
    if (isKnown) {
      await friend.store.transact((tx) => trust(tx, { did: house.owner.did, name: 'Ines', ceiling: 'execute' }))
      await takeIn(friend, [signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW })])
    }
    const statement = signRecovery({ digest: recoveryDigest(createKeyPair().did) }, house.owner)
    const before = await friend.dump()
    await expect(house.owned('keys.tell', { did: friend.key.did, statement })).rejects.toMatchObject({
      code: 'DENIED',
      details,
    })
    expect(await friend.dump()).toEqual(before)
    const refused = (await friend.records()).filter(({ outcome }) => outcome === 'refused')
    expect(refused.map(({ operation }) => operation)).toEqual(['authority.receive'])
  },
)

test('L1.3 who contradicts what is known of a key is refused for good, and what follows is told all the same', async () => {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const house = await createHouse({ network, clock })
  const friend = await createHouse({ network, clock })
  const other = createKeyPair()
  await friend.store.transact((tx) => trust(tx, { did: house.owner.did, name: 'Ines', ceiling: 'execute' }))
  await takeIn(friend, [signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW })])
  const grant = await house.grant({ to: { name: 'friend', did: friend.key.did } })
  await house.owned('authority.distribute', { did: friend.key.did, chain: [grant] }).catch(() => undefined)
  clock.advance(10)
  const told = await house.owned<{ reached: { did: string }[] }>('keys.state', {
    statement: signKeyChange({ old: house.owner, next: other, seq: 1, effectiveAt: NOW + 1 }),
    also: [signCompromise(house.owner.did, NOW - 1, house.owner)],
  })
  // an answer, and not one to ask for again
  expect(told.reached.map(({ did }) => did)).toEqual([friend.key.did])
  expect(await untoldPeers(house.store.view())).toEqual([])
  expect(currentKey(friend.store.view(), house.owner.did)).toBe(next.did)
  expect((await listKeyStatements(friend.store.view())).map((one) => Object.keys(one)[0])).toEqual([
    'keychange',
    'compromise',
  ])
  const [refused] = (await friend.records()).filter(({ outcome }) => outcome === 'refused')
  expect(refused).toMatchObject({ operation: 'authority.receive' })
})

test('L1.3 a recovery comes with what the new key grants, though the thief changed the key here, or with nothing', async () => {
  const house = await createHouse()
  const [recovery, thief] = [createKeyPair(), createKeyPair()]
  await takeIn(house, [signRecovery({ digest: recoveryDigest(recovery.did) }, house.owner)])
  await takeIn(house, [signKeyChange({ old: house.owner, next: thief, seq: 1, effectiveAt: NOW + 1 })])
  const statement = signRecovered({ old: house.owner.did, next, seq: 1, effectiveAt: NOW + 1 }, recovery)
  const token = createToken()
  const command = { grant: leaseOf(house), token_hash: tokenHash(token) }
  const before = await house.dump()
  const byThief = signGrant(
    draftGrant({
      type: 'global',
      from: { name: 'owner', did: thief.did },
      to: { name: 'x', did: thief.did },
      audience: ['*'],
      scope: ['*'],
      level: 'request',
      now: NOW + 1,
      ttlMs: null,
    }),
    thief,
  )
  const state = (grants: readonly object[]) => house.owned('keys.state', { statement, grants })
  await expect(state([command, { grant: byThief }])).rejects.toMatchObject({ code: 'GRANT_INVALID' })
  expect(await house.dump()).toEqual(before)
  await state([command])
  const now = { kind: 'bearer', token, door: 'http' } as const
  expect(await house.service.perform(now, 'keys.list', {})).toMatchObject({ recovery: recoveryDigest(recovery.did) })
  expect(await house.service.perform(now, 'node.status', {})).toMatchObject({ owner: { did: next.did } })
})

/** As from a peer that has them. */
async function takeIn({ store, clock }: House, statements: readonly unknown[]): Promise<void> {
  await store.transact((tx) => takeKeyStatements(tx, statements, { now: clock.now(), also: [], except: [] }))
}
