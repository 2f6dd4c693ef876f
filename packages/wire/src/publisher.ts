/**
 * Keeps this node's own record before the others: nobody else republishes it.
 *
 * It is put again every {@link LIMITS.republishMs}, when the routing table has doubled since (the first peers come
 * after the first publish), and announced again when more peers listen.
 */
import { LIMITS, delay, type AgentRecord, type Clock } from '@csb/core'
import type { CallOptions } from '@csb/service'
import type { Announcer } from './announce.ts'
import type { Discovery } from './discovery.ts'
import { wireError } from './errors.ts'
import { ANNOUNCE_TOPIC, type Host } from './host.ts'
import type { Log } from './protocol.ts'

export type Publisher = {
  /**
   * @param record mine; a withdrawn one withdraws
   * @throws REPLAYED, TOO_LARGE, PEER_UNREACHABLE
   */
  publish(record: AgentRecord, options?: CallOptions): Promise<void>
  /** Look now and then whether the record must be told again, until stopped. */
  start(): void
  stop(): void
}

export type PublisherInit = {
  readonly host: Host
  readonly discovery: Discovery
  readonly announcer: Announcer
  readonly clock: Clock
  readonly log: Log
}

const LOOK_EVERY_MS = 1_000
/** Fewer than what listeners pass on of one author, {@link LIMITS.announcesPerMinute}. */
const ANNOUNCE_EVERY_MS = 15_000

export function createPublisher({ host, discovery, announcer, clock, log }: PublisherInit): Publisher {
  const stopped = new AbortController()
  let current: AgentRecord | undefined
  let put = { at: 0, peers: 0 }
  let announced = { at: 0, listeners: 0 }

  const listeners = (): number => host.libp2p.services.pubsub.getSubscribers(ANNOUNCE_TOPIC).length
  const announce = async (record: AgentRecord): Promise<void> => {
    announced = { at: clock.now(), listeners: listeners() }
    await announcer.announce(record)
  }
  const putAll = async (record: AgentRecord, options: CallOptions): Promise<void> => {
    put = { at: clock.now(), peers: host.routingPeers() }
    const taken = await discovery.put(record, options)
    log('wire.published', { did: record.did, seq: record.seq, peers: taken })
  }
  const isPutDue = (): boolean => {
    const peers = host.routingPeers()
    return (peers > 0 && peers >= put.peers * 2) || clock.now() - put.at >= LIMITS.republishMs
  }
  const isAnnounceDue = (): boolean =>
    listeners() > announced.listeners && (announced.listeners === 0 || clock.now() - announced.at >= ANNOUNCE_EVERY_MS)

  const look = async (): Promise<void> => {
    if (current === undefined || current.expires_at <= clock.now()) return
    try {
      if (isAnnounceDue()) await announce(current)
      if (isPutDue()) await putAll(current, { signal: stopped.signal })
    } catch (thrown) {
      log('wire.publish-failed', { code: wireError(thrown).code })
    }
  }
  return {
    publish: async (record, options = {}) => {
      current = record
      await announce(record)
      await putAll(record, options)
    },
    start: () => {
      const watch = async (): Promise<void> => {
        for (;;) {
          await delay(LOOK_EVERY_MS, stopped.signal)
          await look()
        }
      }
      watch().catch(() => undefined) // stopped
    },
    stop: () => stopped.abort(),
  }
}
