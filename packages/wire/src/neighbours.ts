/**
 * Peers that mDNS or the DHT names become connections, as long as this node has few.
 *
 * Both sides hear of each other at once. The one with the smaller peer id dials; the other waits a little and
 * dials only where nothing came, so that there is one connection and not two.
 */
import type { PeerInfo } from '@libp2p/interface'
import { delay, random } from '@csb/core'
import type { Host } from './host.ts'

/** Enough for a gossip mesh and a routing table; more come by themselves as they are needed. */
const ENOUGH_CONNECTIONS = 16
const SECOND_DIALLER_WAITS_MS = 1_000

/** @returns a function that ends it */
export function greetNeighbours(host: Host): () => void {
  const { libp2p } = host
  const stopped = new AbortController()
  const greeting = new Set<string>()

  const greet = async ({ id, multiaddrs }: PeerInfo): Promise<void> => {
    if (libp2p.peerId.toString() > id.toString()) {
      await delay(SECOND_DIALLER_WAITS_MS * (1 + (random(1)[0] ?? 0) / 255), stopped.signal)
    }
    if (libp2p.getConnections(id).length > 0) return
    // the peer store may not have them yet
    const addresses = multiaddrs.map((address) => address.encapsulate(`/p2p/${id.toString()}`))
    await libp2p.dial(addresses.length > 0 ? addresses : id, { signal: stopped.signal })
  }
  const onDiscovery = ({ detail }: CustomEvent<PeerInfo>): void => {
    const peerId = detail.id.toString()
    const wanted = libp2p.getConnections().length < ENOUGH_CONNECTIONS && libp2p.getConnections(detail.id).length === 0
    if (!wanted || greeting.has(peerId)) return
    greeting.add(peerId)
    greet(detail)
      .catch(() => undefined) // it is named again while it is there
      .finally(() => greeting.delete(peerId))
  }
  libp2p.addEventListener('peer:discovery', onDiscovery)
  return () => {
    stopped.abort()
    libp2p.removeEventListener('peer:discovery', onDiscovery)
  }
}
