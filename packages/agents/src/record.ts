/**
 * Agent records: what a node says of itself in the DHT. Signed, small, numbered; a number never goes back.
 *
 * A record is worth nothing without its signature: who hands it over proves nothing.
 * @clause A2A-012
 */
import {
  LIMITS,
  canonicalize,
  fail,
  signDocument,
  validate,
  verifyDocument,
  type AgentRecord,
  type KeyPair,
} from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'

export type AgentRecordInput = {
  readonly name: string
  /** see {@link nextRecordSeq} */
  readonly seq: number
  readonly capabilities: readonly string[]
  /** multiaddrs */
  readonly addresses: readonly string[]
  /** agents that take messages, each with the hash of its card; at most 16 */
  readonly agents: readonly { readonly id: string; readonly card: string }[]
  readonly withdrawn?: boolean
  /** ms since epoch */
  readonly now: number
  /** default and most {@link LIMITS.agentRecordTtlMs} */
  readonly ttlMs?: number
}

/**
 * Make and sign the record of the node that holds `signer`. Capabilities are sorted and each named once.
 * @throws INVALID_INPUT, TOO_LARGE above {@link LIMITS.agentRecordBytes}
 */
export function agentRecord(input: AgentRecordInput, signer: KeyPair): AgentRecord {
  const body = {
    v: 1 as const,
    did: signer.did,
    name: input.name,
    seq: input.seq,
    issued_at: input.now,
    expires_at: input.now + Math.min(input.ttlMs ?? LIMITS.agentRecordTtlMs, LIMITS.agentRecordTtlMs),
    withdrawn: input.withdrawn ?? false,
    capabilities: [...new Set(input.capabilities)].sort(),
    addresses: [...input.addresses],
    agents: [...input.agents],
  }
  const record = validate('AgentRecord', { ...body, signature: signDocument('agentRecord', body, signer) })
  checkSize(record)
  return record
}

/**
 * Check a record that came from anybody.
 * @param did whose record it must be
 * @param now ms since epoch
 * @throws TOO_LARGE; MALFORMED with `reason`: schema errors, did, lifetime, future, expired, signature
 */
export function verifyAgentRecord(value: unknown, did: string, now: number): AgentRecord {
  const record = validate('AgentRecord', value, 'MALFORMED')
  checkSize(record)
  if (record.did !== did) fail('MALFORMED', { reason: 'did' })
  if (record.expires_at <= record.issued_at || record.expires_at - record.issued_at > LIMITS.agentRecordTtlMs) {
    fail('MALFORMED', { reason: 'lifetime' })
  }
  if (record.issued_at > now + LIMITS.clockSkewMs) fail('MALFORMED', { reason: 'future' })
  if (record.expires_at <= now) fail('MALFORMED', { reason: 'expired' })
  const { signature, ...body } = record
  if (!verifyDocument('agentRecord', body, signature, did)) fail('MALFORMED', { reason: 'signature' })
  return record
}

/**
 * Keep a record that {@link verifyAgentRecord} passed, where it is newer than the one kept.
 * @returns true where it was new, false where it is the one kept already
 * @throws REPLAYED where a higher number was seen, or another record under the same one
 */
export function acceptAgentRecord(tx: Transaction, record: AgentRecord): boolean {
  const kept = getAgentRecord(tx, record.did)
  if (kept !== undefined && kept.seq >= record.seq) {
    if (kept.signature === record.signature) return false
    fail('REPLAYED', { did: record.did, seq: record.seq, highest: kept.seq })
  }
  tx.putJson(key('agentRecord', record.did), record)
  return true
}

/** The newest record seen of a node; it may have expired or be withdrawn. */
export function getAgentRecord(view: View, did: string): AgentRecord | undefined {
  return view.getJson<AgentRecord>(key('agentRecord', did))
}

/**
 * Records that are in force at `now`, by did; only those that offer `capability` where one is given.
 * @clause A2A-006
 */
export async function listAgentRecords(view: View, now: number, capability?: string): Promise<AgentRecord[]> {
  const records: AgentRecord[] = []
  for await (const [k] of view.range({ prefix: prefix('agentRecord') })) {
    const record = view.getJson<AgentRecord>(k)
    if (record === undefined || record.withdrawn || record.expires_at <= now) continue
    if (capability === undefined || record.capabilities.includes(capability)) records.push(record)
  }
  return records
}

/**
 * The number for the next record of a node: above the last one, and at least the time, so that a data folder
 * that was restored from an old copy does not fall behind what the network has seen.
 */
export function nextRecordSeq(view: View, did: string, now: number): number {
  return Math.max(now, (getAgentRecord(view, did)?.seq ?? 0) + 1)
}

function checkSize(record: AgentRecord): void {
  if (Buffer.byteLength(canonicalize(record)) > LIMITS.agentRecordBytes)
    fail('TOO_LARGE', { maxBytes: LIMITS.agentRecordBytes })
}
