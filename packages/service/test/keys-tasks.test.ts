/** Tasks and the keys of whoever sent them: what one key asked for is found by the key that followed it, and by no other. */
import { expect, test } from 'vitest'
import { createKeyPair, type KeyPair } from '@csb/core'
import {
  createToken,
  draftGrant,
  recoveryDigest,
  signGrant,
  signKeyChange,
  signRecovered,
  signRecovery,
  takeKeyStatements,
  tokenHash,
} from '@csb/authority'
import type { Caller } from '../src/index.ts'
import { NOW, attach, createHouse, messageOf, type House, type Task } from './house.ts'
import { createNetwork } from './network.ts'

type Ask = <T>(operation: string, input?: object) => Promise<T>

/** The state that an event of a subscription tells of. */
function stateOf(event: unknown): string | undefined {
  const { task, statusUpdate } = event as { task?: Task; statusUpdate?: { status: { state: string } } }
  return (statusUpdate ?? task)?.status.state
}

/** Asks as a person does who has a lease here: the owner by a key of its own, or a friend by the owner's grant. */
async function byLease(house: House, holder: KeyPair, grantor: KeyPair): Promise<Caller> {
  const token = createToken()
  const grant = signGrant(
    draftGrant({
      type: 'global',
      from: { name: 'owner', did: grantor.did },
      to: { name: 'person', did: holder.did },
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
    }),
    grantor,
  )
  await house.owned('authority.accept', { grant, token_hash: tokenHash(token) })
  return { kind: 'bearer', token, door: 'http' }
}

const asking =
  (house: House, caller: Caller): Ask =>
  <T>(operation: string, input: object = {}) =>
    house.service.perform(caller, operation, input) as Promise<T>

const sent = async (ask: Ask, text: string, more: object = {}) =>
  (await ask<{ task: Task }>('agents.send', { agent: 'clerk', params: { message: messageOf(text), ...more } })).task
const getting = (ask: Ask, id: string) => ask<Task>('agents.getTask', { agent: 'clerk', params: { id } })
const listed = async (ask: Ask) => {
  const { tasks } = await ask<{ tasks: readonly Task[] }>('agents.listTasks', { agent: 'clerk', params: {} })
  return tasks.map(({ id }) => id).toSorted()
}
const followedBy = (old: KeyPair, next: KeyPair, effectiveAt = NOW + 1) =>
  signKeyChange({ old, next, seq: 1, effectiveAt })
const stating = (house: House, statements: readonly unknown[]) =>
  house.store.transact((tx) => takeKeyStatements(tx, statements, { now: house.clock.now(), also: [], except: [] }))

test('after the owner changed the key the new one gets, lists, follows, continues and cancels what the old one sent', async () => {
  const house = await createHouse()
  await attach(house)
  const [next, stranger] = [createKeyPair(), createKeyPair()]
  const message = messageOf('count')
  const done = await house.owned<{ task: Task }>('agents.send', { agent: 'clerk', params: { message } })
  const hanging = await sent(house.owned, 'hang', { configuration: { returnImmediately: true } })
  const byStranger = asking(house, await byLease(house, stranger, house.owner))
  await stating(house, [followedBy(house.owner, next)])
  const caller = await byLease(house, next, next)
  const byNext = asking(house, caller)
  const own = await sent(byNext, 'count')

  expect((await getting(byNext, done.task.id)).status.state).toBe('TASK_STATE_COMPLETED')
  expect(await listed(byNext)).toEqual([done.task.id, hanging.id, own.id].toSorted())
  // the same message again is the same task, by whichever key it comes
  const again = await byNext<{ task: Task }>('agents.send', { agent: 'clerk', params: { message } })
  expect(again.task.id).toBe(done.task.id)
  const { contextId } = done.task
  const within = messageOf('count', { contextId, referenceTaskIds: [done.task.id] })
  const further = await byNext<{ task: Task }>('agents.send', { agent: 'clerk', params: { message: within } })
  expect(further.task.contextId).toBe(contextId)
  const states: (string | undefined)[] = []
  const asked = { agent: 'clerk', params: { id: hanging.id } }
  const events = house.service.open(caller, 'agents.subscribe', asked)[Symbol.asyncIterator]()
  states.push(stateOf((await events.next()).value))
  const canceled = await byNext<Task>('agents.cancelTask', { agent: 'clerk', params: { id: hanging.id } })
  expect(canceled.status.state).toBe('TASK_STATE_CANCELED')
  for (let event = await events.next(); event.done !== true; event = await events.next())
    states.push(stateOf(event.value))
  expect(states.at(-1)).toBe('TASK_STATE_CANCELED')

  // nobody else gains by it, and the old key has nothing of what the new one sends
  await expect(getting(byStranger, done.task.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await listed(byStranger)).toEqual([])
  await expect(getting(house.owned, own.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await listed(house.owned)).toEqual([done.task.id, hanging.id].toSorted())
})

test('an owner elsewhere who has a lease here finds the own tasks after changing the key, once this node knows of it', async () => {
  const house = await createHouse()
  await attach(house)
  const [friend, next, thief] = [createKeyPair(), createKeyPair(), createKeyPair()]
  const { id } = await sent(asking(house, await byLease(house, friend, house.owner)), 'count')
  const byNext = asking(house, await byLease(house, next, house.owner))
  await expect(getting(byNext, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  // somebody who says so alone is nobody's follower
  await stating(house, [followedBy(thief, next)])
  await expect(getting(byNext, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await stating(house, [followedBy(friend, next)])
  expect((await getting(byNext, id)).id).toBe(id)
  expect(await listed(byNext)).toEqual([id])
})

test('L1.3 a key that followed until a recovery said otherwise finds nothing any more, and the recovered one all', async () => {
  const house = await createHouse()
  await attach(house)
  const [friend, next, thief, recovery] = [createKeyPair(), createKeyPair(), createKeyPair(), createKeyPair()]
  await stating(house, [signRecovery({ digest: recoveryDigest(recovery.did) }, friend), followedBy(friend, thief)])
  const { id } = await sent(asking(house, await byLease(house, friend, house.owner)), 'count')
  const byThief = asking(house, await byLease(house, thief, house.owner))
  expect((await getting(byThief, id)).id).toBe(id)
  await stating(house, [signRecovered({ old: friend.did, next, seq: 1, effectiveAt: NOW + 2 }, recovery)])
  await expect(getting(byThief, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await listed(byThief)).toEqual([])
  expect(await listed(asking(house, await byLease(house, next, house.owner)))).toEqual([id])
})

test("a peer finds the tasks of its node whoever of its keys its owner uses: they are the node key's", async () => {
  const network = createNetwork()
  const house = await createHouse({ network })
  const peer = await createHouse({ network })
  await attach(house)
  const there = { did: house.key.did, agent: 'clerk' }
  const { task } = await peer.owned<{ task: Task }>('agents.send', {
    ...there,
    params: { message: messageOf('count') },
  })
  const next = createKeyPair()
  await stating(peer, [followedBy(peer.owner, next)])
  const byNext = asking(peer, await byLease(peer, next, next))
  expect((await byNext<Task>('agents.getTask', { ...there, params: { id: task.id } })).id).toBe(task.id)
})
