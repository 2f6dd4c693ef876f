/** The three ways in which a delegation comes to a node (DEL-003 3.3), and what the owner sees of its use. */
import { describe, expect, test } from 'vitest'
import { createFakeClock, createKeyPair, type FakeClock } from '@csb/core'
import { grantHash, isRevoked, signGrant, draftGrant, trust, type Rank } from '@csb/authority'
import { HOUR, NOW, attach, codeOf, createHouse, messageOf, wordsOf, type House, type Task } from './house.ts'
import { createNetwork } from './network.ts'

type Cast = { readonly speaker: House; readonly listener: House; readonly clock: FakeClock }

async function stage(): Promise<Cast> {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const speaker = await createHouse({ name: 'speaker', network, clock })
  const listener = await createHouse({ name: 'listener', network, clock })
  await attach(listener)
  return { speaker, listener, clock }
}

type Saying = { readonly level?: Rank; readonly scope?: readonly string[] }

async function claim({ speaker, listener }: Cast, { level = 'execute', scope = ['reports'] }: Saying = {}) {
  const params = { message: messageOf('hello') }
  const input = { did: listener.key.did, agent: 'clerk', params, level, scope }
  return wordsOf((await speaker.owned<{ task: Task }>('agents.send', input)).task)
}

const write = ({ speaker, listener }: Cast, more: object = {}) =>
  listener.owned('authority.trust', {
    did: speaker.key.did,
    name: "Ada's laptop",
    ceiling: 'execute',
    speaks: { name: 'Ada', scope: ['reports'], level: 'execute', until: NOW + HOUR, ...more },
  })

describe('DEL-003.3.3 a person tells the owner of a node', () => {
  test('DEL-003.3.3 what was written down counts for that sender, and no document is needed', async () => {
    const cast = await stage()
    expect(await claim(cast)).toBe('processed without authority: untrusted_root')
    await write(cast)
    expect(await claim(cast)).toBe('with authority from Ada')
    expect(await claim(cast, { scope: ['reports/weekly'], level: 'request' })).toBe('with authority from Ada')
  })

  test.each<[string, Saying, object?]>([
    ['out_of_scope', { scope: ['payments'] }],
    ['out_of_scope', { scope: ['*'] }],
    ['level_exceeds', { level: 'execute' }, { level: 'request' }],
    ['level_exceeds', { level: 'override' }],
  ])('DEL-003.3.2 and no further: %s', async (reason, saying, more = {}) => {
    const cast = await stage()
    await write(cast, more)
    expect(await claim(cast, saying)).toBe(`processed without authority: ${reason}`)
  })

  test('attack 26: an override is signed by its origin: nobody is let one by word of mouth', async () => {
    const cast = await stage()
    const speaks = { name: 'Ada', scope: ['*'], level: 'override' as const, until: null }
    await cast.listener.store.transact((tx) =>
      trust(tx, { did: cast.speaker.key.did, name: 'laptop', ceiling: 'override', speaks }),
    )
    expect(await claim(cast, { level: 'override' })).toBe('processed without authority: level_exceeds')
    expect(await claim(cast)).toBe('with authority from Ada')
  })

  test('DEL-003.3.4 until its time is over, also by a clock set back, or it is taken back', async () => {
    const cast = await stage()
    await write(cast)
    cast.clock.advance(HOUR)
    expect(await claim(cast)).toBe('processed without authority: expired')
    await write(cast, { until: null })
    expect(await claim(cast)).toBe('with authority from Ada')
    await cast.listener.owned('authority.trust', { did: cast.speaker.key.did, name: 'laptop', ceiling: 'execute' })
    expect(await claim(cast)).toBe('processed without authority: untrusted_root')
  })

  test('for nobody whose key no stream proved', async () => {
    const cast = await stage()
    await write(cast)
    const authority = { delegated_by: 'Ada', scope: ['reports'], level: 'execute', issued_at: NOW }
    const params = { message: messageOf('x'), authority }
    const { task } = await cast.listener.owned<{ task: Task }>('agents.send', { agent: 'clerk', params })
    expect(wordsOf(task)).toBe('processed without authority: holder_mismatch')
  })

  test('L1.2 a lease to send claims nothing', async () => {
    const { speaker, listener } = await stage()
    const agent = await speaker.leased({ actions: ['send'] })
    const input = { did: listener.key.did, agent: 'clerk', params: { message: messageOf('x') }, level: 'request' }
    expect(await codeOf(speaker.service.perform(agent, 'agents.send', input))).toBe('SCOPE_EXCEEDED')
  })

  test('nobody is let further than he is honoured', async () => {
    const cast = await stage()
    const more = { did: cast.speaker.key.did, name: 'x', ceiling: 'inform' }
    const speaks = { name: 'Ada', scope: ['*'], level: 'execute', until: null }
    expect(await codeOf(cast.listener.owned('authority.trust', { ...more, speaks }))).toBe('INVALID_INPUT')
  })
})

describe('DEL-003.3.3 identity.json declares', () => {
  async function declared() {
    const house = await createHouse()
    const grant = await house.grant({
      type: 'scoped',
      to: { name: 'agent', did: createKeyPair().did },
      audience: [createKeyPair().did],
      scope: ['reports'],
      ttlMs: HOUR,
    })
    await house.owned('authority.accept', { grant, declared: true })
    return { house, grant, hash: grantHash(grant) }
  }
  const heed = (house: House, ids: readonly string[]) =>
    house.service.perform({ kind: 'node', door: 'timer' }, 'authority.declared', { ids })

  test('DEL-003.3.4 an entry that is gone ends its grant, once and recorded', async () => {
    const { house, grant, hash } = await declared()
    expect(await heed(house, [grant.delegation.id])).toEqual({ revoked: [] })
    expect(isRevoked(house.store.view(), hash)).toBe(false)
    const again = await house.reopen()
    expect(await heed(again, [])).toEqual({ revoked: [hash] })
    expect(isRevoked(again.store.view(), hash)).toBe(true)
    const records = await again.records()
    expect(records.at(-2)).toMatchObject({ effect: { revoked: hash, by: house.key.did } })
    expect(records.at(-1)).toMatchObject({ effect: { declared: [], gone: [grant.delegation.id] } })
    expect(await heed(again, [])).toEqual({ revoked: [] })
    expect(await again.records()).toEqual(records)
  })

  test('what never stood there does not end', async () => {
    const house = await createHouse()
    const grant = await house.grant({ to: { name: 'agent', did: createKeyPair().did } })
    expect(await heed(house, [])).toEqual({ revoked: [] })
    expect(isRevoked(house.store.view(), grantHash(grant))).toBe(false)
  })

  test('a grant for which another node answers is not ended here', async () => {
    const house = await createHouse()
    const elsewhere = { statusKey: createKeyPair().did, to: { name: 'agent', did: createKeyPair().did } }
    const grant = await house.grant(elsewhere)
    await house.owned('authority.accept', { grant, declared: true })
    await heed(house, [])
    expect(isRevoked(house.store.view(), grantHash(grant))).toBe(false)
    expect(house.logged.join('\n')).toContain('is not ended here')
  })
})

test('DEL-003.3.2 the inbox tells by whose authority each message came, and why not', async () => {
  const cast = await stage()
  const { speaker, listener } = cast
  await claim(cast)
  await write(cast)
  await claim(cast)
  const message = { params: { message: messageOf('Good morning.') } }
  await speaker.owned('agents.send', { did: listener.key.did, agent: 'clerk', ...message })
  const { items } = await listener.owned<{ items: object[] }>('agents.inbox')
  const came = { from: speaker.key.did, name: "Ada's laptop", agent: 'clerk' }
  expect(items).toHaveLength(3)
  const outcomes = items.map((item) => (item as { authority: object | null }).authority)
  expect(items).toMatchObject([came, came, came])
  expect(outcomes).toEqual(
    expect.arrayContaining([
      null,
      expect.objectContaining({ accepted: false, step: 3, reason: 'untrusted_root' }),
      expect.objectContaining({ accepted: true, level: 'execute', delegated_by: 'Ada' }),
    ]),
  )
  const agent = await listener.leased({ actions: ['list', 'read'], labels_max: 'private' })
  expect(await codeOf(listener.service.perform(agent, 'agents.inbox', {}))).toBe('SCOPE_EXCEEDED')
})

test('DEL-001 what is passed on only narrows, by the name of the field', async () => {
  const { speaker, listener } = await stage()
  const parent = await speaker.grant({
    to: { name: 'node', did: speaker.key.did },
    maxDepth: 1,
    type: 'scoped',
    scope: ['reports'],
    ttlMs: HOUR,
  })
  const child = (more: object) =>
    signGrant(
      draftGrant({
        type: 'scoped',
        from: { name: 'node', did: speaker.key.did },
        to: { name: 'child', did: createKeyPair().did },
        audience: [listener.key.did],
        scope: ['reports'],
        level: 'request',
        now: NOW,
        ttlMs: HOUR / 2,
        parent,
        ...more,
      }),
      speaker.key,
    )
  const keep = (grant: object) => speaker.owned('authority.accept', { chain: [parent], grant })
  await keep(child({}))
  await expect(keep(child({ scope: ['payments'] }))).rejects.toMatchObject({ details: { reason: 'widened_scope' } })
  await expect(keep(child({ level: 'execute' }))).rejects.toMatchObject({ details: { reason: 'widened_level' } })
  await expect(keep(child({ maxAgeMs: 90_000 }))).rejects.toMatchObject({
    details: { reason: 'widened_time', field: 'revocation.max_age_ms' },
  })
})
