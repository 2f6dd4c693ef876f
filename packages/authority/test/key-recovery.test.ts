import { describe, expect, test } from 'vitest'
import { signDocument, type KeyPair } from '@csb/core'
import {
  currentKey,
  endOfKey,
  isRevoked,
  isSameOwner,
  listKeyStatements,
  principalOf,
  recoveryDigest,
  recoveryOf,
  revoke,
  signCompromise,
  signRevocation,
  statementsOn,
  storeGrant,
  takeKeyStatements,
  tokenHash,
  trust,
  trusted,
} from '@csb/authority'
import { NOW, agent, node, owner, reopened, stranger, testStore, thrownBy } from './cast.ts'
import {
  recovery,
  recovery2,
  next,
  second,
  thief,
  thief2,
  other,
  STOLEN,
  LATER,
  named,
  recovered,
  change,
  take,
  trusting,
  granted,
  rowsOf,
  refused,
} from './recovery-cast.ts'

describe('a recovery key is named', () => {
  test('L1.3 by its digest only, once, and what is told on names it', async () => {
    const store = await trusting()
    expect(recoveryOf(store.view(), owner.did)).toBeUndefined()
    await take(store, named())
    await take(store, named())
    const again = await reopened(store)
    expect(recoveryOf(again.view(), owner.did)).toBe(recoveryDigest(recovery.did))
    expect(await listKeyStatements(again.view())).toEqual([named()])
    expect(statementsOn(again.view(), owner.did)).toEqual([named()])
    expect(JSON.stringify(await rowsOf(again))).not.toContain(recovery.did)
    expect(JSON.stringify(named())).not.toContain(recovery.did)
  })

  test('L1.3 another one of the same key does not take its place, unless the one that stands signs it', async () => {
    const store = await trusting(named())
    await refused(store, named(owner, recovery2), { code: 'CONFLICT' })
    await refused(store, named(owner, recovery2, thief), { code: 'CONFLICT' })
    const good = named(owner, recovery2, recovery)
    const { signature_replaced: _, replaces: _by, ...bare } = good.recovery
    await refused(store, { recovery: bare }, { details: { reason: 'bad_signature' } })
    await refused(store, { recovery: { ...bare, replaces: recovery.did } }, { details: { reason: 'malformed' } })
    await refused(
      store,
      { recovery: { ...good.recovery, signature_replaced: good.recovery.signature } },
      { details: { reason: 'bad_signature' } },
    )
    await take(store, good)
    expect(recoveryOf(store.view(), owner.did)).toBe(recoveryDigest(recovery2.did))
    // the first one is done with, and does not come back
    await take(store, named())
    expect(recoveryOf(store.view(), owner.did)).toBe(recoveryDigest(recovery2.did))
    await refused(store, named(owner, recovery, recovery2), { code: 'CONFLICT' })
    await refused(store, recovered(), { code: 'DENIED' })
    await refused(store, named(owner, other, recovery), { code: 'CONFLICT' })
    await take(store, recovered(next, owner, recovery2))
    expect(currentKey(store.view(), owner.did)).toBe(next.did)
    expect(statementsOn(store.view(), owner.did)).toEqual([named(), good, recovered(next, owner, recovery2)])
  })

  test.each([
    ['for another key', { key: stranger.did }],
    ['with another digest', { digest: recoveryDigest(thief.did) }],
  ])('takes the signature of the key, %s it is none', async (_, members) => {
    const store = await trusting()
    await refused(
      store,
      { recovery: { ...named().recovery, ...members } },
      { code: 'GRANT_INVALID', details: { reason: 'bad_signature' } },
    )
  })

  test.each([
    ['more members', { more: 1 }],
    ['another version', { v: 2 }],
    ['the key itself for its digest', { digest: recovery.did }],
  ])('is refused with %s', async (_, members) => {
    await refused(
      await trusting(),
      { recovery: { ...named().recovery, ...members } },
      { code: 'GRANT_INVALID', details: { reason: 'malformed' } },
    )
  })

  test('L1.3 who steals an old key later names none: that key has changed', async () => {
    const store = await trusting(change(owner, next))
    await refused(store, named(owner, thief), { code: 'CONFLICT' })
    await refused(store, recovered(thief2, owner, thief), { code: 'DENIED' })
    expect(currentKey(store.view(), owner.did)).toBe(next.did)
  })
})

describe('a key is recovered', () => {
  test('L1.3 by the recovery key alone, and what the thief made of the key is void', async () => {
    const store = await trusting(named())
    const before = granted(owner, NOW)
    await take(store, change(owner, thief))
    const byThief = granted(thief, STOLEN)
    const [hashBefore, hash] = await store.transact((tx) => [
      storeGrant(tx, { chain: [before] }),
      storeGrant(tx, { chain: [byThief], tokenHash: tokenHash('csb_thief') }),
    ])
    const ask = () =>
      principalOf(
        store.view(),
        { kind: 'bearer', token: 'csb_thief' },
        { self: node.did, owner: owner.did, now: LATER },
      )
    expect(ask()).toMatchObject({ did: agent.did })
    expect(trusted(store.view(), thief.did)).toMatchObject({ name: 'Ada', after: owner.did })
    await store.transact((tx) => revoke(tx, signRevocation({ target: hashBefore, now: LATER }, thief), LATER))
    const { ended } = await store.transact((tx) =>
      takeKeyStatements(tx, [signCompromise(owner.did, LATER, thief)], { now: LATER, also: [], except: [] }),
    )
    expect(ended).toBe(1)
    expect(isRevoked(store.view(), hashBefore)).toBe(true)

    await take(store, recovered())
    const view = store.view()
    expect(currentKey(view, owner.did)).toBe(next.did)
    expect(isSameOwner(view, owner.did, thief.did)).toBe(false)
    expect(thrownBy(ask)).toMatchObject({ code: expect.stringMatching(/UNAUTHENTICATED|LEASE_REVOKED/) as unknown })
    expect(isRevoked(view, hash)).toBe(true)
    expect(trusted(view, thief.did)).toBeUndefined()
    expect(trusted(view, next.did)).toMatchObject({ name: 'Ada', ceiling: 'execute' })
    // what the thief said of the old key, and ended by it, is as if it had never been said
    expect(isRevoked(view, hashBefore)).toBe(false)
    expect(endOfKey(view, owner.did)).toBeUndefined()
    await refused(store, signCompromise(owner.did, LATER, thief), { code: 'DENIED' })
    await refused(store, change(owner, thief), { code: 'CONFLICT' })
    // the owner says it with the key that follows
    await take(store, signCompromise(owner.did, LATER, next))
    expect(isRevoked(store.view(), hashBefore)).toBe(true)
  })

  test.each([
    ['by a key that was not named', recovered(next, owner, thief), { code: 'DENIED' }],
    ['of a key that named none', recovered(next, stranger), { code: 'DENIED' }],
    ['to itself', recovered(owner), { code: 'CONFLICT' }],
    ['from a time to come', recovered(next, owner, recovery, LATER + 61_000), { details: { reason: 'not_yet_valid' } }],
  ])('not %s', async (_, statement, like) => {
    await refused(await trusting(named()), statement, like)
  })

  test('not with a signature of another key, for another change, or of another kind', async () => {
    const store = await trusting(named())
    const { recovered: good } = recovered()
    const { signature_new: _n, signature_recovery: _r, ...body } = good
    const signed = (domain: 'keychange' | 'recovery', wrapped: object, by: KeyPair) => signDocument(domain, wrapped, by)
    for (const wrong of [
      { ...good, new: thief.did },
      { ...good, old: stranger.did },
      { ...good, effective_at: good.effective_at - 1 },
      { ...good, seq: 2 },
      { ...good, signature_new: good.signature_recovery },
      { ...good, signature_recovery: signed('recovery', { recovered: body }, owner) },
      { ...good, signature_recovery: signed('keychange', { keychange: body }, recovery) },
      { ...good, signature_recovery: signed('recovery', { recovery: body }, recovery) },
    ])
      await refused(store, { recovered: wrong }, { details: { reason: 'bad_signature' } })
    await refused(store, { recovered: { ...good, more: 1 } }, { details: { reason: 'malformed' } })
    await take(store, { recovered: good })
  })

  test('L1.3 after changes as well: what an earlier key named counts for those that followed it', async () => {
    const store = await trusting(named(), change(owner, next))
    expect(recoveryOf(store.view(), next.did)).toBe(recoveryDigest(recovery.did))
    // whoever has the key of now names no other one
    await refused(store, named(next, thief), { code: 'CONFLICT' })
    // and may say again which one it is, for those that know no key before it
    await take(store, named(next))
    expect(statementsOn(store.view(), next.did)).toEqual([named(next)])
    await take(store, recovered(second, next))
    expect(currentKey(store.view(), owner.did)).toBe(second.did)
    expect(recoveryOf(store.view(), second.did)).toBe(recoveryDigest(recovery.did))
    await take(store, named(second, recovery2, recovery))
    // the one that was replaced recovers none of the keys any more
    await refused(store, recovered(thief), { code: 'DENIED' })
    await refused(store, recovered(thief, next), { code: 'DENIED' })
    await refused(store, recovered(thief, second), { code: 'DENIED' })
    await take(store, recovered(other, second, recovery2))
    expect(currentKey(store.view(), owner.did)).toBe(other.did)
  })

  test('L1.3 at a node that knows only the last of the keys, by what that one said', async () => {
    const store = await testStore()
    await store.transact((tx) => trust(tx, { did: next.did, name: 'Ada', ceiling: 'execute' }))
    await refused(store, recovered(second, next), { code: 'DENIED' })
    await take(store, named(next))
    await take(store, recovered(second, next))
    expect(trusted(store.view(), second.did)).toMatchObject({ name: 'Ada', after: next.did })
  })

  test('L1.3 keys of which the changes come in the wrong order are trusted and recovered all the same', async () => {
    const store = await trusting(named())
    await take(store, change(next, second, STOLEN + 1))
    await take(store, change(owner, next))
    expect(trusted(store.view(), second.did)).toMatchObject({ name: 'Ada', after: next.did })
    await take(store, recovered(other, second))
    expect(currentKey(store.view(), owner.did)).toBe(other.did)
  })

  test('whom the owner of this node trusts by that key stays trusted, whoever else it was said to follow', async () => {
    const store = await trusting(named())
    await store.transact((tx) => trust(tx, { did: thief.did, name: 'Bea', ceiling: 'inform' }))
    await take(store, change(owner, thief))
    await take(store, recovered())
    expect(trusted(store.view(), thief.did)).toEqual({
      did: thief.did,
      name: 'Bea',
      ceiling: 'inform',
      clearance: null,
    })
  })

  test('what was changed of an entry that came with a change of the key goes with it', async () => {
    const store = await trusting(named(), change(owner, thief))
    await store.transact((tx) => trust(tx, { did: thief.did, name: 'Ada, new key', ceiling: 'override' }))
    await take(store, recovered())
    expect(trusted(store.view(), thief.did)).toBeUndefined()
  })
})
