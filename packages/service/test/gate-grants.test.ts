/** Grants that a tainted session would pass on or bring: a person reads what they say, and not a digest of it. */
import { expect, test } from 'vitest'
import { createFakeClock, createKeyPair, type Grant } from '@csb/core'
import { draftGrant, grantHash, holderOf, signApproval, signGrant, taintLease, trust, type Card } from '@csb/authority'
import { HOUR, NOW, cardFor, codeOf, createHouse, holdingIn, type House } from './house.ts'
import { createNetwork } from './network.ts'

const RULING = {
  actions: ['list', 'read', 'exec'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
} as const

const approve = (house: House, card: Card) => {
  const now = house.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
  return house.owned<{ outcome: string }>('gate.approve', { card: card.id, approval })
}

/** A session that may rule, and has read something from outside. */
async function ruler(house: House) {
  const session = await holdingIn(house, {
    ...RULING,
    actions: [...RULING.actions],
    branches: ['*'],
    paths: ['/'],
    label_tags: ['*'],
    capabilities: ['C'],
  })
  const label = { level: 'private', integrity: 'external', tags: [] } as const
  await house.store.transact((tx) =>
    taintLease(tx, session.hash, [
      { home: house.home, path: 'mail/1.md', oid: 'a'.repeat(64), label: { ...label, tags: [] } },
    ]),
  )
  return session
}

test('attack 40: what is passed on is told with level, scope, audience, depth, time and lease, and any other wish is another', async () => {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const nas = await createHouse({ name: 'nas', network, clock })
  const aide = await createHouse({ name: 'aide', network, clock })
  await aide.store.transact((tx) => trust(tx, { did: nas.owner.did, name: 'Ines', ceiling: 'execute' }))
  const friend = createKeyPair().did
  const grant = await nas.grant({
    type: 'scoped',
    to: { name: 'aide', did: aide.key.did },
    audience: [nas.key.did, aide.key.did],
    scope: ['reports'],
    level: 'execute',
    ttlMs: HOUR,
    maxDepth: 2,
    lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${nas.home}`], actions: ['list', 'read'], paths: ['/'] },
  })
  await nas.owned('authority.distribute', { did: aide.key.did, chain: [grant] })
  const session = await ruler(aide)
  const wish = {
    grant: grant.delegation.id,
    to: { name: 'friend', did: friend },
    scope: ['reports/weekly'],
    level: 'request',
    audience: [nas.key.did],
    max_depth: 1,
    ttl_ms: 60_000,
    lease: { actions: ['list'] },
  }
  const pass = (more: object = {}) =>
    aide.service.perform(session, 'authority.pass', { ...wish, ...more }) as Promise<{ hash: string; chain: Grant[] }>
  const card = await cardFor(pass(), aide.owned)
  expect(card.facts).toMatchObject({
    operation: 'authority.pass',
    under: [{ from: { name: 'Ines', did: nas.owner.did }, to: { name: 'aide', did: aide.key.did }, level: 'execute' }],
    to: { name: 'friend', did: friend, known: null },
    from: null,
    grant: {
      level: 'request',
      scope: ['reports/weekly'],
      audience: [nas.key.did],
      depth: 1,
      task: null,
      max_age_ms: 60_000,
    },
    lease: { actions: ['list'], max_children: 0 },
    ttl_ms: 60_000,
    work: null,
    document: null,
    token: false,
  })
  expect(card.risks.map(({ id }) => id)).toContain('unknown-recipient')
  await approve(aide, card)
  for (const more of [
    { scope: ['reports'] },
    { level: 'execute' },
    { audience: [aide.key.did] },
    { max_depth: 0 },
    { task: 'task_1', max_depth: 0 },
    { max_age_ms: 30_000 },
    { lease: { actions: ['list', 'read'] } },
    { ttl_ms: 61_000 },
    { to: { name: 'Friend', did: friend } },
  ])
    expect(await codeOf(pass(more))).toBe('GATE_REQUIRED')
  const [, made] = (await pass()).chain
  expect(made?.delegation).toMatchObject({ level: 'request', scope: ['reports/weekly'], max_depth: 1 })
  expect(await codeOf(pass())).toBe('GATE_REQUIRED')
})

test('attack 40: a grant that is brought signed is told by what it says and who signed it', async () => {
  const house = await createHouse()
  const session = await ruler(house)
  const holder = await holdingIn(house, { actions: ['list', 'read'], paths: ['/'], max_children: 2 })
  const parent = (await house.owned<{ items: { hash: string; grant: Grant }[] }>('authority.grants')).items.find(
    ({ hash }) => hash === holder.hash,
  )?.grant
  if (parent === undefined) throw new Error('its grant is not kept')
  const signer = holderOf(holder.token)
  const peer = createKeyPair().did
  const child = signGrant(
    draftGrant({
      type: 'scoped',
      from: { name: 'builder', did: signer.did },
      to: { name: 'peer', did: peer },
      audience: [house.key.did],
      scope: ['lease'],
      level: 'request',
      now: NOW,
      ttlMs: 1_000,
      parent,
      statusKey: house.key.did,
      lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${house.home}`], actions: ['list'], paths: ['/'] },
    }),
    signer,
  )
  const bring = (more: object = {}) =>
    house.service.perform(session, 'authority.accept', { chain: [parent], grant: child, ...more })
  const card = await cardFor(bring(), house.owned)
  expect(card.facts).toMatchObject({
    operation: 'authority.accept',
    under: [{ from: { did: house.owner.did }, to: { name: 'builder', did: signer.did } }],
    to: { name: 'peer', did: peer, known: null },
    from: { name: 'builder', did: signer.did, known: null },
    lease: { actions: ['list'] },
    grant: { level: 'request', scope: ['lease'], audience: [house.key.did], depth: 0 },
    ttl_ms: null,
    expires_at: NOW + 1_000,
    token: false,
    document: grantHash(child),
  })
  await approve(house, card)
  // with a token it is another wish: somebody can act under it then
  const asked = await cardFor(bring({ token_hash: `sha256:${'a'.repeat(64)}` }), house.owned)
  expect(asked.facts).toMatchObject({ token: true })
  expect(await codeOf(bring())).toBe('done')
})
