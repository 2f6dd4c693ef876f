/**
 * Tasks of attached agents, with the semantics of A2A 1.0.1: made by a message, changed by events, ended once.
 *
 * A task belongs to who sent its first message, by that key or one that followed it; to anybody else it does not exist,
 * and neither does its context. A message id works once per owner and agent: the same message again gives the same task. An ended
 * task never changes. Running the agent is not done here.
 * @clause A2A-004
 */
import { canonicalize, digestOf, fail, newId, validate } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import {
  isInterrupted,
  isTerminal,
  type Artifact,
  type JsonObject,
  type Message,
  type StreamResponse,
  type Task,
  type TaskState,
} from './a2a.ts'
import {
  didsOf,
  foldTask,
  openHeads,
  readHead,
  stageFirst,
  stageNext,
  stampTask,
  type Owner,
  type TaskHead,
} from './task-log.ts'

export type MessageInput = {
  /** the sender */
  readonly owner: Owner
  /** id of the attached agent */
  readonly agent: string
  /** A2A Message JSON, not yet checked */
  readonly message: unknown
  /** ms since epoch */
  readonly now: number
}

/** `duplicate` is true where the message was here before and nothing was written. */
export type Accepted = { readonly task: Task; readonly generation: number; readonly duplicate: boolean }

/** What may happen to a task; ids and time are filled in. */
export type TaskUpdate =
  | {
      readonly statusUpdate: {
        readonly status: { readonly state: TaskState; readonly message?: Message }
        readonly metadata?: JsonObject
      }
    }
  | {
      readonly artifactUpdate: {
        readonly artifact: Artifact
        readonly append?: boolean
        readonly lastChunk?: boolean
        readonly metadata?: JsonObject
      }
    }

type Seen = { readonly task: string; readonly digest: string }

/**
 * Take a message that names no task: a new task in state SUBMITTED, in the context it names or a new one.
 * @throws INVALID_INPUT; NOT_FOUND where its context or a referenced task is not the owner's;
 *   REPLAYED where its id was used for another message
 * @clause A2A-OP-3.1.1
 */
export async function createTask(
  tx: Transaction,
  { owner, agent, message: value, now }: MessageInput,
): Promise<Accepted> {
  const message = validate('A2aMessage', value) as Message
  if ((message.taskId ?? '') !== '')
    fail('INVALID_INPUT', { reason: 'the message names a task', path: '/message/taskId' })
  const before = await findSeen(tx, owner, agent, message)
  if (before !== undefined) return before
  checkReferences(tx, owner, message)
  const contextId = claimContext(tx, owner, message.contextId ?? '', now)
  const id = newId('task', now)
  const [did] = didsOf(owner)
  const head: TaskHead = {
    id,
    owner: did,
    agent,
    contextId,
    generation: 1,
    state: 'TASK_STATE_SUBMITTED',
    statusAt: now,
  }
  const task: Task = {
    id,
    contextId,
    status: { state: head.state, timestamp: timestamp(now) },
    history: [{ ...message, taskId: id, contextId }],
  }
  stageFirst(tx, head, task)
  noteSeen(tx, head, message)
  return { task: stampTask(task, 1), generation: 1, duplicate: false }
}

/**
 * Take a message for a task that waits for one: it is added to the history, and the task is SUBMITTED again.
 * @throws INVALID_INPUT where it names another context; NOT_FOUND; UNSUPPORTED_OPERATION where the task has
 *   ended or its agent is running and can not hear; REPLAYED where its id was used for another message
 */
export async function continueTask(
  tx: Transaction,
  { owner, agent, message: value, now }: MessageInput,
): Promise<Accepted> {
  const message = validate('A2aMessage', value) as Message
  const head = readHead(tx, owner, message.taskId ?? '', agent)
  const before = await findSeen(tx, owner, agent, message)
  if (before !== undefined) return before
  const contextId = message.contextId ?? ''
  if (contextId !== '' && contextId !== head.contextId) {
    fail('INVALID_INPUT', { reason: 'the task is in another context', path: '/message/contextId' })
  }
  if (!isInterrupted(head.state))
    fail('UNSUPPORTED_OPERATION', { reason: 'the task takes no message', state: head.state })
  checkReferences(tx, owner, message)
  const heard = stageNext(tx, head, { message: { ...message, contextId: head.contextId } }, now)
  const ids = { taskId: head.id, contextId: head.contextId }
  const status = statusOf({ state: 'TASK_STATE_SUBMITTED' }, ids, now)
  const next = stageNext(tx, heard, { statusUpdate: { ...ids, status } }, now)
  noteSeen(tx, head, message)
  return { task: await foldTask(tx, next), generation: next.generation, duplicate: false }
}

/**
 * Add an event to the log. Its ids and timestamp are set here.
 * @param now ms since epoch
 * @returns the event as it is kept and streamed, and its number
 * @throws NOT_FOUND; UNSUPPORTED_OPERATION where the task has ended: what ends first stands
 */
export function appendTaskEvent(
  tx: Transaction,
  id: string,
  update: TaskUpdate,
  now: number,
): { readonly generation: number; readonly event: StreamResponse } {
  const head = tx.getJson<TaskHead>(key('task', id)) ?? fail('NOT_FOUND', { task: id })
  if (isTerminal(head.state)) fail('UNSUPPORTED_OPERATION', { reason: 'the task has ended', state: head.state })
  const ids = { taskId: head.id, contextId: head.contextId }
  const event: StreamResponse =
    'statusUpdate' in update
      ? { statusUpdate: { ...update.statusUpdate, ...ids, status: statusOf(update.statusUpdate.status, ids, now) } }
      : { artifactUpdate: { ...update.artifactUpdate, ...ids } }
  return { generation: stageNext(tx, head, event, now).generation, event }
}

/**
 * End a task at its owner's wish. Done again it changes nothing.
 * @throws NOT_FOUND; TASK_NOT_CANCELABLE where it ended otherwise
 * @clause A2A-OP-3.1.5
 */
export async function cancelTask(
  tx: Transaction,
  owner: Owner,
  id: string,
  now: number,
  agent?: string,
): Promise<Task> {
  const head = readHead(tx, owner, id, agent)
  if (head.state === 'TASK_STATE_CANCELED') return foldTask(tx, head)
  if (isTerminal(head.state)) fail('TASK_NOT_CANCELABLE', { task: id, state: head.state })
  appendTaskEvent(tx, id, { statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } }, now)
  return foldTask(tx, readHead(tx, owner, id))
}

/**
 * After a stop in the middle of things: what was SUBMITTED or WORKING has no process any more and FAILED.
 * @returns ids of the tasks that were ended
 */
export async function failInterruptedTasks(tx: Transaction, now: number): Promise<string[]> {
  const ended: string[] = []
  for (const head of await openHeads(tx)) {
    if (head.state !== 'TASK_STATE_SUBMITTED' && head.state !== 'TASK_STATE_WORKING') continue
    const message = agentMessage('The node stopped while this task was running.', now)
    appendTaskEvent(tx, head.id, { statusUpdate: { status: { state: 'TASK_STATE_FAILED', message } } }, now)
    ended.push(head.id)
  }
  return ended
}

/** A message of the agent or of the node on its behalf, with one text part. */
export const agentMessage = (text: string, now: number): Message => ({
  messageId: newId('message', now),
  role: 'ROLE_AGENT',
  parts: [{ text }],
})

const timestamp = (now: number): string => new Date(now).toISOString()

const statusOf = (
  status: { state: TaskState; message?: Message },
  ids: { taskId: string; contextId: string },
  now: number,
) => ({
  state: status.state,
  ...(status.message === undefined ? {} : { message: { ...status.message, ...ids } }),
  timestamp: timestamp(now),
})

/** The same message again is answered with its task; another one under the same id is refused. */
async function findSeen(view: View, owner: Owner, agent: string, message: Message): Promise<Accepted | undefined> {
  const seen = didsOf(owner)
    .map((did) => view.getJson<Seen>(seenKey(did, agent, message)))
    .find((one) => one !== undefined)
  if (seen === undefined) return undefined
  if (seen.digest !== digestOf(canonicalize(message))) fail('REPLAYED', { messageId: message.messageId })
  const head = readHead(view, owner, seen.task)
  return { task: await foldTask(view, head), generation: head.generation, duplicate: true }
}

function noteSeen(tx: Transaction, head: TaskHead, message: Message): void {
  const seen: Seen = { task: head.id, digest: digestOf(canonicalize(message)) }
  tx.putJson(seenKey(head.owner, head.agent, message), seen)
}

const seenKey = (owner: string, agent: string, message: Message): string =>
  key('taskByMessage', owner, agent, message.messageId)

/** A context is made by its first message and belongs to who sent it. */
function claimContext(tx: Transaction, owner: Owner, asked: string, now: number): string {
  const dids = didsOf(owner)
  const contextId = asked === '' ? newId('context', now) : asked
  const known = tx.getJson<{ owner: string }>(key('taskContext', contextId))
  if (known !== undefined && !dids.includes(known.owner)) fail('NOT_FOUND', { contextId })
  if (known === undefined) tx.putJson(key('taskContext', contextId), { owner: dids[0] })
  return contextId
}

function checkReferences(view: View, owner: Owner, message: Message): void {
  for (const id of message.referenceTaskIds ?? []) readHead(view, owner, id)
}
