import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { verifyRecord } from '@csb/authority'
import { until } from '@csb/core'
import { key } from '@csb/store'
import { attach, createHouse, messageOf, type House, type Task } from './house.ts'

const WAIT_MS = 30_000

const entriesOf = async (house: House, run: string) => (await house.records()).filter((entry) => entry.run === run)

/** A run that waits for the two files, says something after the first, and ends after the second. */
async function openRun(house: House) {
  const folder = await mkdtemp(join(tmpdir(), 'csb-reads-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [first, second] = [join(folder, 'first'), join(folder, 'second')]
  await attach(house)
  const { task } = await house.owned<{ task: Task }>('agents.send', {
    agent: 'clerk',
    params: { message: messageOf(`speak ${first} ${second}`), configuration: { returnImmediately: true } },
  })
  const words = async () =>
    JSON.stringify(
      (await house.owned<Task>('agents.getTask', { agent: 'clerk', params: { id: task.id } })).artifacts ?? [],
    )
  const token = await until(async () => /csb_[A-Za-z0-9_-]{43}/.exec(await words())?.[0], WAIT_MS, 'its token', 20)
  const asked = (name: string, input: unknown) =>
    house.service.perform({ kind: 'bearer', token, door: 'http' }, name, input)
  return { task, words, asked, speak: () => writeFile(first, ''), end: () => writeFile(second, '') }
}

test('L1.5 what a run read under its token is in the record before what it says can be heard', async () => {
  const house = await createHouse()
  const { id: note } = await house.owned<{ id: string }>('memory.create', { entry: { content: 'x', type: 'other' } })
  const { task, words, asked, speak, end } = await openRun(house)

  await asked('memory.get', { id: note })
  expect((await entriesOf(house, task.id)).flatMap(({ reads }) => reads)).toEqual([])
  await speak()
  await until(async () => (await words()).includes('what I found'), WAIT_MS, 'it spoke', 5)
  const told = (await entriesOf(house, task.id)).filter(({ reads }) => reads.length > 0)
  expect(told).toMatchObject([{ outcome: 'done', effect: { said: 1 } }])
  expect(told[0]?.reads.map(({ path }) => path)).toEqual([expect.stringContaining(note)])

  await end()
  await until(async () => (await entriesOf(house, task.id)).length > told.length, WAIT_MS, 'it ended', 20)
  // the last entry has the whole list again: it is the one that the task ends with
  expect((await entriesOf(house, task.id)).at(-1)?.reads).toHaveLength(1)
})

test('L1.5 L3.4 many notes are told by their places, each is named again, and forgotten with the rest', async () => {
  const house = await createHouse()
  const contents = Array.from({ length: 60 }, (_, i) => ({ entry: { content: `note ${i}`, type: 'other' } }))
  const made = await house.owned<{ items: { id: string }[] }>('memory.batch', { items: contents })
  const ids = made.items.map(({ id }) => id).sort()
  const { task, words, asked, speak, end } = await openRun(house)

  await asked('memory.list', { limit: 100 })
  await speak()
  await until(async () => (await words()).includes('what I found'), WAIT_MS, 'it spoke', 5)
  const told = (await entriesOf(house, task.id)).find(({ reads }) => reads.length > 0)
  expect(told?.reads.map(({ path }) => /mem_[^.]*/.exec(path)?.[0]).sort()).toEqual(ids)
  const at = key('payload', told?.seq ?? 0)
  const stored = house.store.view().get(at) ?? new Uint8Array()
  expect(stored.byteLength).toBeLessThan(500)
  expect(ids.filter((id) => Buffer.from(stored).includes(id))).toEqual([])

  await end()
  await until(async () => (await entriesOf(house, task.id)).at(-1)?.seq !== told?.seq, WAIT_MS, 'it ended', 20)
  await house.forget([ids[0] ?? ''])
  expect(house.store.view().has(at)).toBe(false)
  expect(await verifyRecord(house.store.view())).toMatchObject({ ok: true })
})
