import { describe, expect, onTestFinished, test } from 'vitest'
import { NodeError, until } from '@csb/core'
import { createTask } from '@csb/agents'
import { payloadsThatMention } from '@csb/authority'
import { forgetNotes } from '@csb/guard'
import { startJobs } from '../src/index.ts'
import { NOW, attach, createHouse, messageOf, taskIn, type House } from './house.ts'
import { createNetwork } from './network.ts'

const remember = (house: House, content: string) =>
  house
    .owned<{ id: string }>('memory.create', {
      entry: { content, level: 'warm', type: 'lesson' },
      label: 'private:owner',
    })
    .then(({ id }) => id)

async function jobsOf(house: House) {
  const jobs = await startJobs(house.parts, house.service)
  onTestFinished(() => jobs.stop())
  return jobs
}

describe('at start', () => {
  test('A2A-004 a task that was running when the node stopped is failed, and the agent is not run again', async () => {
    const house = await createHouse()
    await attach(house)
    const owner = house.owner.did
    const { task } = await house.store.transact((tx) =>
      createTask(tx, { owner, agent: 'clerk', message: messageOf('count'), now: NOW }),
    )
    const later = await house.reopen()
    await jobsOf(later)
    const ended = await taskIn(later, owner, task.id, 'TASK_STATE_FAILED')
    expect(JSON.stringify(ended.status)).toContain('stopped while this task was running')
    expect(later.parts.runs.active.size).toBe(0)
  })

  test('L3.4 an erasure that a stop cut short is finished', async () => {
    const house = await createHouse()
    const id = await remember(house, 'to be forgotten, and long enough to be looked for in the files')
    // forgotten, and stopped before the bytes were erased
    await house.store.transact((tx) =>
      forgetNotes(tx, {
        home: house.home,
        ids: [id],
        reason: 'asked to',
        key: house.key,
        author: { name: 'Ada', did: house.owner.did },
        trailers: {},
        now: NOW,
      }),
    )
    const isPlan = (fullKey: string) => fullKey.startsWith('m/erase/')
    expect(Object.keys(await house.dump((fullKey) => !isPlan(fullKey)))).toHaveLength(1)
    expect(await payloadsThatMention(house.store.view(), [id])).not.toEqual([])
    const later = await house.reopen()
    await jobsOf(later)
    expect(Object.keys(await later.dump((fullKey) => !isPlan(fullKey)))).toEqual([])
    // what the record said of it goes with it
    expect(await payloadsThatMention(later.store.view(), [id])).toEqual([])
  })

  test('an erasure that can not be finished is told, and the node starts', async () => {
    const house = await createHouse()
    await house.store.transact((tx) => tx.put(`m/erase/${house.home}/x`, Buffer.from('not json')))
    await jobsOf(house)
    expect(house.logged.join('\n')).toContain('erasures are not finished')
  })
})

describe('while it runs', () => {
  test('A2A-012 the record of the node is published, renewed when agents change, and withdrawn at the end', async () => {
    const network = createNetwork()
    const house = await createHouse({ network })
    const jobs = await startJobs(house.parts, house.service)
    await until(() => network.published.length > 0, 30_000, 'the first record')
    await attach(house)
    await until(
      () => network.published.at(-1)?.capabilities.includes('report.write'),
      30_000,
      'a record with the skill',
    )
    await jobs.stop()
    expect(network.published.at(-1)).toMatchObject({ withdrawn: true, capabilities: [], agents: [], addresses: [] })
    const numbers = network.published.map(({ seq }) => seq)
    expect([...numbers].sort((a, b) => a - b)).toEqual(numbers)
  })

  test('L4.1 pairs that have synced are kept in step', async () => {
    const network = createNetwork()
    const nas = await createHouse({ name: 'nas', network, config: { sync: { interval_ms: 30 } } })
    const laptop = await createHouse({ name: 'laptop', network, owner: nas.owner, home: nas.home })
    await nas.owned('sync.run', { did: laptop.key.did })
    await jobsOf(nas)
    network.away.add(laptop.key.did)
    const id = await remember(nas, 'while it was away')
    network.away.clear()
    const arrived = await until(
      () => laptop.owned<{ id: string }>('memory.get', { id }).catch(() => undefined),
      30_000,
      'the note is there',
    )
    expect(arrived.id).toBe(id)
    await expect(nas.owned('sync.status')).resolves.toMatchObject({ items: [{ did: laptop.key.did, home: nas.home }] })
  })

  test('a round that fails does not end the rounds', async () => {
    const network = createNetwork()
    const nas = await createHouse({ name: 'nas', network, config: { sync: { interval_ms: 20 } } })
    let asked = 0
    const failing = {
      ...nas.service,
      perform: async () => {
        asked++
        throw new NodeError('DISK_FULL')
      },
    }
    const jobs = await startJobs(nas.parts, failing)
    onTestFinished(() => jobs.stop())
    await until(() => asked > 3, 30_000, 'several rounds')
    expect(nas.logged.join('\n')).toContain('DISK_FULL')
  })
})
