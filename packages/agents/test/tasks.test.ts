import { describe, expect, test } from 'vitest'
import { EXTENSIONS, createFakeClock, createKeyPair } from '@csb/core'
import type { Store } from '@csb/store'
import {
  agentMessage,
  appendTaskEvent,
  cancelTask,
  continueTask,
  createTask,
  failInterruptedTasks,
  getTask,
  listTasks,
  type Accepted,
  type TaskState,
} from '../src/index.ts'
import { temporaryStore } from './fixtures.ts'

const owner = createKeyPair().did
const stranger = createKeyPair().did
const clock = createFakeClock()
const store = await temporaryStore()
let count = 0

const say = (text: string, more: object = {}) => ({
  messageId: `m-${++count}`,
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})

const create = (message: unknown, from = owner, agent = 'echo', at: Store = store): Promise<Accepted> =>
  at.transact((tx) => createTask(tx, { owner: from, agent, message, now: clock.now() }))

const proceed = (message: unknown, from = owner): Promise<Accepted> =>
  store.transact((tx) => continueTask(tx, { owner: from, agent: 'echo', message, now: clock.now() }))

const move = (id: string, state: TaskState, text?: string) =>
  store.transact((tx) => {
    const status = { state, ...(text === undefined ? {} : { message: agentMessage(text, clock.now()) }) }
    return appendTaskEvent(tx, id, { statusUpdate: { status } }, clock.now())
  })

const chunk = (id: string, text: string, append: boolean) =>
  store.transact((tx) =>
    appendTaskEvent(
      tx,
      id,
      { artifactUpdate: { artifact: { artifactId: 'reply', parts: [{ text }] }, append } },
      clock.now(),
    ),
  )

describe('sending', () => {
  test('A2A-OP-3.1.1 CORE-MULTI-001a a new task is SUBMITTED, with new ids and the message in its history', async () => {
    const { task } = await create(say('hi'))
    expect(task).toMatchObject({ status: { state: 'TASK_STATE_SUBMITTED', timestamp: '2027-01-15T08:00:00.000Z' } })
    expect(task.contextId).toMatch(/^ctx_/)
    expect(task.history?.[0]).toMatchObject({ parts: [{ text: 'hi' }], taskId: task.id, contextId: task.contextId })
    expect(await getTask(store.view(), owner, task.id)).toEqual(task)
  })

  test('the same message again is the same task, and another message under its id is refused', async () => {
    const message = say('once')
    const first = await create(message)
    const again = await create(message)
    expect(again).toMatchObject({ duplicate: true, task: { id: first.task.id } })
    await expect(create({ ...message, parts: [{ text: 'twice' }] })).rejects.toMatchObject({ code: 'REPLAYED' })
    const elsewhere = await create(message, stranger)
    expect(elsewhere.task.id).not.toBe(first.task.id)
  })

  test('two equal messages at the same time make one task', async () => {
    const message = say('race')
    const both = await Promise.all([create(message), create(message)])
    expect(new Set(both.map(({ task }) => task.id)).size).toBe(1)
  })

  test('a message id with slashes does not reach another agent', async () => {
    const first = await create({ ...say('a'), messageId: 'b/c' }, owner, 'a')
    const second = await create({ ...say('a'), messageId: 'c' }, owner, 'a')
    expect(first.task.id).not.toBe(second.task.id)
  })

  test.each([
    ['no parts', { parts: [] }],
    ['a part with two contents', { parts: [{ text: 'a', url: 'b' }] }],
    ['a part with none', { parts: [{ mediaType: 'text/plain' }] }],
    ['junk for base64', { parts: [{ raw: 'a b!' }] }],
    ['the role of an agent', { role: 'ROLE_AGENT' }],
    ['no message id', { messageId: undefined }],
    ['a control character in the context', { contextId: 'a\nb' }],
  ])('A2A DM-MSG-001 %s is refused', async (_, change) => {
    await expect(create({ ...say('x'), ...change })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('unknown members are kept, not refused', async () => {
    await expect(create({ ...say('x'), unheard: 1 })).resolves.toMatchObject({ duplicate: false })
  })

  test('A2A-004 a context of another owner can not be entered, nor a task of his be named', async () => {
    const { task } = await create(say('mine'))
    await expect(create(say('in', { contextId: task.contextId }), stranger)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    await expect(create(say('see', { referenceTaskIds: [task.id] }), stranger)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    await expect(create(say('see', { referenceTaskIds: [task.id], contextId: task.contextId }))).resolves.toBeDefined()
  })

  test('A2A CORE-MULTI-005 a message to a waiting task infers its context and submits it again', async () => {
    const { task } = await create(say('book'))
    await move(task.id, 'TASK_STATE_INPUT_REQUIRED', 'where to?')
    const next = await proceed(say('home', { taskId: task.id }))
    expect(next.task.status.state).toBe('TASK_STATE_SUBMITTED')
    expect(next.task.history?.map((message) => message.parts[0]?.text)).toEqual(['book', 'home', 'where to?'])
    await expect(proceed(say('now', { taskId: task.id }))).rejects.toMatchObject({ code: 'UNSUPPORTED_OPERATION' })
  })

  test('A2A CORE-MULTI-006 CORE-SEND-002 a wrong context, an ended task and an unknown task are refused', async () => {
    const { task } = await create(say('x'))
    await move(task.id, 'TASK_STATE_INPUT_REQUIRED')
    const other = proceed(say('y', { taskId: task.id, contextId: 'other' }))
    await expect(other).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await move(task.id, 'TASK_STATE_COMPLETED')
    await expect(proceed(say('y', { taskId: task.id }))).rejects.toMatchObject({ code: 'UNSUPPORTED_OPERATION' })
    await expect(proceed(say('y', { taskId: 'task_made_up' }))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(create(say('y', { taskId: task.id }))).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('events', () => {
  test('each event has its number, and the task tells up to which it was folded', async () => {
    const { task, generation } = await create(say('x'))
    expect(generation).toBe(1)
    expect((await move(task.id, 'TASK_STATE_WORKING')).generation).toBe(2)
    expect((await getTask(store.view(), owner, task.id)).metadata).toEqual({ [EXTENSIONS.generation]: 2 })
  })

  test('what a status update tells in its metadata stays with the task', async () => {
    const { task } = await create(say('x'))
    const update = (metadata: object) => ({
      statusUpdate: { status: { state: 'TASK_STATE_WORKING' as const }, metadata: { ...metadata } },
    })
    await store.transact((tx) => appendTaskEvent(tx, task.id, update({ a: 1, b: 1 }), clock.now()))
    await store.transact((tx) => appendTaskEvent(tx, task.id, update({ b: 2 }), clock.now()))
    expect((await getTask(store.view(), owner, task.id)).metadata).toEqual({ a: 1, b: 2, [EXTENSIONS.generation]: 3 })
  })

  test('chunks are appended to their artifact, without append they replace it', async () => {
    const { task } = await create(say('x'))
    for (const [text, append] of [
      ['a', false],
      ['b', true],
      ['c', true],
    ] as const)
      await chunk(task.id, text, append)
    const texts = async () =>
      (await getTask(store.view(), owner, task.id)).artifacts?.[0]?.parts.map((part) => part.text)
    expect(await texts()).toEqual(['a', 'b', 'c'])
    await chunk(task.id, 'abc', false)
    expect(await texts()).toEqual(['abc'])
  })

  test('what ends first stands: an ended task takes no event', async () => {
    const { task } = await create(say('x'))
    const canceled = await store.transact((tx) => cancelTask(tx, owner, task.id, clock.now()))
    expect(canceled.status.state).toBe('TASK_STATE_CANCELED')
    await expect(move(task.id, 'TASK_STATE_COMPLETED')).rejects.toMatchObject({ code: 'UNSUPPORTED_OPERATION' })
    await expect(chunk(task.id, 'late', false)).rejects.toMatchObject({ code: 'UNSUPPORTED_OPERATION' })
    expect((await getTask(store.view(), owner, task.id)).status.state).toBe('TASK_STATE_CANCELED')
  })

  test('A2A-OP-3.1.5 CORE-CANCEL-001 CORE-CANCEL-002 CORE-CANCEL-003 cancel twice is once; what ended otherwise can not be canceled', async () => {
    const { task } = await create(say('x'))
    const cancel = (id: string, from = owner) => store.transact((tx) => cancelTask(tx, from, id, clock.now()))
    const first = await cancel(task.id)
    expect(await cancel(task.id)).toEqual(first)
    const other = await create(say('y'))
    await move(other.task.id, 'TASK_STATE_COMPLETED')
    await expect(cancel(other.task.id)).rejects.toMatchObject({ code: 'TASK_NOT_CANCELABLE' })
    await expect(cancel(other.task.id, stranger)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(cancel('task_made_up')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a long stream folds in linear time', async () => {
    const { task } = await create(say('x'))
    await store.transact((tx) => {
      for (let n = 0; n < 4_000; n++) {
        const artifact = { artifactId: 'reply', parts: [{ text: 'x'.repeat(64) }] }
        appendTaskEvent(tx, task.id, { artifactUpdate: { artifact, append: true } }, clock.now())
      }
    })
    const before = process.cpuUsage().user
    const { artifacts } = await getTask(store.view(), owner, task.id)
    expect(artifacts?.[0]?.parts).toHaveLength(4_000)
    expect(process.cpuUsage().user - before).toBeLessThan(2_000_000)
  })

  test('after a stop in the middle, running tasks have failed and waiting ones wait', async () => {
    const own = await temporaryStore()
    const running = await create(say('a'), owner, 'echo', own)
    const waiting = await create(say('b'), owner, 'echo', own)
    await own.transact((tx) =>
      appendTaskEvent(
        tx,
        waiting.task.id,
        { statusUpdate: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } },
        clock.now(),
      ),
    )
    expect(await own.transact((tx) => failInterruptedTasks(tx, clock.now()))).toEqual([running.task.id])
    expect((await getTask(own.view(), owner, running.task.id)).status.state).toBe('TASK_STATE_FAILED')
    expect((await getTask(own.view(), owner, waiting.task.id)).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  })
})

describe('reading', () => {
  test('A2A AUTH-SCOPE-003 a task of another owner, or of another agent, is not there', async () => {
    const { task } = await create(say('x'))
    await expect(getTask(store.view(), stranger, task.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(getTask(store.view(), owner, task.id, { agent: 'other' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(getTask(store.view(), owner, task.id, { agent: 'echo' })).resolves.toBeDefined()
  })

  test('A2A-OP-3.1.3 CORE-HIST-001 CORE-HIST-002 history is as long as asked', async () => {
    const { task } = await create(say('one'))
    await move(task.id, 'TASK_STATE_INPUT_REQUIRED', 'two?')
    await proceed(say('three', { taskId: task.id }))
    const lengthOf = async (historyLength: number) =>
      (await getTask(store.view(), owner, task.id, { historyLength })).history?.length
    expect(await lengthOf(0)).toBeUndefined()
    expect(await lengthOf(2)).toBe(2)
    expect(await lengthOf(50)).toBe(3)
    await expect(lengthOf(-1)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('A2A-OP-3.1.4 CORE-LIST-001..005 the own tasks only, latest status first, in pages that neither miss nor repeat', async () => {
    const own = await temporaryStore()
    const ids: string[] = []
    for (let n = 0; n < 7; n++) {
      clock.advance(n === 3 ? 0 : 1_000)
      ids.unshift((await create(say(`n${n}`), owner, 'echo', own)).task.id)
    }
    await create(say('other'), stranger, 'echo', own)
    const seen: string[] = []
    let pageToken = ''
    do {
      const page = await listTasks(own.view(), owner, { pageSize: 3, pageToken })
      expect(page).toMatchObject({ pageSize: 3, totalSize: 7 })
      seen.push(...page.tasks.map(({ id }) => id))
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    expect([...seen].sort()).toEqual([...ids].sort())
    const times = seen.map((id) => Number(id.split('_')[1]))
    expect(times).toEqual([...times].sort((a, b) => b - a))

    const oldest = ids.at(-1) ?? ''
    clock.advance(1_000)
    await own.transact((tx) => {
      const artifact = { artifactId: 'a', parts: [{ text: 'x' }] }
      appendTaskEvent(tx, oldest, { artifactUpdate: { artifact } }, clock.now())
      appendTaskEvent(tx, oldest, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }, clock.now())
    })
    const [first] = (await listTasks(own.view(), owner, {})).tasks
    expect(first).toMatchObject({ id: oldest })
    expect(first).not.toHaveProperty('artifacts')
    const done = await listTasks(own.view(), owner, {
      status: 'TASK_STATE_COMPLETED',
      includeArtifacts: true,
      historyLength: 0,
    })
    expect(done).toMatchObject({ totalSize: 1, tasks: [{ id: oldest, artifacts: [{ artifactId: 'a' }] }] })
    const since = await listTasks(own.view(), owner, { statusTimestampAfter: new Date(clock.now()).toISOString() })
    expect(since.tasks.map(({ id }) => id)).toEqual([oldest])
    const context = await listTasks(own.view(), owner, { contextId: first?.contextId ?? '' })
    expect(context.totalSize).toBe(1)
    expect((await listTasks(own.view(), owner, { agent: 'other' })).totalSize).toBe(0)
  })

  test('several dids that one owner has had are read as one: the same pages, and nothing of others', async () => {
    const own = await temporaryStore()
    const dids = [createKeyPair().did, createKeyPair().did, createKeyPair().did] as const
    const ids: string[] = []
    for (let n = 0; n < 11; n++) {
      clock.advance(n % 3 === 0 ? 0 : 1_000)
      ids.push((await create(say(`n${n}`), dids[n % 3] ?? dids[0], 'echo', own)).task.id)
    }
    await create(say('other'), stranger, 'echo', own)
    for (const pageSize of [1, 2, 4, 11, 50]) {
      const seen: string[] = []
      let pageToken = ''
      do {
        const page = await listTasks(own.view(), dids, { pageSize, pageToken })
        expect(page.totalSize).toBe(11)
        expect(page.tasks.length).toBeLessThanOrEqual(pageSize)
        seen.push(...page.tasks.map(({ id }) => id))
        pageToken = page.nextPageToken
      } while (pageToken !== '')
      expect(seen.toSorted()).toEqual(ids.toSorted())
      const times = seen.map((id) => Number(id.split('_')[1]))
      expect(times).toEqual(times.toSorted((a, b) => b - a))
    }
    expect((await listTasks(own.view(), [dids[1]], {})).totalSize).toBe(4)
  })

  test.each([
    { pageSize: 0 },
    { pageSize: 101 },
    { pageToken: 'junk' },
    { status: 'WORKING' },
    { statusTimestampAfter: 'yesterday' },
    { historyLength: 1.5 },
    { contextId: 7 },
  ])('a filter of %j is refused', async (filter) => {
    await expect(listTasks(store.view(), owner, filter)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})
