/**
 * The agent operations of a service over a real task store: enough for a foreign client to send, stream, get,
 * list and cancel. What the first word of a message says is what the agent does.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { NodeError, createKeyPair, isNodeError, systemClock, type AgentsAttach } from '@csb/core'
import {
  agentCard,
  appendTaskEvent,
  cancelTask,
  continueTask,
  createReply,
  createTask,
  createTaskBus,
  failureUpdate,
  followTask,
  getTask,
  listTasks,
  readRequest,
  signCard,
  toTasksSend,
  waitForTask,
  type AgentEvent,
  type Message,
  type Task,
  type TaskUpdate,
} from '@csb/agents'
import { openStore } from '@csb/store'
import { openDoor, type Door } from './fixtures.ts'

type Input = { readonly agent: string; readonly params: Record<string, unknown> }

export const node = createKeyPair()
const owner = createKeyPair().did
const echo: AgentsAttach = {
  id: 'echo',
  name: 'Echo',
  description: 'says it again',
  command: ['/bin/true'],
  skills: [{ id: 'echo.say', name: 'Say', description: 'says it again' }],
}

/** A door before such a service. */
export async function openAgentDoor(): Promise<Door> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-http-'))
  const store = await openStore(join(folder, 'db'))
  afterAll(async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })
  const bus = createTaskBus()
  const door = await openDoor({ heartbeatMs: 100 })
  const { answers, flows } = door.service

  const happen = async (id: string, update: TaskUpdate): Promise<void> => {
    await store.transact((tx) => appendTaskEvent(tx, id, update, systemClock.now()))
    bus.changed(id)
  }

  const read = (method: string, input: unknown): Input => {
    const { agent, params } = input as Input
    return { agent, params: readRequest({ method, params }, systemClock.now()).params }
  }

  const accept = async ({ agent, params }: Input): Promise<Task> => {
    const message = params['message'] as Message
    const input = { owner, agent, message, now: systemClock.now() }
    if (agent !== 'echo') throw new NodeError('NOT_FOUND', { agent })
    const { task, duplicate } = await store.transact((tx) =>
      (message.taskId ?? '') === '' ? createTask(tx, input) : continueTask(tx, input),
    )
    if (!duplicate)
      run(task.id, message).catch(
        (error: unknown) => isNodeError(error, 'UNSUPPORTED_OPERATION') || Promise.reject(error),
      )
    return task
  }

  const run = async (id: string, message: Message): Promise<void> => {
    const part = message.parts[0] ?? {}
    const text = part.text ?? JSON.stringify(part.data ?? null)
    await happen(id, { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } })
    if (text.startsWith('hang')) return
    if (text.startsWith('ask')) return happen(id, { statusUpdate: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } })
    if (text.startsWith('fail')) return happen(id, failureUpdate(new NodeError('AGENT_TIMEOUT'), systemClock.now()))
    const reply = createReply()
    const told: AgentEvent[] = [
      { kind: 'text', text: 'a' },
      { kind: 'text', text: 'b' },
      { kind: 'result', result: { text: `echo: ${text}`, ...(part.data === undefined ? {} : { data: part.data }) } },
    ]
    for (const event of told) for (const update of reply.updates(event, systemClock.now())) await happen(id, update)
  }

  answers.set('agents.list', () => ({ items: [{ ...echo, attachedAt: 0 }] }))
  answers.set('agents.card', () =>
    signCard(
      agentCard({
        agent: { ...echo, attachedAt: 0 },
        node: { name: 'nas', did: node.did, peerId: node.peerId },
        url: door.url,
      }),
      node,
    ),
  )
  answers.set('agents.send', async (given, { signal }) => {
    const input = read('SendMessage', given)
    const { id } = await accept(input)
    const { returnImmediately } = (input.params['configuration'] ?? {}) as { returnImmediately?: boolean }
    if (returnImmediately === true) return { task: await getTask(store.view(), owner, id) }
    return { task: await waitForTask(store, bus, { owner, id, ...(signal === undefined ? {} : { signal }) }) }
  })
  answers.set('agents.tasksSend', async (given, { signal }) => {
    const { id } = await accept(read('tasks/send', given))
    const task = await waitForTask(store, bus, { owner, id, ...(signal === undefined ? {} : { signal }) })
    return toTasksSend({ task })
  })
  answers.set('agents.getTask', (given) => {
    const { agent, params } = read('GetTask', given)
    const { id, historyLength } = params as { id: string; historyLength?: number }
    return getTask(store.view(), owner, id, { agent, historyLength })
  })
  answers.set('agents.listTasks', (given) => {
    const { agent, params } = read('ListTasks', given)
    return listTasks(store.view(), owner, { ...params, agent })
  })
  answers.set('agents.cancelTask', async (given) => {
    const { id } = read('CancelTask', given).params as { id: string }
    const task = await store.transact((tx) => cancelTask(tx, owner, id, systemClock.now()))
    bus.changed(id)
    return task
  })
  flows.set('agents.stream', async function* (input, { signal }) {
    const task = await accept(read('SendStreamingMessage', input))
    yield { task }
    yield* followTask(store, bus, { owner, id: task.id, after: 1, ...(signal === undefined ? {} : { signal }) })
  })
  flows.set('agents.subscribe', (given, { signal }) => {
    const { id } = read('SubscribeToTask', given).params as { id: string }
    return followTask(store, bus, { owner, id, ...(signal === undefined ? {} : { signal }) })
  })
  return door
}
