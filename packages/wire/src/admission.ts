/**
 * How much one peer may ask for: streams at once and new streams per second, counted per did.
 *
 * libp2p counts per connection, and a peer may hold several.
 * @clause A2A-019
 */
import { LIMITS, fail, type Clock } from '@csb/core'

export type AdmissionInit = {
  readonly clock: Clock
  /** default {@link LIMITS.streamsPerPeer} */
  readonly concurrent?: number
  /** default {@link LIMITS.streamsPerPeerPerSecond} */
  readonly perSecond?: number
  /** default {@link LIMITS.streamsPerPeerBurst} */
  readonly burst?: number
}

export type Admission = {
  /**
   * @returns to be called once when the peer has left
   * @throws BUSY
   */
  enter(did: string): () => void
}

type Visitor = { active: number; tokens: number; countedAt: number }

/** Visitors that are gone are swept out when there are more than this. */
const SWEEP_ABOVE = 1024

export function createAdmission(init: AdmissionInit): Admission {
  const concurrent = init.concurrent ?? LIMITS.streamsPerPeer
  const perSecond = init.perSecond ?? LIMITS.streamsPerPeerPerSecond
  const burst = init.burst ?? LIMITS.streamsPerPeerBurst
  const visitors = new Map<string, Visitor>()

  const refill = (visitor: Visitor): void => {
    const now = init.clock.now()
    visitor.tokens = Math.min(burst, visitor.tokens + (Math.max(0, now - visitor.countedAt) * perSecond) / 1000)
    visitor.countedAt = now
  }
  const sweep = (): void => {
    for (const [did, visitor] of visitors) {
      refill(visitor)
      if (visitor.active === 0 && visitor.tokens >= burst) visitors.delete(did)
    }
  }
  return {
    enter: (did) => {
      if (visitors.size > SWEEP_ABOVE) sweep()
      const visitor = visitors.get(did) ?? { active: 0, tokens: burst, countedAt: init.clock.now() }
      visitors.set(did, visitor)
      refill(visitor)
      if (visitor.active >= concurrent) fail('BUSY', { concurrent })
      if (visitor.tokens < 1) fail('BUSY', { perSecond })
      visitor.tokens -= 1
      visitor.active += 1
      let inside = true
      return () => {
        if (inside) visitor.active -= 1
        inside = false
      }
    },
  }
}
