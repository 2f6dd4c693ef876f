import { describe, expect, test } from 'vitest'
import { createFakeClock, createKeyPair, until } from '@csb/core'
import {
  appendTaskEvent,
  createTask,
  createTaskBus,
  followTask,
  waitForTask,
  type FollowOptions,
  type StreamResponse,
  type TaskUpdate,
} from '../src/index.ts'
import { temporaryStore } from './fixtures.ts'

const owner = createKeyPair().did
const clock = createFakeClock()
const store = await temporaryStore()
const bus = createTaskBus()
let count = 0

async function begin(): Promise<string> {
  const message = { messageId: `m-${++count}`, role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const { task } = await store.transact((tx) => createTask(tx, { owner, agent: 'echo', message, now: clock.now() }))
  return task.id
}

async function happen(id: string, update: TaskUpdate): Promise<void> {
  await store.transact((tx) => appendTaskEvent(tx, id, update, clock.now()))
  bus.changed(id)
}

const working: TaskUpdate = { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } }
const completed: TaskUpdate = { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }
const piece = (text: string): TaskUpdate => ({
  artifactUpdate: { artifact: { artifactId: 'r', parts: [{ text }] }, append: true },
})

const follow = (id: string, options: Partial<FollowOptions> = {}) => followTask(store, bus, { owner, id, ...options })
const collect = (id: string, options: Partial<FollowOptions> = {}) => Array.fromAsync(follow(id, options))
const kinds = (events: readonly StreamResponse[]) => events.map((event) => Object.keys(event)[0])

describe('following', () => {
  test('A2A-OP-3.1.6 STREAM-SUB-001 STREAM-SUB-002 the task first, then what happens, until it ends', async () => {
    const id = await begin()
    await happen(id, working)
    const stream = follow(id)
    expect((await stream.next()).value).toMatchObject({ task: { id, status: { state: 'TASK_STATE_WORKING' } } })
    await happen(id, piece('a'))
    await happen(id, completed)
    expect(kinds(await Array.fromAsync(stream))).toEqual(['artifactUpdate', 'statusUpdate'])
  })

  test('A2A-OP-3.1.2 STREAM-ORDER-001..003 many streams get the same events in the same order, whenever they begin', async () => {
    const id = await begin()
    const streams = [collect(id, { after: 1 }), collect(id, { after: 1 })]
    for (let n = 0; n < 40; n++) {
      await happen(id, piece(String(n)))
      if (n % 10 === 0) streams.push(collect(id, { after: 1 }))
    }
    await happen(id, completed)
    const [first = [], ...others] = await Promise.all(streams)
    expect(first).toHaveLength(41)
    for (const other of others) expect(other).toEqual(first)
  })

  test('A2A STREAM-ORDER-004 closing one stream touches no other', async () => {
    const id = await begin()
    const kept = collect(id, { after: 1 })
    const left = follow(id, { after: 1 })
    const stop = new AbortController()
    const aborted = collect(id, { after: 1, signal: stop.signal })
    await happen(id, working)
    await left.next()
    await left.return(undefined)
    stop.abort()
    expect((await aborted).length).toBeLessThanOrEqual(1)
    await happen(id, completed)
    expect(kinds(await kept)).toEqual(['statusUpdate', 'statusUpdate'])
  })

  test('A2A STREAM-SUB-003 an ended task can not be subscribed to, but its events can be read to the end', async () => {
    const id = await begin()
    await happen(id, completed)
    await expect(collect(id)).rejects.toMatchObject({ code: 'UNSUPPORTED_OPERATION' })
    expect(kinds(await collect(id, { after: 1 }))).toEqual(['statusUpdate'])
    expect(await collect(id, { after: 2 })).toEqual([])
  })

  test('A2A STREAM-SUB-004 a task of somebody else is not there', async () => {
    const id = await begin()
    await expect(collect(id, { owner: createKeyPair().did })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(collect(id, { agent: 'other' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a stream that waits does not ask again and again', async () => {
    const id = await begin()
    let views = 0
    const counted = { ...store, view: () => (views++, store.view()) }
    const events = Array.fromAsync(followTask(counted, bus, { owner, id, after: 1 }))
    let before = -1
    const isStill = () => {
      const same = views > 0 && views === before
      before = views
      return same
    }
    await until(isStill, 30_000, 'it stands still', 50)
    await happen(id, completed)
    expect(kinds(await events)).toEqual(['statusUpdate'])
  })

  test('a stream stays while the task waits for authorization and ends when it asks for input', async () => {
    const id = await begin()
    const events = collect(id, { after: 1 })
    await happen(id, { statusUpdate: { status: { state: 'TASK_STATE_AUTH_REQUIRED' } } })
    await happen(id, { statusUpdate: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } })
    expect(await events).toHaveLength(2)
  })
})

describe('waiting', () => {
  test('A2A CORE-EXECUTION-MODE-001 a blocking send waits until the task ends', async () => {
    const id = await begin()
    const waiting = waitForTask(store, bus, { owner, id })
    await happen(id, working)
    await happen(id, completed)
    expect((await waiting).status.state).toBe('TASK_STATE_COMPLETED')
    expect((await waitForTask(store, bus, { owner, id })).status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('an abort ends the wait, not the task', async () => {
    const id = await begin()
    const stop = new AbortController()
    const waiting = waitForTask(store, bus, { owner, id, signal: stop.signal })
    stop.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    await happen(id, completed)
    expect((await until(() => waitForTask(store, bus, { owner, id }), 30_000, 'the end')).status.state).toBe(
      'TASK_STATE_COMPLETED',
    )
  })
})
