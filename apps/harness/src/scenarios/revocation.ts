/** A delegation is taken back while its holder can not be reached: what goes on, for how long, and what comes after. */
import { fileURLToPath } from 'node:url'
import { systemClock, until } from '@csb/core'
import { bringTo, delegateTo, revokeGrant } from '@csb/node'
import { codeOf, inStep, message, noteOf, send, short, verifyRecord } from '../asking.ts'
import type { Member } from '../cluster.ts'
import type { Scenario, Stage } from '../stage.ts'

const CLERK = fileURLToPath(new URL('../../agents/clerk.mjs', import.meta.url))
const SLEEPER = fileURLToPath(new URL('../../agents/sleeper.mjs', import.meta.url))
const TTL_MS = 600_000
/** The bound, short so that nobody has to wait a minute. */
const MAX_AGE_MS = 6_000
/** All clocks are one here; the rest is what a message takes. */
const SLACK_MS = 1_500
const HEAL_MS = 30_000

type Cast = { readonly nas: Member; readonly aide: Member; readonly friend: Member }

export const revocation: Scenario = {
  name: 'revocation',
  about: 'a delegation is revoked while its holder is cut off: it ends by itself within the bound, and is told later',
  run: async (stage) => {
    const cast = await start(stage)
    const { grant, hash } = await delegate(stage, cast)
    const say = async (level: 'request' | 'execute' = 'execute') =>
      noteOf(
        await send(cast.aide, {
          to: cast.friend,
          agent: 'clerk',
          params: message('Write the report.'),
          delegation: grant.delegation.id,
          level,
          scope: ['reports'],
        }),
      )
    const first = await say()
    stage.prove('the aide acts in the name of Ines, checked offline', first === 'with authority from Ines', first)
    const busy = send(cast.aide, {
      to: cast.friend,
      agent: 'sleeper',
      params: message('Go on.'),
      delegation: grant.delegation.id,
      level: 'execute',
      scope: ['reports'],
    }).then((task) => ({ note: noteOf(task), at: systemClock.now() }))
    await until(async () => (await beganAt(cast.friend)) > 1, HEAL_MS, 'the work has begun')
    await cutOff(stage, cast, { hash, busy }, say)
    await comeBack(stage, cast, say)
    for (const member of [cast.nas, cast.aide, cast.friend]) {
      const { ok, size } = await verifyRecord(member)
      stage.prove(`the record of ${member.name} verifies (L1.6)`, ok, `${size} entries`)
    }
  },
}

async function start({ cluster, step, say }: Stage): Promise<Cast> {
  step('The NAS of Ines, an aide who speaks for her, a friend who listens')
  const nas = await cluster.add({ name: 'nas', ownerName: 'Ines' })
  const aide = await cluster.add({ name: 'aide', ownerName: 'Bo' })
  const friend = await cluster.add({ name: 'friend', ownerName: 'Carl' })
  for (const member of [aide, friend]) {
    const clearance = { level: 'trusted', tags: [] }
    const origin = { did: nas.owner.did, name: 'Ines', ceiling: 'execute', clearance }
    await member.client.call('POST', '/v1/trust', origin)
  }
  const command = [process.execPath, CLERK]
  const skills = [{ id: 'report.write', name: 'reports', description: 'writes reports' }]
  await friend.client.call('POST', '/v1/agents', {
    id: 'clerk',
    name: 'clerk',
    accept: 'anyone',
    description: 'writes reports',
    command,
    skills,
  })
  await friend.client.call('POST', '/v1/agents', {
    id: 'sleeper',
    name: 'sleeper',
    accept: 'anyone',
    description: 'works until it is stopped',
    command: [process.execPath, SLEEPER],
    skills: [{ id: 'work.on', name: 'work', description: 'works on' }],
  })
  await until(async () => (await codeOf(inStep(aide, friend))) !== 'PEER_UNREACHABLE', HEAL_MS, 'all reach each other')
  say(`${nas.name} ${short(nas.did)}, ${aide.name} ${short(aide.did)}, ${friend.name} ${short(friend.did)}`)
  return { nas, aide, friend }
}

async function delegate({ step, say }: Stage, { nas, aide, friend }: Cast) {
  step('Ines lets the aide speak for her')
  const desk = await nas.desk()
  const made = await delegateTo(desk, {
    to: { name: 'aide', did: aide.did },
    audience: [friend.did],
    scope: ['reports'],
    level: 'execute',
    ttlMs: TTL_MS,
    maxAgeMs: MAX_AGE_MS,
  })
  await bringTo(desk, aide.did, [made.grant])
  say(`grant ${made.hash.slice(0, 19)}; a revocation counts within ${MAX_AGE_MS / 1000} s`)
  return made
}

/** Tasks that a node has taken in. */
const beganAt = async ({ client }: Member): Promise<number> =>
  (await client.call<{ items: readonly unknown[] }>('GET', '/v1/inbox')).items.length

type Say = (level?: 'request' | 'execute') => Promise<string>

type Begun = { readonly hash: string; readonly busy: Promise<{ readonly note: string; readonly at: number }> }

async function cutOff(stage: Stage, { nas, aide, friend }: Cast, { hash, busy }: Begun, say: Say): Promise<void> {
  stage.step('She is cut off from both, and takes it back')
  await stage.cluster.partition([nas], [aide, friend])
  const revokedAt = systemClock.now()
  const { reached, unreached } = await revokeGrant(await nas.desk(), hash, [])
  const away = unreached.map(({ did }) => short(did)).join(', ')
  stage.say(`nobody has heard: reached ${reached.length}, away ${away}`)
  stage.prove('she is told who has not heard', reached.length === 0 && unreached[0]?.did === aide.did, away)
  let lastAt = revokedAt
  const note = await until(
    async () => {
      const askedAt = systemClock.now()
      const said = await say()
      if (said === 'with authority from Ines') lastAt = askedAt
      return said.startsWith('processed without') ? said : undefined
    },
    MAX_AGE_MS + HEAL_MS,
    'nothing is done in her name any more',
  )
  const tookMs = lastAt - revokedAt
  stage.say(`last done ${tookMs} ms after it was revoked; then "${note}"`)
  stage.prove(
    'it ends by itself within the bound, though nobody was told (L1.3)',
    note.endsWith('revocation_stale') && tookMs <= MAX_AGE_MS + SLACK_MS,
    `${tookMs} ms`,
  )
  const work = await busy
  stage.prove(
    'so does the work that was begun in her name (L1.3)',
    work.note.endsWith('revocation_stale') && work.at - revokedAt <= MAX_AGE_MS + SLACK_MS,
    `${work.at - revokedAt} ms`,
  )
  const request = await say('request')
  stage.prove('a request is still heard, with a mark', request.endsWith('not confirmed lately'), request)
  await aide.kill()
  await aide.start()
  const again = await say()
  stage.prove('a restart brings nothing back', again.endsWith('revocation_stale'), again)
}

async function comeBack(stage: Stage, { nas }: Cast, say: Say): Promise<void> {
  stage.step('The line is back, and the NAS was off meanwhile')
  await nas.kill()
  await nas.start()
  await stage.cluster.heal()
  const note = await until(
    async () => {
      const said = await say('request')
      return said.endsWith('revoked') ? said : undefined
    },
    HEAL_MS,
    'the revocation has come',
  )
  stage.say(`"${note}"`)
  stage.prove('what was still to be told is told (DEL-003 3.4)', note.endsWith('revoked'), note)
}
