/** Runs that rest on a right, and end with it: the agent stops, the task says why, nothing of it is written. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createFakeClock, until } from '@csb/core'
import { getRef } from '@csb/files'
import { grantHash, revoke, signRevocation, type Rank } from '@csb/authority'
import { HOUR, NOW, attach, codeOf, createHouse, messageOf, taskIn, wordsOf, type House, type Task } from './house.ts'
import type { MessagePort } from '../src/index.ts'
import { createSpeaker, deliver, envelopeOf, listed, taskOf, type Speaker } from './speech.ts'
import { createNetwork } from './network.ts'
import { threeNodes, type Cast } from './three-nodes.ts'

/** Begin a run that works until a file is there. */
async function begin({ speaker, listener, grant }: Cast, level: Rank = 'execute') {
  const gate = join(listener.store.directory, 'go')
  const { task } = await speaker.owned<{ task: Task }>('agents.send', {
    did: listener.key.did,
    agent: 'clerk',
    params: { message: messageOf(`hold ${gate}`), configuration: { returnImmediately: true } },
    delegation: grant.delegation.id,
    level,
  })
  const run = await taskIn(listener, speaker.key.did, task.id, 'TASK_STATE_WORKING')
  const token = await tokenOf(listener, speaker.key.did, task.id)
  return { id: run.id, gate, token }
}

/** What the agent was given to ask with: it shows it. */
const tokenOf = (house: House, owner: string, id: string): Promise<string> =>
  until(
    async () => {
      const { artifacts } = await taskIn(house, owner, id, 'TASK_STATE_WORKING')
      const text = artifacts?.at(-1)?.parts[0]?.text
      return text === undefined ? undefined : (JSON.parse(text) as { env: { CSB_TOKEN: string } }).env.CSB_TOKEN
    },
    30_000,
    'the agent has a token',
  )

const revocationOf = ({ nas, grant }: Pick<Cast, 'nas' | 'grant'>) =>
  signRevocation({ target: grantHash(grant), now: NOW }, nas.owner)

const ended = (task: Task) => task.metadata?.['urn:csb:ext:authority:v1']?.['ended']
const wroteNothing = async (house: House, id: string) => {
  expect(getRef(house.store.view(), house.home, `runs/${id}`)).toBeUndefined()
  expect((await house.records()).filter(({ outcome, run }) => outcome === 'done' && run === id)).toEqual([])
}

describe('L1.3 a run that was accepted under a delegation', () => {
  test('L1.3 is canceled when that is revoked, and whoever sent it sees why', async () => {
    const cast = await threeNodes()
    const { nas, speaker, listener } = cast
    const { id, token } = await begin(cast)
    await nas.owned('authority.revoke', revocationOf(cast))
    const task = await taskIn(listener, speaker.key.did, id, 'TASK_STATE_CANCELED')
    expect(wordsOf(task)).toBe('ended, its authority does not hold: revoked')
    expect(ended(task)).toBe('revoked')
    await until(() => listener.parts.runs.active.size === 0, 30_000, 'its agent has stopped')
    const asked = await speaker.owned<Task>('agents.getTask', {
      did: listener.key.did,
      agent: 'clerk',
      params: { id },
    })
    expect([asked.status.state, ended(asked)]).toEqual(['TASK_STATE_CANCELED', 'revoked'])
    const caller = { kind: 'bearer', token, door: 'http' } as const
    await expect(listener.service.perform(caller, 'files.refs', {})).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    await wroteNothing(listener, id)
    expect((await listener.records()).findLast(({ run }) => run === id)).toMatchObject({
      outcome: 'refused',
      effect: { ended: 'revoked' },
    })
  })

  test('L1.3 writes nothing from the batch on in which the revocation came', async () => {
    const cast = await threeNodes()
    const { speaker, listener } = cast
    const { id, gate, token } = await begin(cast)
    // as from a statement that came along with something else: nobody rings
    await listener.store.transact((tx) => revoke(tx, revocationOf(cast), NOW))
    const before = await listener.dump()
    const caller = { kind: 'bearer', token, door: 'http' } as const
    const writing = listener.service.perform(caller, 'files.write', {
      branch: `runs/${id}`,
      path: 'late.md',
      text: 'late',
    })
    await expect(writing).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
    expect(await listener.dump()).toEqual(before)
    // nor does its result count
    await writeFile(gate, '')
    expect(ended(await taskIn(listener, speaker.key.did, id, 'TASK_STATE_CANCELED'))).toBe('revoked')
    await wroteNothing(listener, id)
  })

  test('L1.3 is canceled when no young word is to be had on it any more', async () => {
    const cast = await threeNodes({ maxAgeMs: 1000 })
    const { speaker, listener, network, clock, nas } = cast
    const { id } = await begin(cast)
    network.away.add(nas.key.did)
    clock.advance(1001)
    const task = await taskIn(listener, speaker.key.did, id, 'TASK_STATE_CANCELED')
    expect(ended(task)).toBe('revocation_stale')
    await wroteNothing(listener, id)
  })

  test('L1.3 goes on without a young word where it was only a request, and changes nothing', async () => {
    const cast = await threeNodes({ maxAgeMs: 1000 })
    const { speaker, listener, network, clock, nas } = cast
    const first = await begin(cast, 'request')
    network.away.add(nas.key.did)
    clock.advance(1001)
    const second = await begin(cast, 'request')
    const caller = { kind: 'bearer', token: first.token, door: 'http' } as const
    const write = (path: string) =>
      listener.service.perform(caller, 'files.write', {
        branch: `runs/${first.id}`,
        path,
        text: path,
      })
    const before = await listener.dump()
    await expect(write('a.md')).rejects.toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'revocation_stale' },
    })
    // nor by git, whatever it would bring
    const port: MessagePort = {
      send: async () => undefined,
      receive: async () => undefined,
      close: async () => undefined,
      abort: () => undefined,
    }
    const main = getRef(listener.store.view(), listener.home, 'main')?.commit ?? ''
    const push = (name: string) =>
      listener.service.attend(caller, 'git.push', { changes: [{ name, from: null, to: main }] }, port)
    await expect(push(`refs/heads/runs/${first.id}`)).rejects.toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'revocation_stale' },
    })
    expect(await listener.dump()).toEqual(before)
    network.away.delete(nas.key.did)
    // the runs ask for a word meanwhile
    await until(async () => (await codeOf(write('b.md'))) === 'done', 30_000, 'there is a word again')
    await writeFile(first.gate, '')
    await taskIn(listener, speaker.key.did, first.id, 'TASK_STATE_COMPLETED')
    // what began without one is not given the right to change anything later
    const task = await taskIn(listener, speaker.key.did, second.id, 'TASK_STATE_FAILED')
    expect(task.metadata?.['urn:csb:ext:error:v1']?.['code']).toBe('SCOPE_EXCEEDED')
    await wroteNothing(listener, second.id)
  })

  test('L1.3 is canceled when its time is over', async () => {
    const cast = await threeNodes({ maxAgeMs: 1000 })
    const { speaker, listener, clock } = cast
    const { id } = await begin(cast, 'request')
    clock.advance(HOUR)
    expect(ended(await taskIn(listener, speaker.key.did, id, 'TASK_STATE_CANCELED'))).toBe('expired')
    await wroteNothing(listener, id)
  })

  test('DEL-003.3.4 is canceled when its origin is trusted no more', async () => {
    const cast = await threeNodes()
    const { nas, speaker, listener } = cast
    const { id } = await begin(cast)
    await listener.owned('authority.untrust', { did: nas.owner.did })
    expect(ended(await taskIn(listener, speaker.key.did, id, 'TASK_STATE_CANCELED'))).toBe('untrusted_root')
  })

  test('L1.3 does not begin where it was revoked while it waited for its turn', async () => {
    const network = createNetwork()
    const house = await createHouse({ network, config: { agents: { runs: 1 } } })
    await attach(house)
    const speaker = createSpeaker()
    await listed(house, speaker)
    const grant = speaker.grant(house)
    const gate = join(house.store.directory, 'go')
    const send = async (text: string, by: Speaker = speaker) =>
      taskOf(
        await deliver(
          house,
          by,
          envelopeOf(house, by, { text, grants: [grant], configuration: { returnImmediately: true } }),
        ),
      )
    const first = await send(`hold ${gate}`)
    await taskIn(house, speaker.key.did, first.id, 'TASK_STATE_WORKING')
    const second = await send('write results/a.md x')
    await house.owned('authority.revoke', signRevocation({ target: grantHash(grant), now: NOW }, speaker.origin))
    for (const { id } of [first, second]) {
      expect(ended(await taskIn(house, speaker.key.did, id, 'TASK_STATE_CANCELED'))).toBe('revoked')
      await wroteNothing(house, id)
    }
  })
})

test('DEL-003.3.4 a run on what a person wrote down ends when that is taken back', async () => {
  const house = await createHouse()
  await attach(house)
  const speaker = createSpeaker()
  const speaks = { name: 'Ines', scope: ['reports'], level: 'execute' as const, until: null }
  await house.owned('authority.trust', { did: speaker.key.did, name: 'laptop', ceiling: 'execute', speaks })
  const gate = join(house.store.directory, 'go')
  const envelope = envelopeOf(house, speaker, {
    text: `hold ${gate}`,
    configuration: { returnImmediately: true },
    envelope: { authority: { delegated_by: 'Ines', scope: ['reports'], level: 'execute', issued_at: NOW } },
  })
  const { id } = taskOf(await deliver(house, speaker, envelope))
  await taskIn(house, speaker.key.did, id, 'TASK_STATE_WORKING')
  await house.owned('authority.trust', { did: speaker.key.did, name: 'laptop', ceiling: 'execute' })
  expect(ended(await taskIn(house, speaker.key.did, id, 'TASK_STATE_CANCELED'))).toBe('untrusted_root')
  await wroteNothing(house, id)
})

describe('L1.3 a run for the holder of a lease', () => {
  async function working(ttlMs = HOUR) {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    await attach(house)
    const caller = await house.leased({ actions: ['list', 'read', 'write', 'send'] }, { ttlMs, maxAgeMs: 1000 })
    const gate = join(house.store.directory, 'go')
    onTestFinished(() => writeFile(gate, '').catch(() => undefined))
    const send = () =>
      house.service.perform(caller, 'agents.send', {
        agent: 'clerk',
        params: { message: messageOf(`hold ${gate}`), configuration: { returnImmediately: true } },
      }) as Promise<{ task: Task }>
    const { task } = await send()
    const owner = await until(() => house.parts.runs.active.get(task.id)?.owner, 30_000, 'it runs')
    await taskIn(house, owner, task.id, 'TASK_STATE_WORKING')
    return { house, clock, caller, owner, id: task.id, send }
  }

  test('L1.3 ends when the lease is revoked', async () => {
    const { house, caller, owner, id, send } = await working()
    await house.owned('authority.revoke', signRevocation({ target: caller.hash, now: NOW }, house.owner))
    const task = await taskIn(house, owner, id, 'TASK_STATE_CANCELED')
    expect(wordsOf(task)).toBe('ended, its authority does not hold: revoked')
    await wroteNothing(house, id)
    expect(await codeOf(send())).toBe('LEASE_REVOKED')
  })

  test('L1.3 ends with the lease, and its own lease never outlives that', async () => {
    const { house, clock, owner, id } = await working(60_000)
    clock.advance(60_000)
    // as a timer would, whose time is not this clock's
    house.parts.runs.bell.ring()
    const task = await taskIn(house, owner, id, 'TASK_STATE_CANCELED')
    expect(wordsOf(task)).toBe('ended, its authority does not hold: expired')
    await wroteNothing(house, id)
  })
})
