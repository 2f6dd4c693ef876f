/**
 * Rank and subject of a delegation: the four levels in their order, and scope tokens that contain one another.
 *
 * Rank says how a message is treated. It gives no access to anything: that is the lease.
 * @clause DEL-002.2.3, A2A-010
 */
import type { Delegation } from '@csb/core'

/** How a receiver treats a message: note it, consider it, do it, do it before what was said earlier. */
export type Rank = Delegation['level']

/** From least to most. */
export const LEVEL_RANKS = ['inform', 'request', 'execute', 'override'] as const satisfies readonly Rank[]

/** True where `level` is at most `ceiling`. */
export const isAtMost = (level: Rank, ceiling: Rank): boolean =>
  LEVEL_RANKS.indexOf(level) <= LEVEL_RANKS.indexOf(ceiling)

/**
 * True where scope token `inner` is `outer` or lies below it by whole `/` segments: `csb-protocol-admin` is
 * not within `csb-protocol`, `csb-protocol/admin` is. `*` contains everything.
 */
export function isTokenWithin(inner: string, outer: string): boolean {
  return outer === '*' || inner === outer || inner.startsWith(`${outer}/`)
}

/** True where every token of `inner` lies within some token of `outer`. */
export function isScopeWithin(inner: readonly string[], outer: readonly string[]): boolean {
  return inner.every((token) => outer.some((other) => isTokenWithin(token, other)))
}

/** True where every receiver in `inner` is one of `outer`; `*` means any node, and lies only within `*`. */
export function isAudienceWithin(inner: readonly string[], outer: readonly string[]): boolean {
  return outer.includes('*') || inner.every((did) => outer.includes(did))
}

/** True where a document with this audience is meant for `did`. */
export const isFor = (audience: readonly string[], did: string): boolean =>
  audience.includes('*') || audience.includes(did)
