/** Whom a node believes, and how far: as its owner said of a key, and never as a message says of itself. */
import { expect, test } from 'vitest'
import { EXTENSIONS, createFakeClock, type Grant } from '@csb/core'
import type { Rank } from '@csb/authority'
import { NOW, attach, createHouse, wordsOf, type Task } from './house.ts'
import { createSpeaker, listed, say, type Speaker } from './speech.ts'

const RANKS: readonly Rank[] = ['inform', 'request', 'execute', 'override']

async function houseWithAgent() {
  const house = await createHouse({ clock: createFakeClock(NOW) })
  await attach(house)
  return house
}

const markOf = (task: Task) => task.metadata?.[EXTENSIONS.authority] as { accepted: boolean; reason?: string }

test.each(RANKS)(
  'A2A-010 whom the owner trusts up to %s is heeded up to there, and is ordinary above',
  async (ceiling) => {
    const house = await houseWithAgent()
    const speaker = createSpeaker()
    await listed(house, speaker, ceiling)
    const grants = [speaker.grant(house, { type: 'global', scope: ['*'], level: 'override', ttlMs: null })]
    for (const level of RANKS) {
      const mark = markOf(await say(house, speaker, { grants, level }))
      const isWithin = RANKS.indexOf(level) <= RANKS.indexOf(ceiling)
      expect([level, mark.accepted, mark.reason]).toEqual([level, isWithin, isWithin ? undefined : 'over_ceiling'])
    }
  },
)

test('A2A-010 trusted more, less and no more it counts from the next message on', async () => {
  const house = await houseWithAgent()
  const speaker = createSpeaker()
  const grants = [speaker.grant(house)]
  const heeded = async () => markOf(await say(house, speaker, { grants })).reason ?? 'accepted'
  const trust = (ceiling: Rank) => house.owned('authority.trust', { did: speaker.origin.did, name: 'Ines', ceiling })
  expect(await heeded()).toBe('untrusted_root')
  await trust('request')
  expect(await heeded()).toBe('over_ceiling')
  await trust('execute')
  expect(await heeded()).toBe('accepted')
  await house.owned('authority.untrust', { did: speaker.origin.did })
  expect(await heeded()).toBe('untrusted_root')
})

test('A2A-002 it is a key that is trusted: who bears the same name is a stranger', async () => {
  const house = await houseWithAgent()
  const [ines, mallory] = [createSpeaker(), createSpeaker()]
  await listed(house, ines)
  const sent = async (grant: Grant, by = mallory) => wordsOf(await say(house, by, { grants: [grant] }))
  expect(await sent(ines.grant(house, named(ines)), ines)).toBe('with authority from Ines')
  const own = mallory.grant(house, named(mallory))
  expect(await sent(own)).toBe('processed without authority: untrusted_root')
  // nor by naming the key without having it
  const borrowed = { ...own, delegation: { ...own.delegation, grantor_key: ines.origin.did } }
  expect(await sent(borrowed)).toBe('processed without authority: bad_signature')
})

const named = ({ origin }: Speaker) => ({ from: { name: 'Ines', did: origin.did } })
