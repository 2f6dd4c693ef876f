/** Three nodes: one that answers for its owner's grants, one that speaks by them, one that listens. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS, until, type Grant } from '@csb/core'
import { grantHash, isRevoked, signRevocation, trust } from '@csb/authority'
import { startJobs } from '../src/index.ts'
import { answerStatus, handedFooting, refreshStatuses, whileHeld } from '../src/revocation/freshness.ts'
import { HOUR, NOW, attach, codeOf, createHouse, type House } from './house.ts'
import { speak, threeNodes, type Cast } from './three-nodes.ts'

const MAX_AGE_MS = 20_000

const stage = (): Promise<Cast> => threeNodes({ maxAgeMs: MAX_AGE_MS })

const revoking = ({ nas, grant }: Cast) =>
  nas.owned<{
    revoked: string
    reached: { did: string; name: string | null }[]
    unreached: { did: string; ends_at: number }[]
  }>('authority.revoke', signRevocation({ target: grantHash(grant), now: NOW }, nas.owner))

describe('L1.3 a revocation follows the grant', () => {
  test('L1.3 attack 15: to whom it was shown, and on to whom that one showed it', async () => {
    const cast = await stage()
    expect(await speak(cast)).toBe('with authority from Ines')
    const told = await revoking(cast)
    expect(told).toMatchObject({ reached: [{ did: cast.speaker.key.did, name: null }], unreached: [] })
    const heard = ({ store }: House) =>
      isRevoked(store.view(), grantHash(cast.grant), [cast.nas.owner.did]) ? true : undefined
    expect(heard(cast.speaker)).toBe(true)
    // the nas never spoke with the listener: the speaker did
    await until(() => heard(cast.listener), 30_000, 'the listener has heard')
    for (const level of ['request', 'execute'] as const)
      expect(await speak(cast, level)).toBe('processed without authority: revoked')
  })

  test('attack 16: it is held back, and after the bound nothing is done in that name any more', async () => {
    const cast = await stage()
    const { network, nas, clock } = cast
    expect(await speak(cast)).toBe('with authority from Ines')
    network.away.add(nas.key.did)
    const told = await revoking(cast)
    expect(told.reached).toEqual([])
    expect(told.unreached).toMatchObject([
      { did: cast.speaker.key.did, ends_at: NOW + MAX_AGE_MS + LIMITS.clockSkewMs },
    ])
    // the honest cost of being cut off: until the last word is too old it serves
    clock.advance(MAX_AGE_MS)
    expect(await speak(cast)).toBe('with authority from Ines')
    clock.advance(1)
    expect(await speak(cast)).toBe('processed without authority: revocation_stale')
    expect(await speak(cast, 'request')).toBe('with authority from Ines, not confirmed lately')
  })

  test('DEL-003.3.4 who was away hears it on coming back, and once', async () => {
    const cast = await stage()
    const { nas, speaker, network } = cast
    const jobs = await startJobs(nas.parts, nas.service)
    onTestFinished(() => jobs.stop())
    network.away.add(speaker.key.did)
    expect((await revoking(cast)).unreached).toHaveLength(1)
    network.back(speaker.key.did)
    await until(() => isRevoked(speaker.store.view(), grantHash(cast.grant)), 30_000, 'the speaker has heard')
    const count = () => network.heard.filter(({ text }) => text.includes('"revocation":')).length
    await until(() => count() > 0, 30_000, 'it was said')
    const before = count()
    await nas.idle()
    network.back(speaker.key.did)
    await nas.idle()
    expect(count()).toBe(before)
  })

  test('what is still to be told survives a restart', async () => {
    const cast = await stage()
    cast.network.away.add(cast.speaker.key.did)
    await revoking(cast)
    const again = await cast.nas.reopen()
    const jobs = await startJobs(again.parts, again.service)
    onTestFinished(() => jobs.stop())
    cast.network.back(cast.speaker.key.did)
    await until(() => isRevoked(cast.speaker.store.view(), grantHash(cast.grant)), 30_000, 'the speaker has heard')
  })

  test('a key that is named again and again is answered once, and of many the first few only', async () => {
    const { nas, speaker } = await stage()
    let signed = 0
    const counting: typeof nas.key = {
      ...nas.key,
      sign: (bytes) => {
        signed++
        return nas.key.sign(bytes)
      },
    }
    const answered = (asked: unknown) => answerStatus({ ...nas.parts, key: counting }, asked)
    const own = nas.key.did
    expect(await answered([own, own, own, own, own])).toHaveLength(1)
    expect(signed).toBe(1)
    expect(await answered(Array.from({ length: 10_000 }, () => own))).toHaveLength(1)
    expect(signed).toBe(2)
    // those after the fifth are not looked at
    expect(await answered([1, 'x', null, speaker.key.did, {}, own])).toEqual([])
    expect(await answered('x')).toEqual([])
    expect(signed).toBe(2)
  })

  test('a word on revocation is answered to whoever asks, and is not recorded', async () => {
    const { nas, speaker } = await stage()
    const before = (await nas.records()).length
    const port = await speaker.parts.peers.session(nas.key.did, 'delegation', {})
    await port.send({ status: [nas.key.did, speaker.key.did, 7] })
    expect(await port.receive()).toMatchObject({ status: [{ status: { issuer: nas.key.did, revoked: [] } }] })
    await port.close()
    expect((await nas.records()).length).toBe(before)
  })
})

describe('L1.3 a lease at a peer', () => {
  const lease = (nas: House) => ({
    type: 'urn:csb:lease:1' as const,
    locations: [`nas://*/${nas.home}`],
    actions: ['list' as const, 'read' as const, 'write' as const],
    paths: ['/'],
    branches: ['memory'],
    labels_max: 'trusted' as const,
  })

  test('L1.3 gives nothing at a third node once no young word is to be had', async () => {
    const cast = await stage()
    const { nas, speaker, network, clock } = cast
    // another node of the owner has a copy and answers for nothing
    const laptop = await createHouse({ name: 'laptop', network, clock, owner: nas.owner, home: nas.home })
    const grant = await nas.grant({
      to: { name: 'speaker', did: speaker.key.did },
      lease: lease(nas),
      maxAgeMs: MAX_AGE_MS,
    })
    await nas.owned('authority.distribute', { did: speaker.key.did, chain: [grant] })
    await nas.owned('sync.run', { did: speaker.key.did, home: nas.home })
    const sync = () => codeOf(speaker.owned('sync.run', { did: laptop.key.did, home: nas.home }))
    expect(await sync()).toBe('done')
    network.away.add(nas.key.did)
    clock.advance(MAX_AGE_MS + 1)
    expect(await sync()).toBe('GRANT_INVALID')
    network.away.delete(nas.key.did)
    expect(await sync()).toBe('done')
  })

  test('L1.3 is over at the node that gave it with the next operation: what comes back is not taken', async () => {
    const cast = await stage()
    const { nas, listener } = cast
    const gate = join(nas.store.directory, 'go')
    await nas.store.transact((tx) => trust(tx, { did: listener.owner.did, name: 'friend', ceiling: 'request' }))
    const hand = nas.owned<{ id: string }>('handoff.offer', {
      did: listener.key.did,
      agent: 'clerk',
      text: `hold ${gate}`,
    })
    const handed = await until(
      async () => {
        for (const [fullKey, value] of Object.entries(await nas.dump((k) => !k.startsWith('ag/')))) {
          const grant = JSON.parse(Buffer.from(value, 'hex').toString()) as Grant
          if (grant.delegation.task?.startsWith('hof_') === true) return { fullKey, grant }
        }
        return undefined
      },
      30_000,
      'the lease is minted',
    )
    await until(() => listener.parts.runs.reads.size > 0, 30_000, 'the run has begun')
    const refused = hand.catch((error: unknown) => error)
    await nas.owned('authority.revoke', signRevocation({ target: grantHash(handed.grant), now: NOW }, nas.owner))
    await writeFile(gate, '')
    expect(await refused).toMatchObject({ code: 'LEASE_REVOKED' })
  })

  test('L1.3 a status key that does not answer is asked once, not waited for twice', async () => {
    const { nas, speaker, network, grant, clock } = await stage()
    clock.advance(MAX_AGE_MS)
    network.away.add(nas.key.did)
    const asked: string[] = []
    const { peers } = speaker.parts
    const session: typeof peers.session = (did, ...rest) => {
      asked.push(did)
      return peers.session(did, ...rest)
    }
    await refreshStatuses({ ...speaker.parts, peers: { ...peers, session } }, [grant])
    expect(asked).toEqual([nas.key.did])
  })

  test('L1.3 is not begun at the peer where it ended while it waited for its turn', async () => {
    const { nas, network, clock } = await stage()
    const busy = await createHouse({ name: 'busy', network, clock, config: { agents: { runs: 1 } } })
    await attach(busy)
    await busy.store.transact((tx) => trust(tx, { did: nas.owner.did, name: 'Ines', ceiling: 'request' }))
    const leave = await busy.parts.runs.turns.take(1, new AbortController().signal)
    const hand = nas.owned<{ id: string }>('handoff.offer', { did: busy.key.did, agent: 'clerk', text: 'echo' })
    const isTaken = async () => (await busy.records()).some(({ operation }) => operation === 'handoff.receive')
    await until(isTaken, 30_000, 'it waits')
    await busy.owned('authority.untrust', { did: nas.owner.did })
    leave()
    expect(await hand).toMatchObject({ outcome: 'failed', code: 'GRANT_INVALID' })
  })

  test('L1.3 stops the work at the peer when no young word is to be had any more', async () => {
    const { nas, listener, network } = await stage()
    const far = { to: { name: 'listener', did: listener.key.did }, audience: [listener.key.did] }
    const grant = await nas.grant({ ...far, type: 'scoped', scope: ['x'], ttlMs: HOUR, maxAgeMs: 1000 })
    network.away.add(nas.key.did)
    const working = whileHeld(listener.parts, handedFooting(listener.parts, [grant], nas.key.did), async (over) => {
      await until(() => over.aborted, 30_000, 'it is told to stop')
    })
    await expect(working).rejects.toMatchObject({ code: 'GRANT_INVALID', details: { reason: 'revocation_stale' } })
  })
})
