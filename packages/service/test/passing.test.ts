/** What was delegated to a node is passed on by it, brought to whom it is for, and ended. */
import { describe, expect, test } from 'vitest'
import { createFakeClock, createKeyPair, type Grant } from '@csb/core'
import { grantHash, isRevoked, listGrants, signRevocation, trust } from '@csb/authority'
import { HOUR, NOW, attach, codeOf, createHouse, messageOf, wordsOf, type House, type Task } from './house.ts'
import { createNetwork } from './network.ts'

type Passed = { readonly id: string; readonly hash: string; readonly chain: readonly Grant[] }

/** The owner of the nas lets the aide speak to the listener, and pass it on; the aide has a friend of its own. */
async function stage() {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const [nas, aide, friend, listener] = [
    await createHouse({ name: 'nas', network, clock }),
    await createHouse({ name: 'aide', network, clock }),
    await createHouse({ name: 'friend', network, clock }),
    await createHouse({ name: 'listener', network, clock }),
  ]
  for (const house of [aide, listener])
    await house.store.transact((tx) =>
      trust(tx, { did: nas.owner.did, name: 'Ines', ceiling: 'execute', clearance: { level: 'trusted', tags: [] } }),
    )
  await attach(listener)
  const grant = await nas.grant({
    type: 'scoped',
    to: { name: 'aide', did: aide.key.did },
    audience: [listener.key.did],
    scope: ['reports'],
    level: 'execute',
    ttlMs: HOUR,
    maxDepth: 2,
  })
  await nas.owned('authority.distribute', { did: aide.key.did, chain: [grant] })
  const to = { name: 'friend', did: friend.key.did }
  const pass = (more: object = {}) => aide.owned<Passed>('authority.pass', { grant: grant.delegation.id, to, ...more })
  const bring = (chain: readonly Grant[]) => aide.owned('authority.distribute', { did: friend.key.did, chain })
  return { network, clock, nas, aide, friend, listener, grant, to, pass, bring }
}

const speak = async (from: House, to: House, delegation: string, more: object = {}): Promise<string> => {
  const sent = await from.owned<{ task: Task }>('agents.send', {
    did: to.key.did,
    agent: 'clerk',
    params: { message: messageOf('hello') },
    delegation,
    ...more,
  })
  return wordsOf(sent.task)
}

describe('DEL-001 a node passes on what was made out to it', () => {
  test('DEL-001 to a friend whom the origin does not know; who listens checks it all the way', async () => {
    const { nas, aide, friend, listener, pass, bring } = await stage()
    const passed = await pass({ scope: ['reports/weekly'], level: 'request' })
    expect(passed.chain).toHaveLength(2)
    // the friend knows neither the aide nor the origin: it keeps nothing of strangers
    await expect(bring(passed.chain)).rejects.toMatchObject({ details: { reason: 'untrusted_root' } })
    expect((await listGrants(friend.store.view())).map(grantHash)).not.toContain(passed.hash)
    await friend.store.transact((tx) => trust(tx, { did: aide.key.did, name: 'aide', ceiling: 'request' }))
    expect(await bring(passed.chain)).toEqual({ accepted: passed.hash })
    expect(await speak(friend, listener, passed.id)).toBe('with authority from Ines')
    expect(await speak(friend, listener, passed.id, { scope: ['reports'] })).toBe(
      'processed without authority: out_of_scope',
    )
    expect(await speak(friend, listener, passed.id, { level: 'execute' })).toBe(
      'processed without authority: level_exceeds',
    )
    // kept to be shown elsewhere, the chain gives nothing at the friend itself
    await attach(friend)
    expect(await speak(nas, friend, (await nas.grant({ to: { name: 'nas', did: nas.key.did } })).delegation.id)).toBe(
      'processed without authority: untrusted_root',
    )
  })

  test.each<[string, object]>([
    ['scope', { scope: ['payments'] }],
    ['level', { level: 'override' }],
    ['expires_at', { ttl_ms: 2 * HOUR }],
    ['max_depth', { max_depth: 2 }],
    ['audience', { audience: ['*'], level: 'request' }],
    ['revocation.max_age_ms', { max_age_ms: 90_000 }],
    ['authorization_details', { lease: {} }],
  ])('L1.2 wider it makes nothing but an entry of the record: %s', async (field, more) => {
    const { aide, pass } = await stage()
    const before = await aide.dump()
    await expect(pass(more)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field } })
    expect(await aide.dump()).toEqual(before)
    expect((await aide.records()).at(-1)).toMatchObject({
      operation: 'authority.pass',
      outcome: 'refused',
      code: 'SCOPE_EXCEEDED',
    })
  })

  test('DEL-003.3.4 revoked, expired or made out to somebody else it is not passed on', async () => {
    const { nas, aide, clock, grant, pass, to } = await stage()
    const theirs = await aide.grant({ to: { name: 'x', did: createKeyPair().did }, maxDepth: 1 })
    const before = await aide.dump()
    await expect(pass({ grant: theirs.delegation.id })).rejects.toMatchObject({
      details: { reason: 'holder_mismatch' },
    })
    await expect(pass({ grant: 'del_none' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await aide.dump()).toEqual(before)
    const reader = await aide.leased({ capabilities: ['B'] })
    expect(await codeOf(aide.service.perform(reader, 'authority.pass', { grant: grantHash(grant), to }))).toBe(
      'SCOPE_EXCEEDED',
    )
    await nas.owned('authority.revoke', signRevocation({ target: grantHash(grant), now: NOW }, nas.owner))
    await expect(pass()).rejects.toMatchObject({ details: { reason: 'revoked' } })
    const later = await aide.grant({
      to: { name: 'aide', did: aide.key.did },
      type: 'scoped',
      scope: ['x'],
      ttlMs: 1000,
      maxDepth: 1,
    })
    clock.advance(1000)
    await expect(pass({ grant: later.delegation.id })).rejects.toMatchObject({ details: { reason: 'expired' } })
  })

  test('DEL-003.3.4 ended by the node it is over wherever it went, and what hangs below it', async () => {
    const { aide, friend, listener, pass, bring } = await stage()
    await friend.store.transact((tx) => trust(tx, { did: aide.key.did, name: 'aide', ceiling: 'request' }))
    const passed = await pass({ max_depth: 1 })
    await bring(passed.chain)
    const further = await friend.owned<Passed>('authority.pass', {
      grant: passed.hash,
      to: { name: 'third', did: createKeyPair().did },
    })
    expect(await speak(friend, listener, passed.id)).toBe('with authority from Ines')
    const ended = await aide.owned<{ revoked: string; reached: { did: string }[] }>('authority.end', {
      grant: passed.hash,
    })
    expect(ended.reached.map(({ did }) => did)).toEqual([friend.key.did])
    for (const hash of [passed.hash, further.hash]) expect(isRevoked(friend.store.view(), hash)).toBe(true)
    expect(await speak(friend, listener, passed.id)).toBe('processed without authority: revoked')
    await expect(aide.owned('authority.end', { grant: `sha256:${'0'.repeat(64)}` })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })

  test('DEL-003.3.4 a node ends nothing that it has no part in', async () => {
    const { aide, grant } = await stage()
    const other = createKeyPair()
    const foreign = await aide.grant({ to: { name: 'x', did: other.did }, statusKey: other.did })
    const before = await aide.dump()
    await expect(aide.owned('authority.end', { grant: grantHash(foreign) })).rejects.toMatchObject({ code: 'DENIED' })
    expect(await aide.dump()).toEqual(before)
    // what it holds itself it may give back
    expect(await aide.owned('authority.end', { grant: grantHash(grant) })).toMatchObject({ revoked: grantHash(grant) })
  })
})
