/**
 * What this node says of itself to the network: one signed record with its agents, renewed well before it ends,
 * withdrawn when no agent is left to offer.
 * @clause A2A-005, A2A-012
 */
import type { AgentRecord } from '@csb/core'
import { acceptAgentRecord, agentCard, agentRecord, cardHash, listAgents, nextRecordSeq } from '@csb/agents'
import type { Parts } from './operation.ts'

/** Sign a new record and put it where it can be found. */
export async function publishRecord(parts: Parts): Promise<AgentRecord> {
  const record = await renewRecord(parts, false)
  await parts.peers.publish(record)
  return record
}

/** Say that this node is gone. */
export async function withdrawRecord(parts: Parts): Promise<void> {
  await parts.peers.publish(await renewRecord(parts, true))
}

async function renewRecord({ store, clock, key, identity, peers, httpUrl }: Parts, withdrawn: boolean): Promise<AgentRecord> {
  const offered = (await listAgents(store.view())).filter(({ accept }) => accept !== 'nobody')
  const { name, did, peer_id: peerId } = identity
  return store.transact((tx) => {
    const now = clock.now()
    const record = agentRecord(
      {
        name,
        seq: nextRecordSeq(tx, did, now),
        capabilities: withdrawn ? [] : offered.flatMap(({ skills }) => skills.map(({ id }) => id)),
        addresses: withdrawn ? [] : peers.addresses().slice(0, 16),
        agents: withdrawn
          ? []
          : offered.map((agent) => ({ id: agent.id, card: cardHash(agentCard({ agent, node: { name, did, peerId }, url: httpUrl() })) })),
        withdrawn,
        now,
      },
      key,
    )
    acceptAgentRecord(tx, record)
    return record
  })
}
