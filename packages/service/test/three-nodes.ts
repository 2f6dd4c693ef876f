/** Three nodes: one that answers for its owner's grants, one that speaks by them, one that listens. */
import { createFakeClock, type FakeClock, type Grant } from '@csb/core'
import { trust, type GrantInit, type Rank } from '@csb/authority'
import { HOUR, NOW, attach, createHouse, messageOf, wordsOf, type House, type Task } from './house.ts'
import { createNetwork, type Network } from './network.ts'

export type Cast<N extends Network = Network> = {
  readonly nas: House
  readonly speaker: House
  readonly listener: House
  readonly network: N
  readonly clock: FakeClock
  readonly grant: Grant
}

/** The owner of the nas lets the speaker speak to the listener, and shows it the grant. */
export async function threeNodes<N extends Network = Network>(
  more: Partial<GrantInit> = {},
  network: N = createNetwork() as N,
): Promise<Cast<N>> {
  const clock = createFakeClock(NOW)
  const nas = await createHouse({ name: 'nas', network, clock })
  const speaker = await createHouse({ name: 'speaker', network, clock })
  const listener = await createHouse({ name: 'listener', network, clock })
  for (const house of [speaker, listener])
    await house.store.transact((tx) =>
      trust(tx, { did: nas.owner.did, name: 'Ines', ceiling: 'override', clearance: { level: 'trusted', tags: [] } }),
    )
  await attach(listener)
  const grant = await nas.grant({
    type: 'scoped',
    to: { name: 'speaker', did: speaker.key.did },
    audience: [listener.key.did],
    scope: ['reports'],
    level: 'execute',
    ttlMs: HOUR,
    ...more,
  })
  await nas.owned('authority.distribute', { did: speaker.key.did, chain: [grant] })
  return { nas, speaker, listener, network, clock, grant }
}

/** @returns what the listener's agent says at the end */
export async function speak({ speaker, listener, grant }: Cast, level: Rank = 'execute'): Promise<string> {
  const { task } = await speaker.owned<{ task: Task }>('agents.send', {
    did: listener.key.did,
    agent: 'clerk',
    params: { message: messageOf('hello') },
    delegation: grant.delegation.id,
    level,
  })
  return wordsOf(task)
}
