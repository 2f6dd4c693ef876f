/** Attacks 16 and 17: a revocation that is held back, comes too early, from nobody, or is to be undone. */
import { describe, expect, test } from 'vitest'
import { LIMITS, type Grant, type Status } from '@csb/core'
import {
  attachAuthority,
  grantHash,
  isRevoked,
  latestStatus,
  revoke,
  signRevocation,
  signStatus,
  storeGrant,
  takeStatus,
  verifyAuthority,
} from '@csb/authority'
import type { Peers } from '@csb/service'
import type { Store } from '@csb/store'
import {
  HOUR as AUTHORITY_HOUR,
  agent,
  childGrant,
  helper,
  node,
  otherNode,
  owner,
  ownerGrant,
  reopened,
  stranger,
} from '../../packages/authority/test/cast.ts'
import { BODY, listening, sign } from '../../packages/authority/test/speech.ts'
import { NOW } from '../../packages/service/test/house.ts'
import { createNetwork, type Network } from '../../packages/service/test/network.ts'
import { speak, threeNodes, type Cast } from '../../packages/service/test/three-nodes.ts'

const MAX_AGE_MS = 20_000

describe('attack 16: the push is suppressed', () => {
  /** A network in which no message that carries a revocation arrives, and in which words on revocation may not either. */
  function suppressing(what: { revocations: boolean; words: boolean }): Network & { dropped: () => number } {
    const network = createNetwork()
    let dropped = 0
    const isKept = (message: unknown): boolean => {
      const { revocation, status } = (message ?? {}) as { revocation?: unknown; status?: unknown }
      const isDropped = (what.revocations && revocation !== undefined) || (what.words && status !== undefined)
      if (isDropped) dropped++
      return !isDropped
    }
    const peersOf: Network['peersOf'] = (key) => {
      const peers = network.peersOf(key)
      const session: Peers['session'] = async (...asked) => {
        const port = await peers.session(...asked)
        return {
          ...port,
          send: async (message) => {
            if (isKept(message)) return port.send(message)
            await port.close()
          },
        }
      }
      return { ...peers, session }
    }
    return { ...network, peersOf, dropped: () => dropped }
  }

  async function stage(what: { revocations: boolean; words: boolean }) {
    const cast = await threeNodes({ maxAgeMs: MAX_AGE_MS }, suppressing(what))
    const word = signStatus({ seq: 0, revoked: [], now: NOW }, cast.nas.key)
    for (const { store } of [cast.speaker, cast.listener]) await store.transact((tx) => takeStatus(tx, word, NOW))
    return cast
  }

  const revoking = ({ nas, grant }: Cast) =>
    nas.owned('authority.revoke', signRevocation({ target: grantHash(grant), now: NOW }, nas.owner))

  test('attack 16: every frame of a revocation is dropped, and the last use is within the bound', async () => {
    const cast = await stage({ revocations: true, words: true })
    const { network, clock, nas, listener, grant } = cast
    expect(await speak(cast)).toBe('with authority from Ines')
    await revoking(cast)
    expect(network.dropped()).toBeGreaterThan(0)
    const accepted: number[] = []
    const step = 2_500
    for (let at = 0; at <= MAX_AGE_MS + LIMITS.clockSkewMs; at += step) {
      if ((await speak(cast)) === 'with authority from Ines') accepted.push(at)
      clock.advance(step)
    }
    expect(Math.max(...accepted)).toBe(MAX_AGE_MS)
    expect(isRevoked(listener.store.view(), grantHash(grant), [nas.owner.did])).toBe(false)
    expect(await speak(cast)).toBe('processed without authority: revocation_stale')
  })

  test('attack 16: where only the push is dropped, asking for a young word finds it out', async () => {
    const cast = await stage({ revocations: true, words: false })
    const { clock, nas, listener, grant } = cast
    await revoking(cast)
    clock.advance(MAX_AGE_MS / 2 + 1)
    // the speaker asks its status key before it speaks, and can not hide what it was told
    expect(await speak(cast)).toBe('processed without authority: revoked')
    expect(latestStatus(listener.store.view(), nas.key.did)?.status.revoked).toEqual([grantHash(grant)])
  })
})

describe('attack 17: what a revocation may not do, and what may not be done to one', () => {
  const target = () => ownerGrant({ statusKey: otherNode.did, maxAgeMs: MAX_AGE_MS, now: NOW, ttlMs: AUTHORITY_HOUR })
  const word = (now: number, seq: number, revoked: string[] = []): Status =>
    signStatus({ seq, revoked, now }, otherNode)
  const say = (store: Store, root: Grant, now: number, ...status: Status[]) =>
    store.transact((tx) =>
      verifyAuthority(tx, {
        body: attachAuthority(BODY, sign([root], { level: 'execute', now, status })),
        self: node.did,
        now,
      }),
    )
  const ended = (root: Grant, by = owner) => signRevocation({ target: grantHash(root), now: NOW }, by)

  test('attack 17: before its grant is known it counts from the first use on', async () => {
    const store = await listening()
    const root = target()
    await store.transact((tx) => revoke(tx, ended(root), NOW))
    expect(await say(store, root, NOW, word(NOW, 0))).toMatchObject({ step: 3, reason: 'revoked' })
    await store.transact((tx) => storeGrant(tx, { chain: [root] }))
    expect(isRevoked(store.view(), grantHash(root))).toBe(true)
  })

  test('attack 17: a stranger ends nothing, before or after, nor does a child or a sister', async () => {
    const store = await listening()
    const root = target()
    await store.transact((tx) => revoke(tx, ended(root, stranger), NOW))
    expect(await say(store, root, NOW, word(NOW, 0))).toMatchObject({ kind: 'accepted' })
    const child = childGrant(root)
    await store.transact((tx) => storeGrant(tx, { chain: [root, child] }))
    for (const by of [stranger, helper, node])
      await expect(store.transact((tx) => revoke(tx, ended(root, by), NOW))).rejects.toMatchObject({ code: 'DENIED' })
    expect(await say(store, root, NOW)).toMatchObject({ kind: 'accepted' })
    // its grantor and its grantee may
    await store.transact((tx) => revoke(tx, ended(root, agent), NOW))
    expect(await say(store, root, NOW)).toMatchObject({ reason: 'revoked' })
  })

  test('attack 17: an old word does not come back, at whatever number', async () => {
    const store = await listening()
    const root = target()
    const other = ownerGrant({ statusKey: otherNode.did })
    expect(await say(store, root, NOW, word(NOW + 10, 5, [grantHash(other)]))).toMatchObject({ kind: 'accepted' })
    const later = NOW + MAX_AGE_MS + 11
    for (const old of [word(later, 4), word(NOW + 10, 5), word(NOW, 6), word(later, 5)]) {
      expect(await store.transact((tx) => takeStatus(tx, old, later))).toBe(false)
      expect(await say(store, root, later, old)).toMatchObject({ reason: 'revocation_stale' })
    }
    expect(await say(store, root, later, word(later, 6))).toMatchObject({ kind: 'accepted' })
  })

  test('attack 17: nothing undoes it: no later word, no new copy of the grant, no restart', async () => {
    const store = await listening()
    const root = target()
    await store.transact((tx) => revoke(tx, ended(root), NOW))
    for (const [seq, revoked] of [
      [1, []],
      [2, [grantHash(root)]],
      [3, []],
    ] as const) {
      expect(await say(store, root, NOW + seq, word(NOW + seq, seq, [...revoked]))).toMatchObject({ reason: 'revoked' })
    }
    await store.transact((tx) => storeGrant(tx, { chain: [root] }))
    expect(await say(await reopened(store), root, NOW + 4, word(NOW + 4, 4))).toMatchObject({ reason: 'revoked' })
  })
})
