/** Whom this node does not talk to now: dials, inbound and outbound connections are refused by peer id. */
import type { ConnectionGater } from '@libp2p/interface'

export type Gater = {
  readonly hooks: ConnectionGater
  /** peer ids that are refused; the caller adds and removes */
  readonly blocked: Set<string>
}

export function createGater(): Gater {
  const blocked = new Set<string>()
  const denies = (peer: { toString(): string }): boolean => blocked.has(peer.toString())
  return {
    blocked,
    hooks: {
      denyDialPeer: denies,
      denyOutboundConnection: denies,
      denyInboundEncryptedConnection: denies,
      denyOutboundEncryptedConnection: denies,
      // libp2p's own default refuses to dial private addresses in browsers only; a home network is made of them
      denyDialMultiaddr: () => false,
    },
  }
}
