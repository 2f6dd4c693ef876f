import { describe, expect, test } from 'vitest'
import { LIMITS, digestOf, type Authority, type KeyPair, type Lease, type Status } from '@csb/core'
import { prefix, type Store } from '@csb/store'
import {
  appendRecord,
  attachAuthority,
  grantHash,
  isRevoked,
  issueStatus,
  latestStatus,
  revoke,
  rightsOf,
  signRevocation,
  signStatus,
  storeGrant,
  takeStatus,
  verifyAuthority,
  type AuthorityInit,
  type Outcome,
} from '@csb/authority'
import {
  HOME,
  HOUR,
  NOW,
  agent,
  childGrant,
  helper,
  node,
  otherNode,
  owner,
  ownerGrant,
  refusal,
  reopened,
  stranger,
  testStore,
  wideLease,
} from './cast.ts'
import { BODY, listening, sign } from './speech.ts'

const MAX_AGE_MS = 10_000
/** A grant for which another node answers. */
const told = (extra: Parameters<typeof ownerGrant>[0] = {}) =>
  ownerGrant({ statusKey: otherNode.did, maxAgeMs: MAX_AGE_MS, ...extra })
const word = (now: number, extra: { seq?: number; revoked?: string[] } = {}, key: KeyPair = otherNode): Status =>
  signStatus({ seq: 0, revoked: [], now, ...extra }, key)
const take = (store: Store, value: unknown, now: number) => store.transact((tx) => takeStatus(tx, value, now))

const judge = (store: Store, authority: Authority, now: number): Promise<Outcome> =>
  store.transact((tx) => verifyAuthority(tx, { body: attachAuthority(BODY, authority), self: node.did, now }))
const speak = (store: Store, root: ReturnType<typeof told>, now: number, extra: Partial<AuthorityInit> = {}) =>
  judge(store, sign([root], { level: 'execute', now, ...extra }), now)

describe('L1.3 a message that must be done needs a young word that its grants stand', () => {
  test('L1.3 without one it is ordinary, with one it is done, and to the millisecond', async () => {
    const store = await listening()
    const root = told()
    const stale = { kind: 'downgraded', step: 6, stepName: 'expiry', reason: 'revocation_stale' }
    expect(await speak(store, root, NOW)).toMatchObject(stale)
    expect(await speak(store, root, NOW, { status: [word(NOW)] })).toMatchObject({ kind: 'accepted', isStale: false })
    // what was taken in once serves until it is too old
    expect(await speak(store, root, NOW + MAX_AGE_MS)).toMatchObject({ kind: 'accepted' })
    expect(await speak(store, root, NOW + MAX_AGE_MS + 1)).toMatchObject(stale)
  })

  test('L1.3 requests and information go on with a mark', async () => {
    const store = await listening()
    for (const level of ['inform', 'request'] as const)
      expect(await speak(store, told(), NOW, { level })).toMatchObject({ kind: 'accepted', isStale: true, level })
  })

  test('attack 16: the push is held back; after the bound nothing more is done in that name', async () => {
    const store = await listening()
    const root = told()
    const last = word(NOW)
    // revoked right after the last word, which the holder goes on showing
    const accepted: number[] = []
    for (let at = NOW; at <= NOW + MAX_AGE_MS + LIMITS.clockSkewMs; at += 1000)
      if ((await speak(store, root, at, { status: [last] })).kind === 'accepted') accepted.push(at - NOW)
    expect(Math.max(...accepted)).toBe(MAX_AGE_MS)
  })

  test('every grant of the chain has its own', async () => {
    const store = await listening()
    const root = told()
    const child = childGrant(root, { level: 'execute', statusKey: stranger.did, maxAgeMs: MAX_AGE_MS })
    const say = (...status: Status[]) => judge(store, sign([root, child], { level: 'execute', status }, helper), NOW)
    expect(await say(word(NOW))).toMatchObject({ reason: 'revocation_stale' })
    expect(await say(word(NOW, {}, stranger))).toMatchObject({ kind: 'accepted' })
  })

  test('DEL-003.3.4 a word that calls the grant revoked ends it, here and for ever', async () => {
    const store = await listening()
    const root = told()
    const ended = word(NOW, { seq: 1, revoked: [grantHash(root)] })
    expect(await speak(store, root, NOW, { status: [ended], level: 'request' })).toMatchObject({
      step: 3,
      reason: 'revoked',
    })
    const later = word(NOW + 1, { seq: 2 })
    expect(await speak(store, root, NOW + 1, { status: [later] })).toMatchObject({ reason: 'revoked' })
    expect(await speak(await reopened(store), root, NOW + 2)).toMatchObject({ reason: 'revoked' })
  })

  test('what is wrong with a word is as if it had not come', async () => {
    const store = await listening()
    const root = told()
    const good = word(NOW)
    const forged = { status: { ...good.status, issued_at: NOW + 1 } }
    const bad = [forged, word(NOW, {}, stranger), word(NOW + LIMITS.clockSkewMs + 1)]
    const spoken = await speak(store, root, NOW, { status: bad })
    expect(spoken).toMatchObject({ kind: 'downgraded', reason: 'revocation_stale' })
    // one that is none is no word at all: the message can not be read
    const broken = await speak(store, root, NOW, { status: [{ status: null }, 7] as unknown as Status[] })
    expect(broken).toMatchObject({ kind: 'downgraded', step: 1, reason: 'malformed' })
    let kept = 0
    for await (const _ of store.view().range({ prefix: prefix('status') })) kept++
    expect(kept).toBe(0)
  })

  test('a key that the grant does not name ends nothing by its word', async () => {
    const store = await listening()
    const root = told()
    const lie = word(NOW, { seq: 1, revoked: [grantHash(root)] }, stranger)
    await take(store, lie, NOW)
    expect(await speak(store, root, NOW, { status: [word(NOW)] })).toMatchObject({ kind: 'accepted' })
  })

  test('attack 9: a clock set back makes no old word young', async () => {
    const store = await listening()
    const root = told()
    await take(store, word(NOW), NOW)
    const entry = { operation: 'x', outcome: 'done', actor: null, door: 'http', run: null, lease: null } as const
    await store.transact((tx) => appendRecord(tx, { ...entry, reads: [], effect: {} }, NOW + HOUR / 2))
    expect(await speak(store, root, NOW)).toMatchObject({ kind: 'downgraded', reason: 'clock_suspect' })
  })
})

describe('attack 17: the number of a word never goes back', () => {
  test('older ones, lower ones, and the same number with another set are not taken', async () => {
    const store = await testStore()
    const hash = digestOf('x')
    expect(await take(store, word(NOW, { seq: 2, revoked: [hash] }), NOW)).toBe(true)
    expect(await take(store, word(NOW, { seq: 2, revoked: [hash] }), NOW)).toBe(false)
    expect(await take(store, word(NOW + 1, { seq: 1 }), NOW)).toBe(false)
    expect(await take(store, word(NOW + 1, { seq: 2 }), NOW)).toBe(false)
    expect(await take(store, word(NOW + 1, { seq: 2, revoked: [hash] }), NOW)).toBe(true)
    expect(latestStatus(store.view(), otherNode.did)?.status.issued_at).toBe(NOW + 1)
  })

  test('one from too far ahead, one with a changed byte, one that is none', async () => {
    const store = await testStore()
    await expect(take(store, word(NOW + LIMITS.clockSkewMs + 1), NOW)).rejects.toMatchObject(refusal('not_yet_valid'))
    const { status } = word(NOW)
    await expect(take(store, { status: { ...status, seq: 5 } }, NOW)).rejects.toMatchObject(refusal('bad_signature'))
    await expect(take(store, { status: {} }, NOW)).rejects.toMatchObject({ code: 'GRANT_INVALID' })
  })

  test('a node counts up when the set changes, also after a restart, and answers only for its own', async () => {
    const store = await testStore()
    const mine = ownerGrant()
    const other = ownerGrant({ statusKey: otherNode.did })
    const issue = (from: Store, now: number) => from.transact((tx) => issueStatus(tx, node, now))
    for (const grant of [mine, other]) await store.transact((tx) => storeGrant(tx, { chain: [grant] }))
    expect((await issue(store, NOW)).status).toMatchObject({ seq: 0, revoked: [] })
    const end = (target: string, by = owner) =>
      store.transact((tx) => revoke(tx, signRevocation({ target, now: NOW }, by), NOW))
    await end(grantHash(other))
    await end(digestOf('never seen'), stranger)
    expect((await issue(store, NOW + 1)).status).toMatchObject({ seq: 0, revoked: [] })
    await end(grantHash(mine))
    expect((await issue(store, NOW + 2)).status).toMatchObject({ seq: 1, revoked: [grantHash(mine)] })
    const again = await reopened(store)
    expect((await issue(again, NOW + 3)).status).toMatchObject({ seq: 1, issued_at: NOW + 3 })
    // once it has expired nobody needs the word any more
    expect((await issue(again, NOW + 2 * HOUR)).status).toMatchObject({ seq: 2, revoked: [] })
    expect(isRevoked(again.view(), grantHash(mine))).toBe(true)
  })
})

test('L1.3 a credential shows and changes a home only with a young word, but at the node that answers for it', async () => {
  const lease: Lease = wideLease({ actions: ['read', 'write'] })
  const rights = (store: Store, grant: ReturnType<typeof told>, now: number) => {
    const asked = { did: agent.did, home: { id: HOME, owner: owner.did }, self: node.did, now }
    return store.transact((tx) => {
      storeGrant(tx, { chain: [grant] })
      return rightsOf(tx, asked)
    })
  }
  const store = await testStore()
  expect(await rights(store, told({ lease }), NOW)).toEqual({ clearance: undefined, mayWrite: false })
  await take(store, word(NOW), NOW)
  expect(await rights(store, told({ lease }), NOW + MAX_AGE_MS)).toMatchObject({ mayWrite: true })
  expect(await rights(store, told({ lease }), NOW + MAX_AGE_MS + 1)).toEqual({ clearance: undefined, mayWrite: false })
  expect(await rights(store, ownerGrant({ lease }), NOW + HOUR - 1)).toMatchObject({ mayWrite: true })
})
