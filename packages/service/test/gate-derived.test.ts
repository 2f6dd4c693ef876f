/** Forgetting says what may hold words made from what goes, as far as the record tells. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createFakeClock, until } from '@csb/core'
import { signApproval, trust, type Card, type DerivedFacts } from '@csb/authority'
import type { Caller } from '../src/index.ts'
import { NOW, attach, cardFor, createHouse, messageOf, shownBy, taskIn, type House, type Task } from './house.ts'
import { createNetwork } from './network.ts'

const EVERYTHING = { level: 'sealed' as const, tags: ['*'] }

const remember = async (house: House, content: string, label = 'trusted:owner') =>
  (await house.owned<{ id: string }>('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label })).id

const ask = (house: House, id: string) => cardFor(house.owned('memory.forget', { ids: [id] }), house.owned)

const derivedOn = ({ facts }: Card) => (facts?.kind === 'forget' ? facts.derived : undefined)

/** A run that is at work, with the token that its agent was given, and the way to let it come to its end. */
async function running(house: House) {
  const folder = await mkdtemp(join(tmpdir(), 'csb-derived-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const end = join(folder, 'end')
  const send = { params: { message: messageOf(`hold ${end}`), configuration: { returnImmediately: true } } }
  const { task } = await house.owned<{ task: Task }>('agents.send', { agent: 'clerk', ...send })
  const working = await until(
    async () => {
      const found = await taskIn(house, house.owner.did, task.id, 'TASK_STATE_WORKING')
      return found.artifacts === undefined ? undefined : found
    },
    30_000,
    'the run shows what it was given',
  )
  const token: Caller = { kind: 'bearer', token: shownBy(working).env['CSB_TOKEN'] ?? '', door: 'http' }
  const ended = async () => {
    await writeFile(end, '')
    await taskIn(house, house.owner.did, task.id, 'TASK_STATE_COMPLETED')
  }
  return { token, branch: `runs/${task.id}`, ended }
}

const write = (house: House, caller: Caller, branch: string) =>
  house.service.perform(caller, 'files.write', { branch, path: 'a.md', text: 'x' })

test('L3.4 work of a run that had read the note is named, and that of another run is not', async () => {
  const house = await createHouse()
  await attach(house)
  const [id, other] = [await remember(house, 'tea'), await remember(house, 'coffee')]
  const [reader, stranger] = [await running(house), await running(house)]
  await house.service.perform(stranger.token, 'memory.get', { id: other })
  await write(house, stranger.token, stranger.branch)
  expect(derivedOn(await ask(house, id))).toEqual({ branches: [], more_branches: 0, commits: 0, handed: [] })
  await house.service.perform(reader.token, 'memory.get', { id })
  await write(house, reader.token, reader.branch)
  for (const run of [reader, stranger]) await run.ended()
  // what its owner does reads and changes it as well, and leaves no words of it elsewhere
  await house.owned('memory.delete', { id })
  await house.owned('memory.restore', { id })
  await write(house, house.owning, 'runs/of-the-owner')
  const card = await ask(house, id)
  // what it wrote, and what its agent answered
  expect(derivedOn(card)).toEqual({ branches: [reader.branch], more_branches: 0, commits: 2, handed: [] })
  expect(card.risks).toContainEqual({ id: 'words-may-stay', severity: 'amber', count: 2 })
  // a branch that leads to such a commit holds it too
  await house.owned('files.merge', { from: reader.branch, into: 'runs/of-the-owner' })
  expect(derivedOn(await ask(house, id))?.branches).toEqual([reader.branch, 'runs/of-the-owner'].sort())
})

test('L3.4 what is done under a token goes by what its entries read, from then on', async () => {
  const house = await createHouse()
  const id = await remember(house, 'tea')
  const reach = { actions: ['list', 'read', 'write'], paths: ['/'], branches: ['memory', 'runs/*'] } as const
  const session = await house.leased({
    ...reach,
    actions: [...reach.actions],
    paths: ['/'],
    branches: [...reach.branches],
  })
  await write(house, session, 'runs/before')
  await house.service.perform(session, 'memory.delete', { id })
  await house.service.perform(session, 'memory.restore', { id })
  await write(house, session, 'runs/after')
  const entry = { content: 'tea again', level: 'warm', type: 'lesson' }
  await house.service.perform(session, 'memory.create', { entry })
  expect(derivedOn(await ask(house, id))).toMatchObject({ branches: ['memory', 'runs/after'], commits: 2 })
})

test('L3.4 L4.4 a note that was handed to a peer names the peer and the branch of what came back, on the card and in the report', async () => {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const nas = await createHouse({ name: 'nas', network, clock })
  const friend = await createHouse({ name: 'friend', network, clock })
  const trusting = (house: House, did: string, name: string) =>
    house.store.transact((tx) => trust(tx, { did, name, ceiling: 'override', clearance: EVERYTHING }))
  await trusting(friend, nas.owner.did, 'nas')
  await trusting(nas, friend.key.did, 'Fritz')
  await nas.grant({
    to: { name: 'friend', did: friend.key.did },
    lease: {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${nas.home}`],
      actions: ['read'],
      paths: ['/'],
      branches: ['memory'],
      labels_max: 'trusted',
    },
  })
  await attach(friend)
  const [id, withheld] = [await remember(nas, 'tea'), await remember(nas, 'a secret', 'sealed:owner')]
  const done = await nas.owned<{ branch: string }>('handoff.offer', {
    did: friend.key.did,
    agent: 'clerk',
    text: 'write results/a.md x',
    notes: [id, withheld],
  })
  const card = await ask(nas, id)
  const derived: DerivedFacts = {
    branches: [done.branch],
    more_branches: 0,
    commits: 1,
    handed: [{ did: friend.key.did, name: 'Fritz' }],
  }
  expect(derivedOn(card)).toEqual(derived)
  expect(card.risks).toContainEqual({ id: 'handed-to-others', severity: 'amber', count: 1 })
  // it stayed here
  expect(derivedOn(await ask(nas, withheld))?.handed).toEqual([])
  const now = clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, nas.owner)
  expect(await nas.owned('gate.approve', { card: card.id, approval })).toMatchObject({ outcome: 'approved', derived })
  // the record counts, and names nothing
  expect((await nas.records()).at(-1)?.effect).not.toHaveProperty('derived')
})
