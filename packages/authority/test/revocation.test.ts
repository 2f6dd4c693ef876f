import { expect, test } from 'vitest'
import { digestOf } from '@csb/core'
import { prefix } from '@csb/store'
import { grantHash, isRevoked, revoke, signRevocation, storeGrant, verifyChain } from '@csb/authority'
import { NOW, agent, childGrant, helper, owner, ownerGrant, refusal, stranger, testStore, thrownBy } from './cast.ts'

const word = (target: string, by = owner) => signRevocation({ target, now: NOW }, by)

test('DEL-003.3.4 a revoked grant is dead, and everything below it, for ever', async () => {
  const store = await testStore()
  const root = ownerGrant()
  const child = childGrant(root)
  await store.transact((tx) => storeGrant(tx, { chain: [root, child] }))
  expect(isRevoked(store.view(), grantHash(child))).toBe(false)
  await store.transact((tx) => revoke(tx, word(grantHash(root)), NOW))
  expect(isRevoked(store.view(), grantHash(root))).toBe(true)
  expect(isRevoked(store.view(), grantHash(child))).toBe(true)
  await store.transact((tx) => storeGrant(tx, { chain: [root, child] }))
  expect(isRevoked(store.view(), grantHash(child))).toBe(true)
})

test('DEL-003.3.4 the origin, the grantor and the grantee may revoke; a stranger may not', async () => {
  for (const by of [owner, agent, helper]) {
    const store = await testStore()
    const root = ownerGrant()
    const child = childGrant(root)
    await store.transact((tx) => storeGrant(tx, { chain: [root, child] }))
    await store.transact((tx) => revoke(tx, word(grantHash(child), by), NOW))
    expect(isRevoked(store.view(), grantHash(child))).toBe(true)
    expect(isRevoked(store.view(), grantHash(root))).toBe(false)
  }
  const store = await testStore()
  const root = ownerGrant()
  await store.transact((tx) => storeGrant(tx, { chain: [root] }))
  const refused = store.transact((tx) => revoke(tx, word(grantHash(root), stranger), NOW))
  await expect(refused).rejects.toMatchObject({ code: 'DENIED' })
  expect(isRevoked(store.view(), grantHash(root))).toBe(false)
})

test('L1.3 attack 17: a revocation that comes before its grant counts when the grant comes', async () => {
  const store = await testStore()
  const root = ownerGrant()
  await store.transact((tx) => revoke(tx, word(grantHash(root)), NOW))
  const error = thrownBy(() =>
    verifyChain({
      chain: [root],
      now: NOW,
      trustedRoot: () => ({ ceiling: 'override' }),
      isRevoked: (hash, by) => isRevoked(store.view(), hash, by),
    }),
  )
  expect(error).toMatchObject(refusal('revoked'))
  await store.transact((tx) => storeGrant(tx, { chain: [root] }))
  expect(isRevoked(store.view(), grantHash(root))).toBe(true)
})

test('attack 17: a stranger who revokes first neither ends the grant nor takes the place of its grantor', async () => {
  const store = await testStore()
  const root = ownerGrant()
  await store.transact((tx) => revoke(tx, word(grantHash(root), stranger), NOW))
  await store.transact((tx) => storeGrant(tx, { chain: [root] }))
  expect(isRevoked(store.view(), grantHash(root))).toBe(false)
  await store.transact((tx) => revoke(tx, word(grantHash(root), owner), NOW))
  expect(isRevoked(store.view(), grantHash(root))).toBe(true)
})

test('attack 18: a re-spelled signature on the grant does not help it', async () => {
  const store = await testStore()
  const root = ownerGrant()
  await store.transact((tx) => revoke(tx, word(grantHash(root)), NOW))
  const respelled = { ...root, delegation: { ...root.delegation, signature: `ed25519:${'A'.repeat(86)}` } }
  expect(isRevoked(store.view(), grantHash(respelled), [owner.did])).toBe(true)
})

test('a revocation with a changed byte, or the signature of another kind, is refused', async () => {
  const store = await testStore()
  const good = word(digestOf('x'))
  const spoiled = { revocation: { ...good.revocation, reason: 'ended' } }
  await expect(store.transact((tx) => revoke(tx, spoiled, NOW))).rejects.toMatchObject(refusal('bad_signature'))
  await expect(store.transact((tx) => revoke(tx, { revocation: {} }, NOW))).rejects.toMatchObject({
    code: 'GRANT_INVALID',
    details: { reason: 'malformed' },
  })
})

test('the same revocation twice is one', async () => {
  const store = await testStore()
  const document = word(digestOf('x'))
  await store.transact((tx) => revoke(tx, document, NOW))
  await store.transact((tx) => revoke(tx, document, NOW + 5))
  let kept = 0
  for await (const _ of store.view().range({ prefix: prefix('revoked') })) kept++
  expect(kept).toBe(1)
})
