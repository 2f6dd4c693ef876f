import { describe, expect, test } from 'vitest'
import { random, sha256Hex, toHex, type Lease } from '@csb/core'
import { key, scanFiles, type Store } from '@csb/store'
import {
  appendRecord,
  checkHeld,
  createToken,
  draftGrant,
  findGrant,
  grantHash,
  listGrants,
  listTrust,
  principalOf,
  revoke,
  rightsOf,
  signGrant,
  signRevocation,
  storeGrant,
  tokenHash,
  trust,
  trusted,
  untrust,
  verifyCredential,
  type GrantInit,
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
  ownerDraft,
  ownerGrant,
  party,
  refusal,
  stranger,
  testStore,
  thrownBy,
  wideLease,
} from './cast.ts'

const options = { self: node.did, owner: owner.did, now: NOW }

async function withToken(init: Partial<GrantInit> = {}): Promise<{ store: Store; token: string; hash: string }> {
  const store = await testStore()
  const token = createToken()
  const chain = [ownerGrant({ lease: wideLease(), ...init })]
  const hash = await store.transact((tx) => storeGrant(tx, { chain, tokenHash: tokenHash(token) }))
  return { store, token, hash }
}
const who = (store: Store, token: string, now = NOW) =>
  principalOf(store.view(), { kind: 'bearer', token }, { ...options, now })

describe('who is asking', () => {
  test('L1.1 a bearer token is its grant’s holder with its grant’s lease', async () => {
    const { store, token, hash } = await withToken()
    expect(who(store, token)).toMatchObject({
      kind: 'bearer',
      did: agent.did,
      name: '若兰 🌸',
      leaseHash: hash,
      lease: wideLease(),
    })
  })

  test('L1.1 nobody has no lease, and an unknown token is nobody', async () => {
    const { store } = await withToken()
    const nobody = thrownBy(() => principalOf(store.view(), { kind: 'nobody' }, options))
    expect(nobody).toMatchObject({ code: 'LEASE_REQUIRED' })
    expect(thrownBy(() => who(store, createToken()))).toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(thrownBy(() => who(store, ''))).toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  test('L1.1 a token of a grant that only lends a voice has no lease', async () => {
    const store = await testStore()
    const token = createToken()
    await store.transact((tx) => storeGrant(tx, { chain: [ownerGrant()], tokenHash: tokenHash(token) }))
    expect(thrownBy(() => who(store, token))).toMatchObject({ code: 'LEASE_REQUIRED' })
  })

  test('L1.3 attack 8: a lease ends to the millisecond', async () => {
    const { store, token } = await withToken()
    const held = who(store, token, NOW + HOUR - 1)
    expect(thrownBy(() => checkHeld(store.view(), held, NOW + HOUR - 1))).toBeUndefined()
    expect(thrownBy(() => checkHeld(store.view(), held, NOW + HOUR))).toMatchObject({ code: 'LEASE_EXPIRED' })
    expect(thrownBy(() => who(store, token, NOW + HOUR))).toMatchObject({ code: 'LEASE_EXPIRED' })
  })

  test('L1.3 one that is over still looks, but not what was made out for a single task', async () => {
    const look = ({ store, token }: Awaited<ReturnType<typeof withToken>>) =>
      principalOf(store.view(), { kind: 'bearer', token }, { ...options, now: NOW + HOUR, isLooking: true })
    expect(look(await withToken())).toMatchObject({ did: agent.did, lease: wideLease() })
    const single = await withToken({ type: 'single', task: 'task_1800000000000_abcdefghij', maxDepth: 0 })
    expect(who(single.store, single.token)).toMatchObject({ lease: wideLease() })
    expect(thrownBy(() => look(single))).toMatchObject({ code: 'LEASE_EXPIRED' })
  })

  test('L1.3 a revoked lease is over at the next use', async () => {
    const { store, token, hash } = await withToken()
    const held = who(store, token)
    await store.transact((tx) => revoke(tx, signRevocation({ target: hash, now: NOW }, owner), NOW))
    expect(thrownBy(() => checkHeld(store.view(), held, NOW))).toMatchObject({ code: 'LEASE_REVOKED' })
    expect(thrownBy(() => who(store, token))).toMatchObject({ code: 'LEASE_REVOKED' })
  })

  test('L1.3 a clock that is set back brings no lease to life again', async () => {
    const { store, token } = await withToken()
    const entry = { operation: 'x', outcome: 'done', actor: null, door: 'timer', run: null, lease: null } as const
    await store.transact((tx) => appendRecord(tx, { ...entry, reads: [], effect: {} }, NOW + HOUR))
    expect(thrownBy(() => who(store, token, NOW))).toMatchObject({ code: 'LEASE_EXPIRED' })
  })

  test('L1.1 a lease that does not begin with this node’s owner, or is for another node, is none', async () => {
    const store = await testStore()
    const token = createToken()
    await store.transact((tx) => trust(tx, { did: stranger.did, name: 'Bob', ceiling: 'override' }))
    const foreign = signGrant(ownerDraft({ from: party('Bob', stranger), lease: wideLease() }), stranger)
    await store.transact((tx) => storeGrant(tx, { chain: [foreign], tokenHash: tokenHash(token) }))
    expect(thrownBy(() => who(store, token))).toMatchObject({
      code: 'UNAUTHENTICATED',
      details: { reason: 'untrusted_root' },
    })
    const elsewhere = await withToken({ audience: [otherNode.did] })
    expect(thrownBy(() => who(elsewhere.store, elsewhere.token))).toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  test('the node itself acts under the newest lease its owner gave it, or not at all', async () => {
    const store = await testStore()
    const itself = () => principalOf(store.view(), { kind: 'node' }, options)
    expect(thrownBy(itself)).toMatchObject({ code: 'LEASE_REQUIRED' })
    const toNode = (lease = wideLease()) => ownerGrant({ to: party('node', node), lease })
    await store.transact((tx) => storeGrant(tx, { chain: [toNode()] }))
    await store.transact((tx) => storeGrant(tx, { chain: [toNode(wideLease({ actions: ['list'] }))] }))
    expect(itself()).toMatchObject({ kind: 'node', did: node.did, lease: { actions: ['list'] } })
  })

  test('a peer is who the owner says it is, without any lease', async () => {
    const store = await testStore()
    const peer = () => principalOf(store.view(), { kind: 'peer', did: agent.did }, options)
    expect(peer()).toMatchObject({ kind: 'visitor', did: agent.did, lease: null })
    await store.transact((tx) => trust(tx, { did: agent.did, name: 'Ruolan', ceiling: 'request' }))
    expect(peer()).toMatchObject({ kind: 'peer', name: 'Ruolan', lease: null })
  })

  test('of a token only its digest is on the disk', async () => {
    const { store, token } = await withToken()
    await store.db.compactRange('', '\u{10ffff}')
    const bytes = (text: string) => new TextEncoder().encode(text)
    expect(await scanFiles(store.directory, [bytes(token)])).toEqual([])
    expect(store.view().has(key('token', sha256Hex(token)))).toBe(true)
    expect(token).toMatch(/^csb_[A-Za-z0-9_-]{43}$/)
  })
})

describe('grants that are kept', () => {
  test('are found by hash and by id, the newest of an id first', async () => {
    const store = await testStore()
    const [older, newer] = [ownerGrant({ id: 'del/../x' }), ownerGrant({ id: 'del/../x' })]
    const other = ownerGrant({ id: 'del' })
    await store.transact((tx) => {
      for (const grant of [older, newer, other]) storeGrant(tx, { chain: [grant] })
    })
    const view = store.view()
    expect(findGrant(view, 'del/../x')).toEqual([newer])
    expect(findGrant(view, grantHash(older))).toEqual([older])
    expect(findGrant(view, 'del')).toEqual([other])
    expect(thrownBy(() => findGrant(view, 'nothing'))).toMatchObject({ code: 'NOT_FOUND' })
    expect(await listGrants(view)).toHaveLength(3)
  })

  test('are refused when not signed by their grantor', async () => {
    const store = await testStore()
    const root = ownerGrant()
    const forged = { ...root, delegation: { ...root.delegation, scope: ['photos'] } }
    await expect(store.transact((tx) => storeGrant(tx, { chain: [forged] }))).rejects.toMatchObject({
      code: 'GRANT_INVALID',
    })
    expect(await listGrants(store.view())).toEqual([])
  })
})

test('A2A-002, DEL-003.3.2 the trust list is what the owner wrote, by key', async () => {
  const store = await testStore()
  await store.transact((tx) => trust(tx, { did: owner.did, name: 'Mum', ceiling: 'execute' }))
  await store.transact((tx) => trust(tx, { did: owner.did, name: 'Mother', ceiling: 'request' }))
  expect(trusted(store.view(), owner.did)).toMatchObject({ name: 'Mother', ceiling: 'request' })
  expect(await listTrust(store.view())).toHaveLength(1)
  await store.transact((tx) => untrust(tx, owner.did))
  expect(trusted(store.view(), owner.did)).toBeUndefined()
  const bad = store.transact((tx) => trust(tx, { did: `${owner.did}x`, name: 'x', ceiling: 'inform' }))
  await expect(bad).rejects.toMatchObject({ code: 'INVALID_INPUT' })
})

describe('L4.2 what a peer may see of a home', () => {
  const home = { id: HOME, owner: owner.did }
  const asked = { did: helper.did, home, self: node.did, now: NOW }
  const toPeer = (lease = wideLease(), extra: Partial<GrantInit> = {}) =>
    ownerGrant({ to: party('peer', helper), lease, ...extra })
  const NOTHING = { clearance: undefined, mayWrite: false }
  async function rightsWith(...grants: ReturnType<typeof toPeer>[]) {
    const store = await testStore()
    await store.transact((tx) => {
      for (const grant of grants) storeGrant(tx, { chain: [grant] })
    })
    return rightsOf(store.view(), asked)
  }

  test('L4.2 follows from a grant of the home’s owner to its key', async () => {
    expect(await rightsWith(toPeer())).toEqual({
      clearance: { level: 'private', tags: ['health', 'work'] },
      mayWrite: true,
    })
    expect(await rightsWith(toPeer(wideLease({ actions: ['read'] })))).toMatchObject({ mayWrite: false })
    expect(await rightsWith(toPeer(wideLease({ label_floor: 'trusted' })))).toMatchObject({ mayWrite: false })
    expect(await rightsWith()).toEqual(NOTHING)
  })

  test.each<[string, Partial<Lease>]>([
    ['only the names', { actions: ['list'] }],
    ['writing unseen', { actions: ['write'] }],
    ['a folder of it', { paths: ['/notes/2026'] }],
    ['all but a folder of it', { deny_paths: ['/notes/2026'] }],
  ])('L4.2 is nothing where the lease gives %s: a session shows and takes the whole branch', async (_, lease) => {
    expect(await rightsWith(toPeer(wideLease(lease)))).toEqual(NOTHING)
  })

  test('L4.2 is nothing without one: other holder, other node, other home, other branch, other owner', async () => {
    expect(await rightsWith(ownerGrant({ lease: wideLease() }))).toEqual(NOTHING)
    expect(await rightsWith(toPeer(wideLease(), { audience: [otherNode.did] }))).toEqual(NOTHING)
    expect(await rightsWith(toPeer(wideLease({ locations: ['nas://*/home_other'] })))).toEqual(NOTHING)
    expect(await rightsWith(toPeer(wideLease({ branches: ['runs/*'] })))).toEqual(NOTHING)
    expect(
      await rightsWith(
        signGrant(ownerDraft({ from: party('x', stranger), to: party('p', helper), lease: wideLease() }), stranger),
      ),
    ).toEqual(NOTHING)
  })

  test('L4.2 two grants are not added up', async () => {
    const rights = await rightsWith(
      toPeer(wideLease({ labels_max: 'private', label_tags: ['work'] })),
      toPeer(wideLease({ labels_max: 'trusted', label_tags: ['health', 'money'] })),
    )
    expect(rights.clearance).toEqual({ level: 'private', tags: ['work'] })
    const [few, all] = [toPeer(wideLease({ label_tags: ['health', 'work'] })), toPeer(wideLease({ label_tags: ['*'] }))]
    expect((await rightsWith(few, all)).clearance).toEqual({ level: 'private', tags: ['*'] })
    expect((await rightsWith(all, few)).clearance).toEqual({ level: 'private', tags: ['*'] })
  })

  test('L4.2 ends with the grant', async () => {
    const store = await testStore()
    const grant = toPeer()
    await store.transact((tx) => storeGrant(tx, { chain: [grant] }))
    expect(rightsOf(store.view(), { ...asked, now: NOW + HOUR })).toEqual(NOTHING)
    await store.transact((tx) => revoke(tx, signRevocation({ target: grantHash(grant), now: NOW }, owner), NOW))
    expect(rightsOf(store.view(), asked)).toEqual(NOTHING)
  })

  test('L4.2 a credential that is shown counts like one that is kept', async () => {
    const store = await testStore()
    const root = ownerGrant({ lease: wideLease() })
    const chain = [root, childGrant(root, { lease: wideLease({ labels_max: 'trusted', label_tags: [] }) })]
    const credential = verifyCredential(store.view(), { ...asked, chain })
    expect(rightsOf(store.view(), { ...asked, credential })).toEqual({
      clearance: { level: 'trusted', tags: [] },
      mayWrite: true,
    })
    expect(rightsOf(store.view(), { ...asked, credential, did: stranger.did })).toEqual(NOTHING)
    expect(verifyCredential(store.view(), { ...asked, chain: undefined })).toBeUndefined()
    const wrong = thrownBy(() => verifyCredential(store.view(), { ...asked, did: stranger.did, chain }))
    expect(wrong).toMatchObject(refusal('holder_mismatch'))
    expect(thrownBy(() => verifyCredential(store.view(), { ...asked, chain: toHex(random(4)) }))).toMatchObject(
      refusal('malformed'),
    )
  })
})

test('the node acts under the grant of its owner, whatever runs have leases meanwhile', async () => {
  const store = await testStore()
  const own = ownerGrant({ to: party('nas', node), lease: wideLease({ capabilities: ['C'] }), maxDepth: 2 })
  const narrow = draftGrant({
    type: 'single',
    from: party('nas', node),
    to: party('run', node),
    audience: [node.did],
    scope: ['notes'],
    level: 'request',
    now: NOW,
    ttlMs: HOUR,
    parent: own,
    task: 'task_1',
    lease: wideLease({ actions: ['list'], capabilities: [] }),
  })
  await store.transact((tx) => {
    storeGrant(tx, { chain: [own] })
    storeGrant(tx, { chain: [own, signGrant(narrow, node)] })
  })
  expect(principalOf(store.view(), { kind: 'node' }, options)).toMatchObject({ leaseHash: grantHash(own) })
})
