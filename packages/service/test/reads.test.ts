import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '@csb/core'
import { attach, createHouse, messageOf, type House, type Task } from './house.ts'

const WAIT_MS = 30_000

const entriesOf = async (house: House, run: string) => (await house.records()).filter((entry) => entry.run === run)

test('L1.5 what a run read under its token is in the record before what it says can be heard', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'csb-reads-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [first, second] = [join(folder, 'first'), join(folder, 'second')]
  const house = await createHouse()
  await attach(house)
  const { id: note } = await house.owned<{ id: string }>('memory.create', { entry: { content: 'x', type: 'other' } })
  const { task } = await house.owned<{ task: Task }>('agents.send', {
    agent: 'clerk',
    params: { message: messageOf(`speak ${first} ${second}`), configuration: { returnImmediately: true } },
  })
  const words = async () =>
    JSON.stringify(
      (await house.owned<Task>('agents.getTask', { agent: 'clerk', params: { id: task.id } })).artifacts ?? [],
    )
  const token = await until(async () => /csb_[A-Za-z0-9_-]{43}/.exec(await words())?.[0], WAIT_MS, 'its token', 20)

  await house.service.perform({ kind: 'bearer', token, door: 'http' }, 'memory.get', { id: note })
  expect((await entriesOf(house, task.id)).flatMap(({ reads }) => reads)).toEqual([])
  await writeFile(first, '')
  await until(async () => (await words()).includes('what I found'), WAIT_MS, 'it spoke', 5)
  const told = (await entriesOf(house, task.id)).filter(({ reads }) => reads.length > 0)
  expect(told).toMatchObject([{ outcome: 'done', effect: { said: 1 } }])
  expect(told[0]?.reads.map(({ path }) => path)).toEqual([expect.stringContaining(note)])

  await writeFile(second, '')
  await until(async () => (await entriesOf(house, task.id)).length > told.length, WAIT_MS, 'it ended', 20)
  // the last entry has the whole list again: it is the one that the task ends with
  expect((await entriesOf(house, task.id)).at(-1)?.reads).toHaveLength(1)
})
