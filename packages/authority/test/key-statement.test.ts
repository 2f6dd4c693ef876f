import { describe, expect, test } from 'vitest'
import { createKeyPair, type Grant, type KeyPair } from '@csb/core'
import type { Store } from '@csb/store'
import {
  currentKey,
  draftGrant,
  endOfKey,
  isRevoked,
  isSameOwner,
  listKeyStatements,
  principalOf,
  revoke,
  signCompromise,
  signGrant,
  signKeyChange,
  signRevocation,
  storeGrant,
  takeKeyStatement,
  tokenHash,
  trust,
  trusted,
  verifyChain,
} from '@csb/authority'
import {
  HOUR,
  NOW,
  agent,
  childGrant,
  node,
  owner,
  ownerDraft,
  ownerGrant,
  party,
  reopened,
  stranger,
  testStore,
  thrownBy,
  wideLease,
} from './cast.ts'

const next = createKeyPair(new Uint8Array(32).fill(40))
const third = createKeyPair(new Uint8Array(32).fill(41))
const CHANGED = NOW + HOUR / 4
const LATER = NOW + HOUR / 2

const change = (old = owner, to = next, effectiveAt = CHANGED, seq = 1) =>
  signKeyChange({ old, next: to, seq, effectiveAt })
const take = (store: Store, statement: unknown, now = LATER) =>
  store.transact((tx) => takeKeyStatement(tx, statement, now))

async function trusting(): Promise<Store> {
  const store = await testStore()
  await store.transact((tx) => trust(tx, { did: owner.did, name: 'Ada', ceiling: 'execute' }))
  return store
}

const granted = (key: KeyPair, at: number): Grant => signGrant(draftGrant({ ...draftOf(key), now: at }), key)
const draftOf = (key: KeyPair) => ({
  type: 'scoped' as const,
  from: party('Ada', key),
  to: party('clerk', agent),
  audience: [node.did],
  scope: ['csb-protocol', 'notes'],
  level: 'execute' as const,
  ttlMs: 2 * HOUR,
  maxDepth: 3,
  lease: wideLease(),
})
const reasonAt = (store: Store, chain: readonly Grant[], now: number): unknown => {
  const view = store.view()
  const failure = thrownBy(() =>
    verifyChain({
      chain,
      now,
      isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
      trustedRoot: (did) => trusted(view, did),
    }),
  ) as { details: { reason: string } } | undefined
  return failure?.details.reason
}

describe('an owner changes the key', () => {
  test('L1.3 what was granted before holds to its expiry, what the old key grants afterwards does not', async () => {
    const store = await trusting()
    const before = granted(owner, NOW)
    const after = granted(owner, CHANGED)
    const byNew = granted(next, CHANGED)
    expect(reasonAt(store, [byNew], LATER)).toBe('untrusted_root')
    await take(store, change())
    expect(reasonAt(store, [before], LATER)).toBeUndefined()
    expect(reasonAt(store, [before, childGrant(before, { now: LATER })], LATER)).toBeUndefined()
    expect(reasonAt(store, [before], NOW + 2 * HOUR)).toBe('expired')
    expect(reasonAt(store, [after], LATER)).toBe('revoked')
    expect(reasonAt(store, [after, childGrant(after, { now: CHANGED })], LATER)).toBe('revoked')
    expect(reasonAt(store, [byNew], LATER)).toBeUndefined()
    expect(trusted(store.view(), next.did)).toMatchObject({ name: 'Ada', ceiling: 'execute' })
    expect(await listKeyStatements((await reopened(store)).view())).toEqual([change()])
  })

  test('takes both signatures, of these keys, for this change', async () => {
    const store = await trusting()
    const good = change()
    for (const keychange of [
      { ...good.keychange, effective_at: CHANGED + 1 },
      { ...good.keychange, new: third.did },
      { ...good.keychange, old: stranger.did },
      { ...good.keychange, signature_new: good.keychange.signature_old },
      { ...good.keychange, signature_old: good.keychange.signature_new },
    ]) {
      await expect(take(store, { keychange })).rejects.toMatchObject({ details: { reason: 'bad_signature' } })
    }
    await expect(take(store, { keychange: { ...good.keychange, more: 1 } })).rejects.toMatchObject({
      details: { reason: 'malformed' },
    })
    await expect(take(store, good, CHANGED - 61_000)).rejects.toMatchObject({ details: { reason: 'not_yet_valid' } })
    expect(currentKey(store.view(), owner.did)).toBe(owner.did)
  })

  test('L1.3 a key changes once: whoever has the old one later leads nobody elsewhere', async () => {
    const store = await trusting()
    await take(store, change())
    await take(store, change())
    await expect(take(store, change(owner, stranger))).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(take(store, change(owner, next, CHANGED - 1))).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(take(store, change(next, owner))).rejects.toMatchObject({ code: 'CONFLICT' })
    await take(store, change(next, third, CHANGED + 1, 2))
    const view = store.view()
    expect(currentKey(view, owner.did)).toBe(third.did)
    expect([owner, next, third, stranger].map(({ did }) => isSameOwner(view, owner.did, did))).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(isSameOwner(view, third.did, owner.did)).toBe(true)
    expect(isSameOwner(view, stranger.did, owner.did)).toBe(false)
    // who came later is no follower of itself: it says nothing of the key that came after it
    await expect(take(store, signCompromise(third.did, CHANGED, next))).rejects.toMatchObject({ code: 'DENIED' })
  })

  test('a key that is not trusted here makes no other one trusted', async () => {
    const store = await trusting()
    await take(store, change(stranger, third))
    expect(trusted(store.view(), third.did)).toBeUndefined()
  })

  test('L1.3, DEL-003.3.4 what the old key granted is ended by one that followed it, also where the word comes first', async () => {
    const store = await trusting()
    const grant = ownerGrant()
    const hash = await store.transact((tx) => storeGrant(tx, { chain: [grant] }))
    const word = signRevocation({ target: hash, now: LATER }, third)
    await expect(store.transact((tx) => revoke(tx, word, LATER))).rejects.toMatchObject({ code: 'DENIED' })
    await take(store, change())
    await take(store, change(next, third, CHANGED + 1, 2))
    expect(isRevoked(store.view(), hash)).toBe(false)
    await store.transact((tx) => revoke(tx, word, LATER))
    expect(isRevoked(store.view(), hash)).toBe(true)
    const elsewhere = await trusting()
    await elsewhere.transact((tx) => revoke(tx, word, LATER))
    await elsewhere.transact((tx) => storeGrant(tx, { chain: [grant] }))
    expect(isRevoked(elsewhere.view(), hash)).toBe(false)
    await take(elsewhere, change(next, third, CHANGED + 1, 2))
    await take(elsewhere, change())
    expect(isRevoked(elsewhere.view(), hash)).toBe(true)
  })

  test('L1.3 a lease of the new key is honoured at the node of the old one', async () => {
    const store = await trusting()
    const grant = granted(next, CHANGED)
    await store.transact((tx) => storeGrant(tx, { chain: [grant], tokenHash: tokenHash('csb_token') }))
    const ask = () =>
      principalOf(
        store.view(),
        { kind: 'bearer', token: 'csb_token' },
        { self: node.did, owner: owner.did, now: LATER },
      )
    expect(thrownBy(ask)).toMatchObject({ code: 'UNAUTHENTICATED' })
    await take(store, change())
    expect(ask()).toMatchObject({ did: agent.did })
  })
})

describe('a key is in other hands', () => {
  test('L1.3 everything it granted before is void, what was declared irrevocable too', async () => {
    const store = await trusting()
    const before = granted(owner, NOW)
    const draft = ownerDraft({ ttlMs: HOUR })
    const irrevocable = signGrant({ ...draft, delegation: { ...draft.delegation, revocable: false } }, owner)
    await take(store, change())
    expect(reasonAt(store, [irrevocable], LATER)).toBeUndefined()
    await take(store, signCompromise(owner.did, CHANGED, next))
    for (const chain of [
      [before],
      [irrevocable],
      [before, childGrant(before, { ttlMs: HOUR })],
      [granted(owner, CHANGED)],
    ]) {
      expect(reasonAt(store, chain, LATER)).toBe('revoked')
    }
    expect(reasonAt(store, [granted(next, CHANGED)], LATER)).toBeUndefined()
  })

  test.each([
    ['a key alone that is in other hands may still grant', [signCompromise(owner.did, LATER, owner)], undefined],
    ['a key that was changed still holds what it granted', [change()], undefined],
    ['both, and nothing of it is left', [change(), signCompromise(owner.did, LATER, next)], LATER],
    ['what it granted between the two holds', [change(), signCompromise(owner.did, CHANGED - 1, next)], undefined],
  ])('L1.3 since when nothing of it holds: %s', async (_, statements, at) => {
    const store = await trusting()
    for (const statement of statements) await take(store, statement)
    expect(endOfKey(store.view(), owner.did)).toBe(at)
  })

  test('is said by that key or one that followed it, and only ever voids more', async () => {
    const store = await trusting()
    await expect(take(store, signCompromise(owner.did, CHANGED, next))).rejects.toMatchObject({ code: 'DENIED' })
    await expect(take(store, signCompromise(owner.did, CHANGED, stranger))).rejects.toMatchObject({ code: 'DENIED' })
    const forged = { compromise: { ...signCompromise(owner.did, NOW, owner).compromise, all_before: CHANGED } }
    await expect(take(store, forged)).rejects.toMatchObject({ details: { reason: 'bad_signature' } })
    // a time to come would void what is not granted yet
    const ahead = store.transact((tx) => takeKeyStatement(tx, signCompromise(owner.did, LATER, owner), LATER - 61_000))
    await expect(ahead).rejects.toMatchObject({ details: { reason: 'not_yet_valid' } })
    await take(store, signCompromise(owner.did, CHANGED, owner))
    await take(store, signCompromise(owner.did, NOW, owner))
    expect(reasonAt(store, [granted(owner, NOW + 1)], LATER)).toBe('revoked')
    // the key goes on where nothing follows it: what it grants anew counts
    expect(reasonAt(store, [granted(owner, CHANGED)], LATER)).toBeUndefined()
  })

  test('L1.3 a lease that is held ends with it', async () => {
    const store = await trusting()
    const grant = granted(owner, NOW)
    await store.transact((tx) => storeGrant(tx, { chain: [grant], tokenHash: tokenHash('csb_token') }))
    const ask = () =>
      principalOf(
        store.view(),
        { kind: 'bearer', token: 'csb_token' },
        { self: node.did, owner: owner.did, now: LATER },
      )
    expect(ask()).toMatchObject({ did: agent.did })
    await take(store, signCompromise(owner.did, CHANGED, owner))
    expect(thrownBy(ask)).toMatchObject({ code: 'LEASE_REVOKED' })
  })
})
