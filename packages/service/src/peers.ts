/**
 * What the service needs of the network, and nothing more. The libp2p door implements it; the service never
 * sees a socket, a stream or a multiaddr type.
 */
import type { AgentRecord, Envelope } from '@csb/core'

/** Messages of a session, in order, each a JSON value. `receive` gives undefined when the other side has ended. */
export type MessagePort = {
  send(message: unknown): Promise<void>
  receive(): Promise<unknown>
  /** end my side after what was sent is flushed */
  close(): Promise<void>
  /** break the stream */
  abort(reason: Error): void
}

/** One frame of an answer to an envelope. The last one has `done: true`. */
export type EnvelopeReply = {
  /** id of the envelope that is answered */
  readonly id: string
  /** the JSON-RPC response, or one streamed response */
  readonly body: unknown
  readonly done: boolean
}

/** Sessions between nodes that the service opens and attends. */
export type SessionKind = 'sync' | 'handoff' | 'delegation' | 'witness'

export type PeerSummary = {
  readonly did: string
  readonly peerId: string
  readonly addresses: readonly string[]
  readonly connected: boolean
}

export type CallOptions = { readonly signal?: AbortSignal }

export type Peers = {
  /** multiaddrs this node can be reached at, with /p2p/<peer id> */
  addresses(): readonly string[]
  /** every peer that is known, connected ones first */
  list(): Promise<readonly PeerSummary[]>
  /**
   * @param address multiaddr with /p2p/<peer id>
   * @returns did of the peer
   * @throws INVALID_INPUT, PEER_UNREACHABLE
   */
  dial(address: string, options?: CallOptions): Promise<string>
  /**
   * Send an envelope and give its answers as they come.
   * @throws PEER_UNREACHABLE, TIMEOUT, PEER_MISBEHAVED, or the code the peer answered with
   */
  request(envelope: Envelope, options?: CallOptions): AsyncIterable<EnvelopeReply>
  /**
   * Fetch the full agent card of an agent by stream and check it against `hash` where one is given.
   * @returns the JSON of the A2A agent card
   * @throws NOT_FOUND, PEER_UNREACHABLE, PEER_MISBEHAVED where the hash or the signature differs
   */
  card(did: string, agent: string, hash: string | null, options?: CallOptions): Promise<unknown>
  /** Look one record up in the DHT: quorum, own verification, deadline. Undefined where nobody has it. */
  findRecord(did: string, options?: CallOptions): Promise<AgentRecord | undefined>
  /** Records of providers of a capability, verified and still offering it, up to `limit`. */
  findProviders(capability: string, limit: number, options?: CallOptions): Promise<readonly AgentRecord[]>
  /** Put my record into the DHT, provide its capabilities, announce it. Withdrawn records withdraw. */
  publish(record: AgentRecord, options?: CallOptions): Promise<void>
  /**
   * Hear of every peer that comes: its did, once a connection.
   * @returns a function that ends it
   */
  onConnect(listener: (did: string) => void): () => void
  /**
   * Open a session with a peer's `sync.serve`, `handoff.receive`, `authority.receive` or `witness.serve`.
   * @param input what that operation takes; it goes in the opening frame
   * @throws PEER_UNREACHABLE
   */
  session(did: string, kind: SessionKind, input: unknown, options?: CallOptions): Promise<MessagePort>
}
