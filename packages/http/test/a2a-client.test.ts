/** The stock client of the A2A project against the real listener, in version 1.0 and 0.3. */
import { describe, expect, test } from 'vitest'
import { Role, TaskState, type Message, type SendMessageRequest, type StreamResponse, type Task } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, type Client } from '@a2a-js/sdk/client'
import { verifyCard } from '@csb/agents'
import { until } from '@csb/core'
import { node, openAgentDoor } from './agent-service.ts'
import { TOKEN } from './fixtures.ts'

const door = await openAgentDoor()
const authorized: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('Authorization', `Bearer ${TOKEN}`)
  return fetch(input, { ...init, headers })
}
const factory = (legacy: boolean) =>
  new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl: authorized, legacyCompat: { enabled: legacy } })],
    }),
  )
const client = await factory(false).createFromUrl(door.url)

/** The same agent, but a client that speaks 0.3 only. */
async function legacyClient(): Promise<Client> {
  const card = await client.getAgentCard()
  const old = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3')
  return factory(true).createFromAgentCard({ ...card, supportedInterfaces: old })
}

let count = 0

const say = (text: string, more: Partial<Message> = {}, returnImmediately = false): SendMessageRequest => ({
  tenant: '',
  metadata: {},
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
  message: {
    messageId: `m-${++count}`,
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: {}, filename: '', mediaType: '' }],
    contextId: '',
    taskId: '',
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
})

const send = async (by: Client, request: SendMessageRequest): Promise<Task> => (await by.sendMessage(request)) as Task
const kinds = (events: readonly StreamResponse[]) => events.map((event) => event.payload?.$case)
const texts = (task: Task) => task.artifacts.flatMap(({ parts }) => parts.map((part) => part.content?.value))

describe('A2A-001 the stock client, A2A 1.0', () => {
  test('A2A-001 discovers the node by its signed card', async () => {
    const card: unknown = await (await door.request('/.well-known/agent-card.json')).json()
    expect(verifyCard(card, node.peerId).name).toBe('Echo')
    expect((await client.getAgentCard()).supportedInterfaces[0]?.url).toBe(`${door.url}/a2a/echo`)
  })

  test('A2A-OP-3.1.1 sends and waits for the end', async () => {
    const task = await send(client, say('hello'))
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(texts(task)).toEqual(['echo: hello'])
    const asked = door.service.asked.at(-1)
    expect(asked).toMatchObject({
      operation: 'agents.send',
      caller: { kind: 'bearer', token: TOKEN },
      input: { agent: 'echo' },
    })
  })

  test('A2A-OP-3.1.2 streams the task, then what happens, to the end', async () => {
    const events = await Array.fromAsync(client.sendMessageStream(say('hi')))
    expect(kinds(events)[0]).toBe('task')
    expect(kinds(events).at(-1)).toBe('statusUpdate')
    expect(kinds(events)).toContain('artifactUpdate')
  })

  test('A2A-OP-3.1.3, A2A-OP-3.1.4, A2A-OP-3.1.5: gets, lists and cancels', async () => {
    const task = await send(client, say('hang', {}, true))
    const got = await client.getTask({ tenant: '', id: task.id, historyLength: 0 })
    expect(got).toMatchObject({ id: task.id, history: [] })
    const listed = await client.listTasks({
      tenant: '',
      contextId: task.contextId,
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize: 10,
      pageToken: '',
      historyLength: 0,
      statusTimestampAfter: undefined,
      includeArtifacts: false,
    })
    expect(listed).toMatchObject({ totalSize: 1, pageSize: 10, nextPageToken: '', tasks: [{ id: task.id }] })
    const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: {} })
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('A2A-OP-3.1.6 subscribes, and a cancel from elsewhere ends the stream', async () => {
    const task = await send(client, say('hang', {}, true))
    const events = Array.fromAsync(client.resubscribeTask({ tenant: '', id: task.id }))
    await until(() => door.service.asked.at(-1)?.operation === 'agents.subscribe', 30_000, 'the subscription')
    await client.cancelTask({ tenant: '', id: task.id, metadata: {} })
    expect(kinds(await events).at(-1)).toBe('statusUpdate')
  })

  test('goes on with a task that asked for more', async () => {
    const task = await send(client, say('ask'))
    expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
    const next = await send(client, say('home', { taskId: task.id, contextId: task.contextId }))
    expect(next).toMatchObject({ id: task.id })
    expect(texts(next)).toEqual(['echo: home'])
  })

  test('is told errors by their A2A names', async () => {
    const failure = async (work: Promise<unknown>) =>
      work.then(
        () => 'none',
        (error: Error) => error.constructor.name + error.name,
      )
    const missing = { tenant: '', id: 'task_none', metadata: {} }
    expect(await failure(client.getTask(missing))).toMatch(/TaskNotFound/)
    const done = await send(client, say('x'))
    expect(await failure(client.cancelTask({ ...missing, id: done.id }))).toMatch(/TaskNotCancelable/)
    expect(await failure(Array.fromAsync(client.resubscribeTask({ tenant: '', id: done.id })))).toMatch(
      /UnsupportedOperation/,
    )
    expect(await failure(send(client, say('y', { taskId: done.id })))).toMatch(/UnsupportedOperation/)
  })
})

describe('A2A-011 the stock client, A2A 0.3', () => {
  test('sends, streams, gets and cancels through the compatibility layer', async () => {
    const old = await legacyClient()
    const task = await send(old, say('hello'))
    expect(texts(task)).toEqual(['echo: hello'])
    expect(door.service.asked.at(-1)).toMatchObject({
      operation: 'agents.send',
      input: { agent: 'echo', params: { message: { role: 'ROLE_USER', parts: [{ text: 'hello' }] } } },
    })
    const events = await Array.fromAsync(old.sendMessageStream(say('hi')))
    expect(kinds(events)[0]).toBe('task')
    expect(kinds(events).at(-1)).toBe('statusUpdate')
    const hanging = await send(old, say('hang', {}, true))
    expect((await old.getTask({ tenant: '', id: hanging.id, historyLength: 1 })).id).toBe(hanging.id)
    expect((await old.cancelTask({ tenant: '', id: hanging.id, metadata: {} })).status?.state).toBe(
      TaskState.TASK_STATE_CANCELED,
    )
  })

  test('is told errors by their codes', async () => {
    const old = await legacyClient()
    await expect(old.getTask({ tenant: '', id: 'task_none', historyLength: 1 })).rejects.toThrow()
    await expect(Array.fromAsync(old.resubscribeTask({ tenant: '', id: 'task_none' }))).rejects.toThrow()
  })
})
