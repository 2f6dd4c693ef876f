import { describe, expect, test } from 'vitest'
import { LIMITS, type Grant } from '@csb/core'
import { createChainCache, verifyChain, type ChainCheck } from '@csb/authority'
import { chainKey } from '../src/chain-cache.ts'
import { HOUR, NOW, childGrant, node, otherNode, owner, ownerGrant, stranger, thrownBy, wideLease } from './cast.ts'

const root = ownerGrant({ lease: wideLease() })
const chain: readonly Grant[] = [root, childGrant(root, { lease: wideLease({ actions: ['read'] }) })]
const check = (more: Partial<ChainCheck> = {}): ChainCheck => ({
  chain,
  now: NOW,
  audience: node.did,
  isRevoked: () => false,
  trustedRoot: (did) => (did === owner.did ? { ceiling: 'override' } : undefined),
  ...more,
})

/** One that has verified the chain. */
function warm() {
  const cache = createChainCache()
  verifyChain(check({ cache }))
  expect(cache.find(chainKey(chain))).toBeDefined()
  return cache
}

describe('a chain that was verified before', () => {
  test('is what it was, with the same hashes', () => {
    const cache = warm()
    expect(verifyChain(check({ cache, chain: structuredClone(chain) }))).toEqual(verifyChain(check()))
  })

  test('L1.3 is refused all the same when it is over, revoked, for another node, or of an origin no longer trusted', () => {
    const cache = warm()
    for (const [more, reason] of [
      [{ now: NOW + 2 * HOUR }, 'expired'],
      [{ now: NOW - HOUR }, 'not_yet_valid'],
      [{ isRevoked: () => true }, 'revoked'],
      [{ audience: otherNode.did }, 'wrong_audience'],
      [{ trustedRoot: () => undefined }, 'untrusted_root'],
    ] as const) {
      expect(
        thrownBy(() => verifyChain(check({ cache, ...more }))),
        reason,
      ).toMatchObject({ details: { reason } })
    }
  })

  test('with one letter changed, or another signature, is another chain', () => {
    const cache = warm()
    const changed = structuredClone(chain) as Grant[]
    const leaf = changed[1] ?? root
    for (const delegation of [
      { ...leaf.delegation, grantee: 'Helper' },
      { ...leaf.delegation, grantee_key: stranger.did },
      { ...leaf.delegation, signature: root.delegation.signature },
    ]) {
      const forged = [root, { ...leaf, delegation }]
      expect(thrownBy(() => verifyChain(check({ cache, chain: forged })))).toMatchObject({
        details: { reason: 'bad_signature' },
      })
    }
  })

  test('gives back what was verified, which nobody can change', () => {
    const cache = createChainCache()
    const mine = structuredClone(chain) as Grant[]
    verifyChain(check({ cache, chain: mine }))
    const { leaf } = verifyChain(check({ cache, chain: structuredClone(chain) }))
    expect(() => Object.assign(leaf.delegation, { level: 'override' })).toThrow(TypeError)
    expect(() => Object.assign(leaf.authorization_details?.[0]?.actions ?? [], ['exec'])).toThrow(TypeError)
  })

  test('is not remembered when it was refused, and the oldest goes when there are too many', () => {
    const cache = createChainCache()
    expect(thrownBy(() => verifyChain(check({ cache, now: NOW + 2 * HOUR })))).toBeDefined()
    expect(cache.find(chainKey(chain))).toBeUndefined()
    for (let at = 0; at <= LIMITS.chainsKept; at++) cache.keep(`${at}`, [])
    expect(cache.find('0')).toBeUndefined()
    expect(cache.find('1')).toBeDefined()
  })
})
