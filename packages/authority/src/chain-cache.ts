/**
 * Chains whose words were checked: shape, joints, rules, attenuation and signatures depend on nothing but the chain,
 * so what held once holds for ever. Time, audience, trust and revocation do not: they are judged at every use.
 *
 * The key is a digest of everything in the chain, signatures too: one byte changed is another chain. What is given
 * back is what was verified then, frozen, never what was handed in.
 */
import { LIMITS, sha256Hex, type Grant } from '@csb/core'

type Link = { readonly grant: Grant; readonly hash: string }

export type ChainCache = {
  /** @returns undefined for a chain that was not verified here, or longer ago than the others */
  find(key: string): readonly Link[] | undefined
  keep(key: string, links: readonly Link[]): void
}

/** One that forgets the oldest above {@link LIMITS.chainsKept}. */
export function createChainCache(): ChainCache {
  const kept = new Map<string, readonly Link[]>()
  return {
    find: (key) => kept.get(key),
    keep: (key, links) => {
      const [oldest] = kept.keys()
      if (kept.size >= LIMITS.chainsKept && oldest !== undefined) kept.delete(oldest)
      kept.set(
        key,
        links.map(({ grant, hash }) => ({ grant: freeze(grant), hash })),
      )
    },
  }
}

/** @param chain parsed values; what is written out says all there is in them */
export const chainKey = (chain: readonly unknown[]): string => sha256Hex(JSON.stringify(chain))

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) freeze(member)
    Object.freeze(value)
  }
  return value
}
