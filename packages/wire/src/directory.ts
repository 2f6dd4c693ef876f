/**
 * Agent records that were heard or looked up, in memory, bounded. Who stands here is found without asking anybody.
 *
 * Every record here was verified before, and is the newest that was seen of its did.
 */
import { LIMITS, type AgentRecord, type Clock } from '@csb/core'

export type Directory = {
  /** Keep a verified record, unless a newer one is kept. */
  keep(record: AgentRecord): void
  /** Undefined where it is unknown or has expired; a withdrawn record is given. */
  get(did: string): AgentRecord | undefined
  /** Records in force that offer a capability, at most `limit`. */
  offering(capability: string, limit: number): readonly AgentRecord[]
}

/** @param most records kept; default {@link LIMITS.directoryRecords} */
export function createDirectory(clock: Clock, most: number = LIMITS.directoryRecords): Directory {
  /** oldest heard first */
  const records = new Map<string, AgentRecord>()

  const get = (did: string): AgentRecord | undefined => {
    const record = records.get(did)
    if (record === undefined || record.expires_at > clock.now()) return record
    records.delete(did)
    return undefined
  }
  return {
    get,
    keep: (record) => {
      const kept = records.get(record.did)
      if (kept !== undefined && kept.seq > record.seq) return
      records.delete(record.did)
      records.set(record.did, record)
      const oldest = records.size > most ? records.keys().next().value : undefined
      if (oldest !== undefined) records.delete(oldest)
    },
    offering: (capability, limit) => {
      const found: AgentRecord[] = []
      for (const did of [...records.keys()].toReversed()) {
        if (found.length >= limit) break
        const record = get(did)
        if (record !== undefined && offers(record, capability)) found.push(record)
      }
      return found
    },
  }
}

/** True for a record that is not withdrawn and names the capability. */
export function offers(record: AgentRecord, capability: string): boolean {
  return !record.withdrawn && record.capabilities.includes(capability)
}
