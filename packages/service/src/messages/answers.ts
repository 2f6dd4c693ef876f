/** A2A requests to an agent of this node, by method: the same for a caller at a door and for an envelope. */
import { deadline, fail } from '@csb/core'
import { TASKS_SEND, followTask, getTask, listTasks, toTasksSend, waitForTask, type JsonObject } from '@csb/agents'
import { keysUntil } from '@csb/authority'
import { acceptMessage, cancelRun, type Arrival } from './messages.ts'
import type { Context } from '../operation.ts'

/** How long a blocking send waits for the task at most; then it is answered with the task as it stands. */
const BLOCKING_MS = 10 * 60_000

/** An envelope is answered this long before its life ends: an open task is worth more than no answer. */
const ANSWERING_MS = 2_000

/** Methods that answer with a stream. */
export const isStreaming = (method: string): boolean =>
  method === 'SendStreamingMessage' || method === 'SubscribeToTask'

/**
 * One answer.
 * @throws UNSUPPORTED_OPERATION, and whatever the method throws
 */
export async function answer(context: Context, arrival: Arrival): Promise<unknown> {
  const { agent, body, request } = arrival
  const { params } = request
  const owner = keysUntil(context.view, arrival.owner)
  switch (request.method) {
    case 'SendMessage': {
      const { task } = await acceptMessage(context, arrival)
      const { returnImmediately } = (params['configuration'] ?? {}) as { returnImmediately?: unknown }
      if (returnImmediately !== true) await settled(context, arrival, task.id)
      const result = { task: await getTask(context.view, owner, task.id, historyOf(params['configuration'])) }
      return body.method === TASKS_SEND ? toTasksSend(result) : result
    }
    case 'GetTask':
      return getTask(context.view, owner, idOf(params), { agent, ...historyOf(params) })
    case 'ListTasks':
      return listTasks(context.view, owner, { ...params, agent })
    case 'CancelTask':
      return cancelRun(context, owner, agent, idOf(params))
    default:
      return fail('UNSUPPORTED_OPERATION', { method: body.method })
  }
}

/** A stream of A2A StreamResponse. */
export async function* answerStream(context: Context, arrival: Arrival): AsyncGenerator<unknown> {
  const { agent, request } = arrival
  const { store, runs, signal } = context
  const owner = keysUntil(context.view, arrival.owner)
  if (request.method === 'SubscribeToTask') {
    yield* followTask(store, runs.bus, { owner, id: idOf(request.params), agent, signal })
    return
  }
  const { task, generation } = await acceptMessage(context, arrival)
  yield { task }
  yield* followTask(store, runs.bus, { owner, id: task.id, agent, after: generation, signal })
}

async function settled(context: Context, { owner, until }: Arrival, id: string): Promise<void> {
  const left = until === undefined ? BLOCKING_MS : until - context.clock.now() - ANSWERING_MS
  const signal = deadline(Math.max(0, Math.min(BLOCKING_MS, left)), context.signal)
  const dids = keysUntil(context.view, owner)
  await waitForTask(context.store, context.runs.bus, { owner: dids, id, signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

function idOf(params: JsonObject): string {
  const { id } = params
  return typeof id === 'string' && id !== ''
    ? id
    : fail('INVALID_INPUT', { errors: [{ path: '/id', message: 'is required' }] })
}

function historyOf(value: unknown): { historyLength?: unknown } {
  const { historyLength } = (value ?? {}) as { historyLength?: unknown }
  return historyLength === undefined ? {} : { historyLength }
}
