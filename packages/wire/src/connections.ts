/**
 * Ways to a peer: an open connection where there is one, else a dial to the addresses that are known.
 *
 * New streams always go on an existing connection: a dial for every request would look addresses up again.
 */
import type { Connection, PeerId } from '@libp2p/interface'
import { CODE_P2P, multiaddr, type Multiaddr } from '@multiformats/multiaddr'
import { LIMITS, deadline, didFromPeerId, fail, publicKeyFromPeerId, type AgentRecord } from '@csb/core'
import type { CallOptions, PeerSummary } from '@csb/service'
import { dialError } from './errors.ts'
import { peerOf, type Host } from './host.ts'

export type Connections = {
  /**
   * An open connection to a peer.
   * @throws PEER_UNREACHABLE, TIMEOUT, INVALID_INPUT for a did that is no Ed25519 key or is my own
   */
  to(did: string, options?: CallOptions): Promise<Connection>
  /**
   * @param address multiaddr with /p2p/<peer id>
   * @returns did of the peer, which proved its key
   * @throws INVALID_INPUT, PEER_UNREACHABLE, TIMEOUT
   */
  dial(address: string, options?: CallOptions): Promise<string>
  /** Every Ed25519 peer that is known, connected ones first. */
  list(): Promise<readonly PeerSummary[]>
}

const PEER_IDS_KEPT = 1_024

/** @param findRecord where addresses come from when libp2p knows none */
export function createConnections(
  host: Host,
  findRecord: (did: string, options: CallOptions) => Promise<AgentRecord | undefined>,
): Connections {
  const { libp2p } = host

  const dialAll = async (target: Parameters<typeof libp2p.dial>[0], signal: AbortSignal): Promise<Connection> => {
    try {
      return await libp2p.dial(target, { signal })
    } catch (error) {
      throw dialError(error)
    }
  }

  /** the same few peers are asked again and again, and a peer id costs a decoding */
  const peerIds = new Map<string, PeerId>()
  const peerIdOf = (did: string): PeerId => {
    const known = peerIds.get(did)
    if (known !== undefined) return known
    if (peerIds.size >= PEER_IDS_KEPT) peerIds.clear()
    const peerId = peerOf(did)
    peerIds.set(did, peerId)
    return peerId
  }

  const to = async (did: string, options: CallOptions = {}): Promise<Connection> => {
    const peerId = peerIdOf(did)
    if (peerId.equals(libp2p.peerId)) fail('INVALID_INPUT', { reason: 'that is this node itself', did })
    const open = libp2p.getConnections(peerId).find(isUsable)
    if (open !== undefined) return open
    const signal = deadline(LIMITS.requestTimeoutMs, options.signal)
    const known = await libp2p.peerStore.get(peerId).catch(() => undefined)
    if (known !== undefined && known.addresses.length > 0) {
      const connection = await dialAll(peerId, signal).catch(() => undefined)
      if (connection !== undefined) return connection
    }
    const record = await findRecord(did, { signal })
    const addresses = (record?.addresses ?? []).flatMap((address) => addressOf(address, peerId.toString()) ?? [])
    if (addresses.length === 0) fail('PEER_UNREACHABLE', { did, reason: 'no address is known' })
    return dialAll(addresses, signal)
  }

  return {
    to,
    dial: async (address, options = {}) => {
      const { target, peerId } = parsePeerAddress(address)
      const did = didFromPeerId(peerId)
      if (peerId === libp2p.peerId.toString()) fail('INVALID_INPUT', { reason: 'that is this node itself', address })
      await dialAll(target, deadline(LIMITS.requestTimeoutMs, options.signal))
      return did
    },
    list: async () => {
      const known = new Map<string, readonly string[]>()
      for (const connection of libp2p.getConnections()) {
        known.set(connection.remotePeer.toString(), [connection.remoteAddr.toString()])
      }
      for (const { id, addresses } of await libp2p.peerStore.all({ limit: LIMITS.directoryRecords })) {
        if (addresses.length > 0)
          known.set(
            id.toString(),
            addresses.map((entry) => entry.multiaddr.toString()),
          )
      }
      const connected = new Set(libp2p.getPeers().map((peer) => peer.toString()))
      const summaries = [...known].flatMap(([peerId, addresses]): PeerSummary[] =>
        publicKeyFromPeerId(peerId) === undefined
          ? []
          : [{ did: didFromPeerId(peerId), peerId, addresses, connected: connected.has(peerId) }],
      )
      return summaries.sort((a, b) => Number(b.connected) - Number(a.connected) || compare(a.did, b.did))
    },
  }
}

/**
 * @param address multiaddr that ends in /p2p/<peer id>
 * @throws INVALID_INPUT
 */
export function parsePeerAddress(address: string): { readonly target: Multiaddr; readonly peerId: string } {
  const target = parseAddress(address)
  const peerId = peerIdIn(target) ?? fail('INVALID_INPUT', { reason: 'the address has no /p2p/ part', address })
  return { target, peerId }
}

/** @throws INVALID_INPUT */
export function parseAddress(address: string): Multiaddr {
  try {
    return multiaddr(address)
  } catch (error) {
    return fail('INVALID_INPUT', { reason: 'not a multiaddr', address }, error)
  }
}

/** The peer id that an address ends in, or undefined. */
function peerIdIn(address: Multiaddr): string | undefined {
  return address.getComponents().findLast((component) => component.code === CODE_P2P)?.value
}

const isUsable = (connection: Connection): boolean => connection.status === 'open' && connection.limits === undefined
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Only addresses of that very peer are dialled: a record must not send us to somebody else. */
function addressOf(text: string, peerId: string): Multiaddr | undefined {
  try {
    const address = multiaddr(text)
    const named = peerIdIn(address)
    if (named === undefined) return address.encapsulate(`/p2p/${peerId}`)
    return named === peerId ? address : undefined
  } catch {
    return undefined
  }
}
