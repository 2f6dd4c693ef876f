/**
 * Finding agents: signed records by did and providers by capability, in the DHT.
 *
 * Nothing that comes from the DHT is believed: each answer is verified here, the newest of a quorum counts, and
 * the library's own choice is not used (it fails where one peer holds an old record and refuses the new one).
 * Absence proves nothing and is told as "not found".
 * @clause A2A-012
 */
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import {
  LIMITS,
  canonicalize,
  deadline,
  didFromPeerId,
  fail,
  fromUtf8,
  parseBounded,
  publicKeyFromPeerId,
  utf8,
  type AgentRecord,
} from '@csb/core'
import type { CallOptions } from '@csb/service'
import { offers, type Directory } from './directory.ts'
import { wireError } from './errors.ts'
import { RECORD_NAMESPACE, type Host } from './host.ts'

/** How records are judged. The rules live with the agents; this door asks. */
export type RecordBook = {
  /**
   * @param value parsed JSON from anybody
   * @returns the record where schema, size, times and signature hold and it is of `did`
   */
  verify(value: unknown, did: string): AgentRecord | undefined
  /** Remember a verified record. False where a newer one of its did was seen before. The same one again is true. */
  accept(record: AgentRecord): boolean | Promise<boolean>
}

export type Discovery = {
  /** The newest verified record of a did, or undefined where nobody gave one in time. */
  findRecord(did: string, options?: CallOptions): Promise<AgentRecord | undefined>
  /** Verified records of providers that still offer the capability. */
  findProviders(capability: string, limit: number, options?: CallOptions): Promise<readonly AgentRecord[]>
  /**
   * Put a record of mine into the DHT and provide its capabilities; those it no longer names, or all of a
   * withdrawn one, are provided no more.
   * @returns how many peers took the record
   */
  put(record: AgentRecord, options?: CallOptions): Promise<number>
}

/** Providers that are asked about at once, and in all, for each one wanted. */
const PROVIDERS_AT_ONCE = 4
const CANDIDATES_PER_RESULT = 3

const keyOf = (did: string): Uint8Array => utf8(`/${RECORD_NAMESPACE}/${did}`)

/**
 * The rule for DHT values: who puts, answers or reads one passes here. The selector is never asked on a put, so
 * the validator alone keeps an old record from replacing a newer one. What passes is known from then on.
 */
export function recordRules(book: RecordBook, directory: Directory) {
  return {
    /** @throws MALFORMED, REPLAYED */
    validateRecord: async (key: Uint8Array, value: Uint8Array): Promise<void> => {
      const record = readRecord(book, didIn(key), value)
      if (record === undefined) fail('MALFORMED', { reason: 'not a record of that did in force' })
      if (!(await book.accept(record))) fail('REPLAYED', { did: record.did, seq: record.seq })
      directory.keep(record)
    },
    selectRecord: (key: Uint8Array, values: readonly Uint8Array[]): number => {
      const seqs = values.map((value) => readRecord(book, didIn(key), value)?.seq ?? -1)
      return Math.max(0, seqs.indexOf(Math.max(...seqs)))
    },
  }
}

export function createDiscovery(host: Host, book: RecordBook, directory: Directory): Discovery {
  const dht = host.libp2p.services.dht
  let provided: readonly string[] = []

  const keep = async (record: AgentRecord): Promise<void> => {
    if (await book.accept(record)) directory.keep(record)
  }

  const lookUp = async (did: string, signal: AbortSignal): Promise<AgentRecord | undefined> => {
    if (host.routingPeers() === 0) return undefined
    let best: AgentRecord | undefined
    let votes = 0
    try {
      for await (const event of dht.get(keyOf(did), { signal })) {
        const value = event.name === 'PEER_RESPONSE' ? event.record?.value : undefined
        const record = value === undefined ? undefined : readRecord(book, did, value)
        if (record === undefined) continue
        votes++
        if (best === undefined || record.seq > best.seq) best = record
        if (votes >= LIMITS.dhtQuorum) break
      }
    } catch (thrown) {
      // what was verified before the query broke off is worth no less
      if (best === undefined && wireError(thrown).code !== 'TIMEOUT') throw wireError(thrown)
    }
    return best
  }

  const findRecord = async (did: string, options: CallOptions = {}): Promise<AgentRecord | undefined> => {
    const heard = directory.get(did)
    if (heard !== undefined) return heard
    const found = await lookUp(did, deadline(LIMITS.dhtTimeoutMs, options.signal))
    if (found !== undefined) await keep(found)
    return directory.get(did)
  }

  const candidates = async (capability: string, most: number, signal: AbortSignal): Promise<readonly string[]> => {
    const dids = new Set<string>()
    if (host.routingPeers() === 0) return []
    try {
      for await (const event of dht.findProviders(await cidOf(capability), { signal })) {
        if (event.name !== 'PROVIDER') continue
        for (const { id } of event.providers) {
          const peerId = id.toString()
          if (publicKeyFromPeerId(peerId) !== undefined) dids.add(didFromPeerId(peerId))
        }
        if (dids.size >= most) break
      }
    } catch (thrown) {
      if (dids.size === 0 && wireError(thrown).code !== 'TIMEOUT') throw wireError(thrown)
    }
    return [...dids].slice(0, most)
  }

  return {
    findRecord,
    findProviders: async (capability, limit, options = {}) => {
      const found = new Map(directory.offering(capability, limit).map((record) => [record.did, record]))
      if (found.size >= limit) return [...found.values()]
      const signal = deadline(LIMITS.dhtTimeoutMs, options.signal)
      const waiting = (await candidates(capability, limit * CANDIDATES_PER_RESULT, signal)).filter(
        (did) => !found.has(did),
      )
      const work = async (): Promise<void> => {
        for (let did = waiting.shift(); did !== undefined && found.size < limit; did = waiting.shift()) {
          // a provider whose record can not be had is no provider
          const record = await findRecord(did, { signal }).catch(() => undefined)
          if (record !== undefined && offers(record, capability) && found.size < limit) found.set(did, record)
        }
      }
      await Promise.all(Array.from({ length: PROVIDERS_AT_ONCE }, work))
      return [...found.values()]
    },
    put: async (record, options = {}) => {
      const body = utf8(canonicalize(record))
      if (body.byteLength > LIMITS.agentRecordBytes) fail('TOO_LARGE', { maxBytes: LIMITS.agentRecordBytes })
      if (!(await book.accept(record))) fail('REPLAYED', { did: record.did, seq: record.seq })
      directory.keep(record)
      const offered = record.withdrawn ? [] : record.capabilities
      for (const gone of provided) if (!offered.includes(gone)) await dht.cancelReprovide(await cidOf(gone))
      provided = offered
      if (host.routingPeers() === 0) return 0
      const signal = deadline(LIMITS.requestTimeoutMs, options.signal)
      let taken = 0
      try {
        for await (const event of dht.put(keyOf(record.did), body, { signal })) {
          if (event.name === 'PEER_RESPONSE' && event.messageName === 'PUT_VALUE') taken++
        }
        for (const capability of offered) {
          for await (const _ of dht.provide(await cidOf(capability), { signal })) continue
        }
      } catch (thrown) {
        if (taken === 0) throw wireError(thrown)
      }
      return taken
    },
  }
}

/** Undefined where the bytes are too many, no JSON, or not a record of that did that holds. */
export function readRecord(book: RecordBook, did: string, value: Uint8Array): AgentRecord | undefined {
  if (value.byteLength > LIMITS.agentRecordBytes) return undefined
  const text = fromUtf8(value)
  if (text === undefined) return undefined
  try {
    return book.verify(parseBounded(text, LIMITS.agentRecordBytes), did)
  } catch {
    return undefined
  }
}

function didIn(key: Uint8Array): string {
  return (fromUtf8(key) ?? '').split('/')[2] ?? ''
}

async function cidOf(capability: string): Promise<CID> {
  return CID.createV1(raw.code, await sha256.digest(utf8(`csb-capability:${capability}`)))
}
