/** What a run proposes waits for a person, who takes longer than the run lasts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS, createFakeClock, until, type Grant } from '@csb/core'
import { signApproval, signRevocation, type Card } from '@csb/authority'
import { getRef, readFile } from '@csb/files'
import { key } from '@csb/store'
import type { Caller } from '../src/index.ts'
import {
  HOUR,
  NOW,
  attach,
  cardFor,
  codeOf,
  createHouse,
  messageOf,
  shownBy,
  taskIn,
  type House,
  type Task,
} from './house.ts'

const approve = (house: House, card: Card) => {
  const now = house.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
  return house.owned<{ commit: string }>('gate.approve', { card: card.id, approval })
}

/** A run that wrote a file and proposed it, and is over since; an hour has gone by. */
async function proposed(lateMs = HOUR) {
  const clock = createFakeClock(NOW)
  const house = await createHouse({ clock })
  await attach(house)
  const folder = await mkdtemp(join(tmpdir(), 'csb-runs-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [speak, end] = [join(folder, 'speak'), join(folder, 'end')]
  const send = {
    agent: 'clerk',
    params: { message: messageOf(`speak ${speak} ${end}`), configuration: { returnImmediately: true } },
  }
  const { task } = await house.owned<{ task: Task }>('agents.send', send)
  const working = await until(
    async () => {
      const found = await taskIn(house, house.owner.did, task.id, 'TASK_STATE_WORKING')
      return found.artifacts === undefined ? undefined : found
    },
    30_000,
    'the run shows what it was given',
  )
  const { env } = shownBy(working)
  const run: Caller = { kind: 'bearer', token: env['CSB_TOKEN'] ?? '', door: 'http' }
  const branch = `runs/${task.id}`
  await house.service.perform(run, 'files.write', { branch, path: 'plan.md', text: 'a plan' })
  // it may look at main and ask, no more
  expect(await codeOf(house.service.perform(run, 'files.list', { branch: 'main' }))).toBe('done')
  const forced = house.service.perform(run, 'files.write', { branch: 'main', path: 'plan.md', text: 'a plan' })
  expect(await codeOf(forced)).toBe('PROTECTED')
  const wish = () => house.service.perform(run, 'files.merge', { from: branch, into: 'main' })
  const card = await cardFor(wish(), house.owned)
  for (const file of [speak, end]) await writeFile(file, '')
  await taskIn(house, house.owner.did, task.id, 'TASK_STATE_COMPLETED')
  // its token ended with its task, and not only by time
  expect(await codeOf(wish())).toBe('UNAUTHENTICATED')
  clock.advance(lateMs)
  return { house, card, branch, clock }
}

const planOn = (house: House) =>
  Buffer.from(readFile(house.store.view(), { home: house.home, at: 'main', path: 'plan.md' }).bytes).toString()

describe('a proposal of a run', () => {
  test('L1.7 is approved an hour after the run has ended, though its lease was over long before', async () => {
    const { house, card } = await proposed()
    const lease = card.asked_by.lease
    expect(lease?.expires_at ?? NOW).toBeLessThan(house.clock.now())
    const { commit } = await approve(house, card)
    expect(getRef(house.store.view(), house.home, 'main')?.commit).toBe(commit)
    expect(planOn(house)).toBe('a plan')
    expect(await house.owned('record.explain', { commit })).toMatchObject({ approval: { card: card.id } })
  })

  test.each<[string, string, (at: Awaited<ReturnType<typeof proposed>>) => Promise<unknown>]>([
    [
      'its lease was revoked',
      'lease',
      ({ house, card }) =>
        house.owned(
          'authority.revoke',
          signRevocation({ target: card.asked_by.lease?.hash ?? '', now: house.clock.now() }, house.key),
        ),
    ],
    [
      "the node's own lease was revoked, under which it hung",
      'lease',
      ({ house }) => {
        const target = house.store.view().getJson<string>(key('meta', 'node-grant')) ?? ''
        return house.owned('authority.revoke', signRevocation({ target, now: house.clock.now() }, house.owner))
      },
    ],
    [
      'its branch went on',
      'head',
      ({ house, branch }) => house.owned('files.write', { branch, path: 'plan.md', text: 'another plan' }),
    ],
    ['the card itself is over', 'expires_at', async ({ clock }) => clock.advance(LIMITS.gateCardMs)],
  ])('L1.7 is void where %s', async (_, field, meddle) => {
    const at = await proposed()
    const { house, card } = at
    await meddle(at)
    const before = getRef(house.store.view(), house.home, 'main')
    await expect(approve(house, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field } })
    expect(getRef(house.store.view(), house.home, 'main')).toEqual(before)
  })

  test('L1.2 is all that its lease lets it do beyond its own branch', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const grants = () => house.owned<{ items: { grant: Grant }[] }>('authority.grants')
    await attach(house)
    await house.owned('agents.send', { agent: 'clerk', params: { message: messageOf('echo') } })
    await house.idle()
    const lease = (await grants()).items.map(({ grant }) => grant).find(({ delegation }) => delegation.task !== null)
      ?.authorization_details?.[0]
    expect(lease?.actions).toEqual(['list', 'read', 'write', 'propose'])
    expect(lease?.capabilities).toEqual(['B'])
  })
})
