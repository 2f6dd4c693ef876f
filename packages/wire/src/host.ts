/**
 * The one place where a libp2p node is put together. What it is made of, and every setting that was found to
 * matter, stands here and nowhere else.
 *
 * @clause A2A-001 the node's Ed25519 key is its peer id
 */
import { noise } from '@chainsafe/libp2p-noise'
import { bootstrap } from '@libp2p/bootstrap'
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys'
import { gossipsub, type GossipSub } from '@libp2p/gossipsub'
import { identify, identifyPush } from '@libp2p/identify'
import type { PeerId } from '@libp2p/interface'
import {
  kadDHT,
  passthroughMapper,
  type KadDHT,
  type SelectFn,
  type SingleKadDHT,
  type ValidateFn,
} from '@libp2p/kad-dht'
import { mdns } from '@libp2p/mdns'
import { peerIdFromString } from '@libp2p/peer-id'
import { ping, type Ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { yamux } from '@libp2p/yamux'
import { createLibp2p, type Libp2p } from 'libp2p'
import { LIMITS, peerIdFromDid, type Clock } from '@csb/core'
import { createDatastore, type LevelDb } from './datastore.ts'
import { createGater, type Gater } from './gater.ts'

export const PROTOCOL_KAD = '/csb/kad/1.0.0'
/** The DHT names its value keys `/<namespace>/<rest>`. */
export const RECORD_NAMESPACE = 'csb-agent'
export const ANNOUNCE_TOPIC = 'csb/announce/1'

/** `loopback`: many nodes share one address, so limits per address and liveness pings are off. */
export type Profile = 'lan' | 'loopback'

export type HostInit = {
  /** 32 bytes */
  readonly seed: Uint8Array
  readonly db: LevelDb
  readonly clock: Clock
  /** multiaddrs to listen at */
  readonly listen: readonly string[]
  /** multiaddrs with /p2p/<peer id> */
  readonly bootstrap: readonly string[]
  readonly mdns: boolean
  readonly maxConnections: number
  readonly profile: Profile
  readonly validateRecord: ValidateFn
  readonly selectRecord: SelectFn
}

export type HostServices = { readonly dht: KadDHT; readonly pubsub: GossipSub; readonly ping: Ping }

export type Host = {
  readonly libp2p: Libp2p<HostServices>
  readonly gater: Gater
  /** peers in the routing table of the DHT */
  routingPeers(): number
  start(): Promise<void>
  stop(): Promise<void>
}

const KiB = 1024
const MiB = 1024 * KiB
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** A node that is built but does not listen yet. */
export async function createHost(init: HostInit): Promise<Host> {
  const store = createDatastore(init.db, init.clock)
  await store.open()
  const gater = createGater()
  const alone = init.profile === 'loopback'
  const libp2p = await createLibp2p<HostServices & Record<string, unknown>>({
    start: false,
    privateKey: await generateKeyPairFromSeed('Ed25519', init.seed),
    datastore: store.datastore,
    addresses: { listen: [...init.listen] },
    nodeInfo: { userAgent: 'csb' },
    transports: [tcp(), webSockets()],
    connectionEncrypters: [noise()],
    streamMuxers: [muxer()],
    connectionGater: gater.hooks,
    connectionManager: connectionLimits(init, alone),
    // libp2p's default drops a connection on one late ping, and a busy event loop is late for all of them
    connectionMonitor: alone
      ? { enabled: false }
      : { pingInterval: 30 * SECOND, pingTimeout: { minTimeout: 15 * SECOND } },
    // provider records live 48 h; a provider whose peer entry went earlier makes every answer for it fail
    peerStore: { maxAddressAge: 24 * HOUR, maxPeerAge: 49 * HOUR },
    peerDiscovery: [
      ...(init.mdns ? [mdns({ serviceTag: '_csb._udp.local', interval: 20 * SECOND })] : []),
      ...(init.bootstrap.length > 0 ? [bootstrap({ list: [...init.bootstrap] })] : []),
    ],
    services: {
      identify: identify(),
      identifyPush: identifyPush(),
      ping: ping(),
      dht: kadDHT(dhtSettings(init)),
      pubsub: gossipsub(gossipSettings(alone)),
    },
  })
  store.know((peerId) => libp2p.peerStore.has(peerIdFromString(peerId)))
  return {
    libp2p: libp2p as unknown as Libp2p<HostServices>,
    gater,
    routingPeers: () => (libp2p.services.dht as SingleKadDHT).routingTable.size,
    start: async () => {
      await libp2p.start()
    },
    stop: async () => {
      await libp2p.stop()
      await store.close()
    },
  }
}

/** @throws INVALID_INPUT where it is not an Ed25519 did:key */
export const peerOf = (did: string): PeerId => peerIdFromString(peerIdFromDid(did))

/**
 * The receive window stays below the read buffer: a paused stream is reset when more is queued than the buffer
 * holds. The initial window is the one the yamux specification fixes: a larger one breaks connections to others.
 */
const muxer = () =>
  yamux({
    maxInboundStreams: 128,
    maxOutboundStreams: 256,
    streamOptions: {
      initialStreamWindowSize: 256 * KiB,
      maxStreamWindowSize: MiB,
      maxReadBufferLength: 2 * MiB,
      maxWriteBufferLength: 8 * MiB,
    },
  })

function connectionLimits({ maxConnections }: HostInit, alone: boolean) {
  return alone
    ? {
        maxConnections: Math.max(maxConnections, 300),
        inboundConnectionThreshold: 10_000,
        maxIncomingPendingConnections: 1_000,
        dialTimeout: 30 * SECOND,
        addressDialTimeout: 20 * SECOND,
        inboundUpgradeTimeout: 30 * SECOND,
      }
    : {
        maxConnections,
        inboundConnectionThreshold: 20,
        maxIncomingPendingConnections: 20,
        maxParallelDials: 20,
        maxDialQueueLength: 200,
      }
}

const dhtSettings = ({ validateRecord, selectRecord }: HostInit) => ({
  protocol: PROTOCOL_KAD,
  clientMode: false,
  // the default drops every private address, and with it every home network
  peerInfoMapper: passthroughMapper,
  kBucketSize: 20,
  alpha: 3,
  disjointPaths: 3,
  validators: { [RECORD_NAMESPACE]: validateRecord },
  selectors: { [RECORD_NAMESPACE]: selectRecord },
  reprovide: { interval: 10 * MINUTE, threshold: 47.5 * HOUR, validity: 48 * HOUR },
})

const gossipSettings = (alone: boolean) => ({
  fallbackToFloodsub: false,
  allowPublishToZeroTopicPeers: true,
  ignoreDuplicatePublishError: true,
  allowedTopics: [ANNOUNCE_TOPIC],
  maxInboundDataLength: 8 * KiB,
  maxOutboundBufferSize: 4 * MiB,
  // without it the signature is checked before the duplicate is seen
  fastMsgIdFn: (message: { from?: Uint8Array; seqno?: Uint8Array; signature?: Uint8Array }) =>
    [message.from, message.seqno, message.signature?.subarray(0, 8)]
      .map((part) => Buffer.from(part ?? []).toString('base64'))
      .join('.'),
  scoreParams: alone
    ? { IPColocationFactorWhitelist: new Set(['127.0.0.1', '::1']) }
    : // a home, or many behind one carrier address, is no attack
      { IPColocationFactorThreshold: 50 },
})

/** Streams of one protocol on one connection: above what a peer is admitted, so that it is told BUSY and not reset. */
export const STREAMS_PER_CONNECTION = LIMITS.streamsPerPeer * 2
