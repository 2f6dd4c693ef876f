/**
 * What this node says of itself to the network: one signed record with its agents, renewed well before it ends,
 * withdrawn when no agent is left to offer.
 * @clause A2A-005, A2A-012
 */
import { isNodeError, peerIdFromDid, type AgentRecord, type Clock } from '@csb/core'
import {
  acceptAgentRecord,
  agentCard,
  agentRecord,
  cardHash,
  listAgents,
  nextRecordSeq,
  verifyAgentRecord,
  verifyCard,
} from '@csb/agents'
import type { Store } from '@csb/store'
import type { Parts } from '../operation.ts'

/** Sign a new record and put it where it can be found. */
export async function publishRecord(parts: Parts, signal?: AbortSignal): Promise<AgentRecord> {
  const record = await renewRecord(parts, false)
  await parts.peers.publish(record, signal === undefined ? {} : { signal })
  return record
}

/** Say that this node is gone. */
export async function withdrawRecord(parts: Parts): Promise<void> {
  await parts.peers.publish(await renewRecord(parts, true))
}

async function renewRecord(
  { store, clock, key, identity, peers, httpUrl }: Parts,
  withdrawn: boolean,
): Promise<AgentRecord> {
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
          : offered.map((agent) => ({
              id: agent.id,
              card: cardHash(agentCard({ agent, node: { name, did, peerId }, url: httpUrl() })),
            })),
        withdrawn,
        now,
      },
      key,
    )
    acceptAgentRecord(tx, record)
    return record
  })
}

/** How the network door judges records and cards: it asks here and holds no rule itself. */
export function createRecordBook(store: Store, clock: Clock) {
  return {
    verify: (value: unknown, did: string): AgentRecord | undefined => {
      try {
        return verifyAgentRecord(value, did, clock.now())
      } catch (error) {
        if (isNodeError(error)) return undefined
        throw error
      }
    },
    accept: async (record: AgentRecord): Promise<boolean> => {
      try {
        await store.transact((tx) => acceptAgentRecord(tx, record))
        return true
      } catch (error) {
        if (isNodeError(error, 'REPLAYED')) return false
        throw error
      }
    },
  }
}

/** @param hash what the node's record names for that agent, or null where only the signature is to be checked */
export function isCardOf(card: unknown, did: string, hash: string | null): boolean {
  try {
    const checked = verifyCard(card, peerIdFromDid(did))
    return hash === null || cardHash(checked) === hash
  } catch {
    return false
  }
}
