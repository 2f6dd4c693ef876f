/** What agents say they used: counted against the lease that pays, before they are heard any further. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fail, until, type Lease } from '@csb/core'
import { getAgent } from '@csb/agents'
import { createChainCache, createToken, grantHash, holderOf, leftOf, tokenHash, usedOf } from '@csb/authority'
import { getRef } from '@csb/files'
import { prefix } from '@csb/store'
import { OPERATIONS, type Caller } from '../src/index.ts'
import { createPipeline } from '../src/pipeline.ts'
import { createFolding } from '../src/refusals.ts'
import { withRun } from '../src/runs/command.ts'
import { ownCeiling } from '../src/runs/lease.ts'
import { HOUR, attach, codeOf, createHouse, messageOf, taskIn, type House, type Task } from './house.ts'
import { createSpeaker, listed, say } from './speech.ts'

const WORKING: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'send'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'private',
  capabilities: ['C'],
  max_children: 2,
}

async function stage(budget: Lease['budget'] = { tokens: 100, cost_micro: 50 }) {
  const house = await createHouse()
  await attach(house)
  const token = createToken()
  const grant = await house.grant({
    type: 'scoped',
    scope: ['lease'],
    ttlMs: HOUR,
    maxDepth: 2,
    to: { name: 'builder', did: holderOf(token).did },
    audience: [house.key.did],
    lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${house.home}`], actions: ['list'], ...WORKING, budget },
  })
  const { hash } = await house.owned<{ hash: string }>('authority.accept', { grant, token_hash: tokenHash(token) })
  const caller: Caller & { token: string } = { kind: 'bearer', token, door: 'http' }
  return { house, caller, hash }
}

const ask = async (house: House, caller: Caller, text: string, more: object = {}): Promise<Task> => {
  const params = { message: messageOf(text), ...more }
  return ((await house.service.perform(caller, 'agents.send', { agent: 'clerk', params })) as { task: Task }).task
}
const errorOf = ({ metadata }: Task) => metadata?.['urn:csb:ext:error:v1']?.['code']
const branchOf = (house: House, { id }: Task) => getRef(house.store.view(), house.home, `runs/${id}`)

describe('L1.2 what an agent says it used', () => {
  test('L1.2 is counted, told, and in the record', async () => {
    const { house, caller, hash } = await stage()
    const task = await ask(house, caller, 'use 40')
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(usedOf(house.store.view(), hash)).toEqual({ tokens: 40, cost_micro: 5 })
    expect((await house.records()).at(-1)?.effect).toMatchObject({ task: task.id, used: { tokens: 40, cost_micro: 5 } })
    const grants = await house.owned<{ items: { hash: string; used?: object }[] }>('authority.grants')
    expect(grants.items.find((item) => item.hash === hash)?.used).toEqual({ tokens: 40, cost_micro: 5 })
    expect(grants.items.filter(({ used }) => used !== undefined).length).toBe(2) // and the run's own
    // the next one is told what is left for it
    const second = await ask(house, caller, 'use 1')
    const told = second.artifacts?.[0]?.parts[0]?.text ?? '{}'
    expect(JSON.parse(told)).toMatchObject({ budget: { tokens: 60, cost_micro: 45 } })
  })

  test('L1.2 used up, nothing begins any more, and nothing is written but the record', async () => {
    const { house, caller, hash } = await stage({ tokens: 100 })
    expect((await ask(house, caller, 'use 100')).status.state).toBe('TASK_STATE_COMPLETED')
    const task = await ask(house, caller, 'use 1')
    expect([task.status.state, errorOf(task)]).toEqual(['TASK_STATE_FAILED', 'SCOPE_EXCEEDED'])
    expect((await house.records()).at(-1)).toMatchObject({ outcome: 'refused', code: 'SCOPE_EXCEEDED' })
    expect(branchOf(house, task)).toBeUndefined()
    expect(leftOf(house.store.view(), hash, 'tokens')).toBe(0)
    expect(house.parts.runs.active.size).toBe(0)
  })

  test('L1.2 more than there is ends the run, is used all the same, and its result does not count', async () => {
    const { house, caller, hash } = await stage({ tokens: 100, cost_micro: 4 })
    const gate = join(house.store.directory, 'never')
    const working = await ask(house, caller, `use 101 ${gate}`)
    expect([working.status.state, errorOf(working)]).toEqual(['TASK_STATE_FAILED', 'SCOPE_EXCEEDED'])
    expect(usedOf(house.store.view(), hash)).toEqual({ tokens: 100, cost_micro: 0 })
    const { house: other, caller: holder, hash: lease } = await stage({ tokens: 100, cost_micro: 4 })
    const done = await ask(other, holder, 'use 1')
    expect(errorOf(done)).toBe('SCOPE_EXCEEDED')
    expect(branchOf(other, done)).toBeUndefined()
    expect(usedOf(other.store.view(), lease)).toEqual({ tokens: 1, cost_micro: 4 })
    expect((await other.records()).at(-1)).toMatchObject({ outcome: 'refused', effect: { used: { tokens: 1 } } })
  })

  test('attack 28: a child and its parent share what there is, whatever the child was given', async () => {
    const { house, caller, hash } = await stage({ tokens: 100 })
    const child = async (tokens: number) => {
      const asked = { name: 'child', lease: { budget: { tokens } } }
      const made = (await house.service.perform(caller, 'authority.attenuate', asked)) as {
        token: string
        hash: string
      }
      return { ...made, caller: { kind: 'bearer', token: made.token, door: 'http' } as const }
    }
    await expect(child(101)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'budget.tokens' } })
    const [one, two] = [await child(70), await child(70)]
    expect((await ask(house, one.caller, 'use 70')).status.state).toBe('TASK_STATE_COMPLETED')
    expect(errorOf(await ask(house, two.caller, 'use 31'))).toBe('SCOPE_EXCEEDED')
    const view = house.store.view()
    expect([usedOf(view, one.hash), usedOf(view, two.hash), usedOf(view, hash)]).toEqual([
      { tokens: 70 },
      { tokens: 31 },
      { tokens: 100 },
    ])
    expect(errorOf(await ask(house, caller, 'use 1'))).toBe('SCOPE_EXCEEDED')
  })

  test('attack 28: however many messages come under a lease from elsewhere, they use it once', async () => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    await listed(house, speaker)
    const lease: Lease = {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${house.home}`],
      actions: ['list', 'read', 'write'],
      paths: ['/'],
      branches: ['*'],
      labels_max: 'trusted',
      budget: { tokens: 100 },
    }
    const grants = [speaker.grant(house, { lease })]
    const send = (text: string) => say(house, speaker, { text, grants })
    expect((await send('use 60')).status.state).toBe('TASK_STATE_COMPLETED')
    expect(errorOf(await send('use 60'))).toBe('SCOPE_EXCEEDED')
    expect(errorOf(await send('use 1'))).toBe('SCOPE_EXCEEDED')
    expect(grants.map((grant) => usedOf(house.store.view(), grantHash(grant)))).toEqual([{ tokens: 100 }])
  })

  test('L1.2 is counted while the run goes on, and stays after a restart', async () => {
    const { house, caller, hash } = await stage({ tokens: 100 })
    const gate = join(house.store.directory, 'never')
    const { id } = await ask(house, caller, `use 60 ${gate}`, { configuration: { returnImmediately: true } })
    await until(() => leftOf(house.store.view(), hash, 'tokens') === 40, 30_000, 'it has said so')
    const owner = house.parts.runs.active.get(id)?.owner ?? ''
    const again = await house.reopen()
    await taskIn(again, owner, id, 'TASK_STATE_FAILED')
    expect(leftOf(again.store.view(), hash, 'tokens')).toBe(40)
  })

  test.each(['-1', '1.5', '1e400', 'none'])('what can not be counted ends the run: %s', async (amount) => {
    const { house, caller, hash } = await stage()
    const task = await ask(house, caller, `use ${amount}`)
    expect(errorOf(task)).toBe('AGENT_FAILED')
    expect(branchOf(house, task)).toBeUndefined()
    expect(usedOf(house.store.view(), hash)).toEqual({ tokens: 0, cost_micro: 0 })
  })

  test('without a budget nobody counts', async () => {
    const { house, caller, hash } = await stage({ calls: 10 })
    expect((await ask(house, caller, 'use 1000000')).status.state).toBe('TASK_STATE_COMPLETED')
    expect(usedOf(house.store.view(), hash)).toEqual({ calls: 1 })
    expect(await codeOf(ask(house, house.owning, 'use 1000000'))).toBe('done')
  })
})

describe('L1.2 a run that ends before its agent has begun', () => {
  test('L1.2 gives all of its time back, and leaves nothing to ask with', async () => {
    const { house, caller, hash } = await stage({ wall_ms: 60_000 })
    const { parts, store, home, key } = house
    const input = { agent: 'clerk', params: { message: messageOf('echo') } }
    const pipeline = createPipeline(parts, createFolding(house.clock), () => {}, createChainCache())
    const operation = OPERATIONS.get('agents.send') ?? expect.unreachable()
    const context = await pipeline.admit(caller, operation, input, {})
    const agent = getAgent(store.view(), 'clerk')
    const ceiling = ownCeiling(`nas://${key.peerId}/${home}`, 'task_x', { level: 'private', tags: [] })
    const tokens = async () => Object.keys(await house.dump()).filter((name) => name.startsWith(prefix('token')))
    const before = await tokens()
    const init = { agent, task: 'task_x', input: {}, ceiling, payer: hash, signal: new AbortController().signal }
    const run = withRun(context, init, async () => {
      expect([leftOf(store.view(), hash, 'wall_ms'), (await tokens()).length]).toEqual([0, before.length + 1])
      fail('UNSUPPORTED_OPERATION', { reason: 'canceled' })
    })
    expect(await codeOf(run)).toBe('UNSUPPORTED_OPERATION')
    expect(leftOf(store.view(), hash, 'wall_ms')).toBe(60_000)
    expect(await tokens()).toEqual(before)
  })
})
