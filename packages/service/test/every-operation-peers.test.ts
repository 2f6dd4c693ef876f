/** What other nodes hear: whatever they say by whatever protocol, nothing of what is not for them. */
import { describe, expect, test } from 'vitest'
import { createKeyPair, type KeyPair } from '@csb/core'
import { createEnvelope } from '@csb/agents'
import { signCompromise, signKeyChange, signRevocation } from '@csb/authority'
import { NOW, messageOf, visitor } from './house.ts'
import { PLANTED, plant, type Plants } from './every-operation-plants.ts'
import { ask, createWorld, grantOf, remember, type World } from './every-operation-rig.ts'
import { ROWS } from './every-operation-rows.ts'

type Try = { readonly operation: string; readonly input: object; readonly says?: readonly unknown[] }

/** What somebody tries who has a key and nothing else, or what a friend has. */
function tries({ house, friend }: World, { task, grant, heads }: Plants, key: KeyPair): readonly Try[] {
  const { home } = house
  const body = (method: string, params: object) => ({
    jsonrpc: '2.0' as const,
    id: 'r1',
    method,
    params: { ...params },
  })
  const letter = (method: string, params: object, agent = 'clerk') => ({
    operation: 'agents.deliver',
    input: { envelope: createEnvelope({ from: key.did, to: house.key.did, agent, body: body(method, params) }, NOW) },
  })
  const session = (operation: string, input: object, ...says: unknown[]): Try => ({ operation, input, says })
  const message = (more: object = {}) => ({ message: messageOf('show', more) })
  const own = { id: home, owner: house.owner.did, origin: house.key.did, hash: 'sha256' }
  return [
    letter('GetTask', { id: task, historyLength: 10 }),
    letter('ListTasks', { historyLength: 10, includeArtifacts: true }),
    letter('CancelTask', { id: task }),
    letter('SubscribeToTask', { id: task }),
    letter('SendMessage', message({ taskId: task })),
    letter('SendMessage', message()),
    letter('SendMessage', message(), 'vault'),
    letter('SendStreamingMessage', message()),
    letter('GetAgentCard', {}),
    ...['clerk', 'vault', undefined].map((agent) => ({
      operation: 'agents.card',
      input: agent === undefined ? {} : { agent },
    })),
    { operation: 'agents.card', input: { agent: 'clerk', did: friend.key.did } },
    session('sync.serve', { home }, { home: own, credential: null }),
    session('sync.serve', { home }, { home: own, credential: [grantOf(friend, { to: { name: 'x', did: key.did } })] }),
    session('sync.serve', { home: 'home_bbbbbbbbbbbbbbbbbbbbbbbbbb' }, { home: own, credential: null }),
    session('authority.receive', {}, { status: [house.key.did, house.owner.did, friend.key.did] }),
    session('authority.receive', {}, { chain: [grantOf(friend, { to: { name: 'x', did: key.did } })] }),
    session('authority.receive', {}, { revocation: signRevocation({ target: grant, now: NOW }, key).revocation }),
    session('authority.receive', {}, signRevocation({ target: grant, now: NOW }, key)),
    session(
      'authority.receive',
      {},
      {
        key_statement: signKeyChange({ old: key, next: createKeyPair(), seq: 1, effectiveAt: NOW }),
      },
    ),
    session('authority.receive', {}, { key_statement: signCompromise(house.owner.did, NOW, key) }),
    session('authority.receive', {}, { anything: heads }),
    session('witness.serve', {}, { prove: [0, 1] }),
    session('witness.serve', {}, { compare: ['ab'.repeat(32)] }),
    session('witness.serve', {}, { add_checkpoint: 'old 0' }),
    session('handoff.receive', {}, { home, task, grant }),
  ]
}

async function hear(world: World, key: KeyPair): Promise<string[]> {
  const plants = await plant(world)
  await remember(world, 'for friends', 'trusted:owner')
  const found: string[] = []
  for (const { operation, input, says } of tries(world, plants, key)) {
    const { text, code } = await ask(world, visitor(key.did), operation, input, says)
    const given = JSON.stringify([input, says])
    for (const word of Object.keys(PLANTED))
      if (text.includes(word) && !given.includes(word))
        found.push(`${word} by ${operation} ${given.slice(0, 160)} ${code}`)
  }
  return found
}

describe('L4.2 by every protocol', () => {
  test('L4.2 a stranger hears nothing that is hidden', async () => {
    expect(await hear(await createWorld(), createKeyPair())).toEqual([])
  })

  test('L4.2 a friend hears its own messages, and nothing else that is hidden', async () => {
    const world = await createWorld()
    const heard = await hear(world, world.friend.key)
    // what it sent itself comes back to it
    expect(heard.filter((one) => !one.startsWith('zqinbox by agents.deliver'))).toEqual([])
    await world.house.owned('sync.run', { did: world.friend.key.did })
    const sent = world.network.heard.filter(({ from }) => from === world.house.key.did).map(({ text }) => text)
    expect(sent.some((text) => text.includes('for friends'))).toBe(true)
    expect(Object.keys(PLANTED).filter((word) => sent.some((text) => text.includes(word)))).toEqual([])
  })

  test('L4.2 every protocol that there is was tried', async () => {
    const world = await createWorld()
    const tried = new Set(tries(world, await plant(world), createKeyPair()).map(({ operation }) => operation))
    expect(ROWS.filter(({ open, operation }) => open !== 'lease' && open !== 'owner' && !tried.has(operation))).toEqual(
      [],
    )
  })
})
