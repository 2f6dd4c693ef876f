/**
 * The libp2p door: one node on the network, seen from inside as {@link Peers}, from outside as the protocols of
 * `/protocols`. What comes in goes to the service; this door holds no rule of its own.
 */
import type { PeerId } from '@libp2p/interface'
import { LIMITS, deadline, didFromPeerId, fail, peerIdFromDid, publicKeyFromPeerId, type Clock } from '@csb/core'
import type { Peers, Service } from '@csb/service'
import { createAdmission, type AdmissionInit } from './admission.ts'
import { createAnnouncer } from './announce.ts'
import { createConnections, parseAddress, parsePeerAddress } from './connections.ts'
import type { LevelDb } from './datastore.ts'
import { createDirectory } from './directory.ts'
import { createDiscovery, recordRules, type RecordBook } from './discovery.ts'
import { createHost, type Host, type Profile } from './host.ts'
import { greetNeighbours } from './neighbours.ts'
import type { Log } from './protocol.ts'
import { askCard, serveCards } from './protocols/card.ts'
import { serveEnvelopes } from './protocols/envelope.ts'
import { openSession, serveSessions } from './protocols/session.ts'
import { createEnvelopeDialler } from './protocols/shared-stream.ts'
import { createPublisher } from './publisher.ts'
import { createRedialler } from './redial.ts'

export type WireConfig = {
  /** multiaddrs to listen at */
  readonly listen: readonly string[]
  /** multiaddrs with /p2p/<peer id>; dialled again for ever, as pinned peers are */
  readonly bootstrap: readonly string[]
  /** find nodes of the same network without configuration */
  readonly mdns: boolean
  readonly maxConnections: number
  readonly profile: Profile
  /** what one peer may ask for; defaults of {@link LIMITS} */
  readonly admission?: Omit<AdmissionInit, 'clock'>
}

export type WireInit = {
  /** 32-byte Ed25519 seed of the node */
  readonly seed: Uint8Array
  /** the node's database; the door keeps its own things in a sublevel */
  readonly db: LevelDb
  readonly config: WireConfig
  readonly records: RecordBook
  readonly cards: {
    /** @param hash what the agent's record names, or null where only the signature is to be checked */
    verify(card: unknown, did: string, hash: string | null): boolean
  }
  readonly clock: Clock
  readonly log: Log
}

export type Wire = {
  readonly peerId: string
  readonly did: string
  /** usable at once; it reaches peers after {@link Wire.listen} */
  readonly peers: Peers
  /** Start to listen, and bring what comes in to the service. Once. */
  listen(service: Pick<Service, 'perform' | 'open' | 'attend'>): Promise<void>
  stop(): Promise<void>
  /** Refuse these peers and close what is open to them. */
  block(dids: readonly string[]): Promise<void>
  /** Let these peers in again, or all; pinned ones are dialled at once. */
  unblock(dids?: readonly string[]): void
  /** @param address multiaddr with /p2p/<peer id>; the peer is dialled again for ever */
  pin(address: string): void
  unpin(did: string): void
}

/**
 * A node of the network that does not listen yet.
 * @throws INVALID_INPUT for an address that is none, or one of a bootstrap node without /p2p/
 */
export async function createWire({ seed, db, config, records, cards, clock, log }: WireInit): Promise<Wire> {
  const { bootstrap, ...rest } = config
  for (const address of config.listen) parseAddress(address)
  for (const address of bootstrap) parsePeerAddress(address)
  const directory = createDirectory(clock)
  const host = await createHost({ seed, db, clock, ...rest, bootstrap, ...recordRules(records, directory) })
  const { libp2p, gater } = host
  const discovery = createDiscovery(host, records, directory)
  const connections = createConnections(host, discovery.findRecord)
  const envelopes = createEnvelopeDialler(clock)
  const redialler = createRedialler(host)
  let publisher: ReturnType<typeof createPublisher> | undefined
  let farewell: (() => void) | undefined

  const peers: Peers = {
    addresses: () => libp2p.getMultiaddrs().map((address) => address.toString()),
    list: connections.list,
    dial: connections.dial,
    request: async function* (envelope, options = {}) {
      yield* envelopes.ask(await connections.to(envelope.to, options), envelope, options)
    },
    card: async (did, agent, hash, options = {}) => {
      const card = await askCard(await connections.to(did, options), agent, options)
      if (!cards.verify(card, did, hash)) fail('PEER_MISBEHAVED', { reason: 'the card does not verify', did, agent })
      return card
    },
    findRecord: discovery.findRecord,
    findProviders: discovery.findProviders,
    publish: async (record, options) => {
      if (publisher === undefined) fail('PEER_UNREACHABLE', { reason: 'the node does not listen yet' })
      await publisher.publish(record, options)
    },
    onConnect: (listener) => heedConnections(host, listener),
    session: async (did, kind, input, options = {}) =>
      openSession(await connections.to(did, options), kind, input, clock, options),
  }

  return {
    peerId: libp2p.peerId.toString(),
    did: didFromPeerId(libp2p.peerId.toString()),
    peers,
    listen: async (service) => {
      const admission = createAdmission({ ...config.admission, clock })
      const server = { host, service, admission, clock, log }
      await serveEnvelopes(server)
      await serveCards(server)
      await serveSessions(server)
      await host.start()
      publisher = createPublisher({
        host,
        discovery,
        announcer: createAnnouncer(host, records, directory, clock),
        clock,
        log,
      })
      publisher.start()
      farewell = greetNeighbours(host)
      for (const address of bootstrap) redialler.pin(address)
    },
    stop: async () => {
      redialler.stop()
      publisher?.stop()
      farewell?.()
      await host.stop()
    },
    block: (dids) => block(host, dids),
    unblock: (dids) => {
      if (dids === undefined) gater.blocked.clear()
      for (const did of dids ?? []) gater.blocked.delete(peerIdFromDid(did))
      redialler.hurry()
    },
    pin: redialler.pin,
    unpin: (did) => redialler.unpin(peerIdFromDid(did)),
  }
}

/** Peers with another kind of key are none of ours. */
function heedConnections({ libp2p }: Host, listener: (did: string) => void): () => void {
  const onPeer = ({ detail }: CustomEvent<PeerId>): void => {
    const peerId = detail.toString()
    if (publicKeyFromPeerId(peerId) !== undefined) listener(didFromPeerId(peerId))
  }
  libp2p.addEventListener('peer:connect', onPeer)
  return () => libp2p.removeEventListener('peer:connect', onPeer)
}

async function block({ libp2p, gater }: Host, dids: readonly string[]): Promise<void> {
  for (const did of dids) gater.blocked.add(peerIdFromDid(did))
  const open = libp2p.getConnections().filter(({ remotePeer }) => gater.blocked.has(remotePeer.toString()))
  await Promise.all(
    open.map((connection) =>
      connection
        .close({ signal: deadline(LIMITS.closeGraceMs) })
        .catch((error: unknown) => connection.abort(error as Error)),
    ),
  )
}
