/**
 * Keeps connections to pinned peers: dials again for ever, with growing, jittered pauses.
 *
 * libp2p's own keep-alive gives up after five tries, about half a minute.
 */
import type { PeerId } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import { LIMITS, delay, random } from '@csb/core'
import { parsePeerAddress } from './connections.ts'
import type { Host } from './host.ts'

export type Redialler = {
  /**
   * Keep a connection to the peer of this address from now on.
   * @param address multiaddr with /p2p/<peer id>
   * @throws INVALID_INPUT
   */
  pin(address: string): void
  /** @param peerId every address of it is let go */
  unpin(peerId: string): void
  /** Try all at once, with fresh pauses: the network has changed. */
  hurry(): void
  stop(): void
}

type Pinned = { readonly peer: PeerId; readonly addresses: Map<string, Multiaddr>; hurry: AbortController }

export function createRedialler(host: Host): Redialler {
  const { libp2p } = host
  const pinned = new Map<string, Pinned>()
  const stopped = new AbortController()

  const isConnected = (peer: PeerId): boolean => libp2p.getConnections(peer).some(({ status }) => status === 'open')

  /** Resolves after the pause, or at once when hurried or when the node stops. */
  const pause = async (entry: Pinned, ms: number): Promise<void> => {
    entry.hurry = new AbortController()
    await delay(ms, AbortSignal.any([entry.hurry.signal, stopped.signal])).catch(() => undefined)
  }
  const keepConnected = async (entry: Pinned): Promise<void> => {
    let failures = 0
    while (!stopped.signal.aborted && pinned.get(entry.peer.toString()) === entry) {
      if (isConnected(entry.peer)) {
        failures = 0
        await pause(entry, LIMITS.redialMaxMs)
        continue
      }
      try {
        await libp2p.dial([...entry.addresses.values()], { signal: stopped.signal })
      } catch {
        failures++
        await pause(entry, pauseMs(failures))
        if (entry.hurry.signal.aborted) failures = 0
      }
    }
  }
  libp2p.addEventListener('peer:disconnect', ({ detail }) => pinned.get(detail.toString())?.hurry.abort())

  return {
    pin: (address) => {
      const { target, peerId } = parsePeerAddress(address)
      if (peerId === libp2p.peerId.toString()) return
      const known = pinned.get(peerId)
      if (known !== undefined) {
        known.addresses.set(address, target)
        return
      }
      const entry: Pinned = {
        peer: peerIdFromString(peerId),
        addresses: new Map([[address, target]]),
        hurry: new AbortController(),
      }
      pinned.set(peerId, entry)
      void keepConnected(entry)
    },
    unpin: (peerId) => {
      const entry = pinned.get(peerId)
      pinned.delete(peerId)
      entry?.hurry.abort()
    },
    hurry: () => {
      for (const entry of pinned.values()) entry.hurry.abort()
    },
    stop: () => stopped.abort(),
  }
}

/** Doubles from the least to the most pause; half of it is chance, so that a network does not redial in step. */
function pauseMs(failures: number): number {
  const whole = Math.min(LIMITS.redialMaxMs, LIMITS.redialMinMs * 2 ** Math.min(failures - 1, 16))
  return whole / 2 + (whole / 2) * ((random(1)[0] ?? 0) / 255)
}
