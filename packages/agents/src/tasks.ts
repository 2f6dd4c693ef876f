/**
 * Tasks of attached agents, with the semantics of A2A 1.0.1: made by a message, changed by events, ended once.
 *
 * A task belongs to who sent its first message; to anybody else it does not exist, and neither does its
 * context. A message id works once per owner and agent: the same message again gives the same task. An ended
 * task never changes. Running the agent is not done here.
 * @clause A2A-004
 */
import { LIMITS, canonicalize, digestOf, fail, newId, validate } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import {
  TASK_STATES,
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
  foldTask,
  openHeads,
  readHead,
  stageFirst,
  stageNext,
  stampTask,
  type TaskHead,
  type TaskRow,
} from './task-log.ts'

export type MessageInput = {
  /** did of the sender */
  readonly owner: string
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

/** A2A ListTasksRequest, and the agent whose tasks are asked for. Members are checked. */
export type TaskFilter = {
  readonly agent?: string
  readonly contextId?: unknown
  readonly status?: unknown
  readonly pageSize?: unknown
  readonly pageToken?: unknown
  readonly historyLength?: unknown
  readonly statusTimestampAfter?: unknown
  readonly includeArtifacts?: unknown
}

export type TaskPage = {
  readonly tasks: readonly Task[]
  /** empty on the last page */
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

type Seen = { readonly task: string; readonly digest: string }

/**
 * Take a message that names no task: a new task in state SUBMITTED, in the context it names or a new one.
 * @throws INVALID_INPUT; NOT_FOUND where its context or a referenced task is not the owner's;
 *   REPLAYED where its id was used for another message
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
  const head: TaskHead = { id, owner, agent, contextId, generation: 1, state: 'TASK_STATE_SUBMITTED', statusAt: now }
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
 * @param options.historyLength at most that many last messages; 0: none; omitted: all
 * @throws NOT_FOUND where it is not `owner`'s or not of `agent`; INVALID_INPUT
 */
export async function getTask(
  view: View,
  owner: string,
  id: string,
  options: { readonly agent?: string; readonly historyLength?: unknown } = {},
): Promise<Task> {
  const keep = historyLimit(options.historyLength)
  return trimHistory(await foldTask(view, readHead(view, owner, id, options.agent)), keep)
}

/**
 * End a task at its owner's wish. Done again it changes nothing.
 * @throws NOT_FOUND; TASK_NOT_CANCELABLE where it ended otherwise
 */
export async function cancelTask(
  tx: Transaction,
  owner: string,
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
 * The owner's tasks, the latest status first.
 * @throws INVALID_INPUT with the member that is wrong
 */
export async function listTasks(view: View, owner: string, filter: TaskFilter): Promise<TaskPage> {
  const { pageSize, after, since, status, contextId, historyLength } = checkFilter(filter)
  const page: string[] = []
  let totalSize = 0
  let more = false
  for await (const [k] of view.range({ prefix: prefix('taskByOwner', owner) })) {
    const at = tail(k, 'taskByOwner', owner)
    const row = view.getJson<TaskRow>(k)
    if (row === undefined) continue
    if (filter.agent !== undefined && row.agent !== filter.agent) continue
    if (contextId !== '' && row.contextId !== contextId) continue
    if (status !== undefined && row.state !== status) continue
    if (Number.MAX_SAFE_INTEGER - Number(at.slice(0, 16)) < since) break
    totalSize++
    if (after !== undefined && at <= after) continue
    if (page.length < pageSize) page.push(at)
    else more = true
  }
  const tasks: Task[] = []
  for (const at of page) {
    const task = trimHistory(await foldTask(view, readHead(view, owner, at.slice(17))), historyLength)
    const { artifacts: _, ...without } = task
    tasks.push(filter.includeArtifacts === true ? task : without)
  }
  const last = page.at(-1)
  return {
    tasks,
    nextPageToken: more && last !== undefined ? Buffer.from(last).toString('base64url') : '',
    pageSize,
    totalSize,
  }
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
async function findSeen(view: View, owner: string, agent: string, message: Message): Promise<Accepted | undefined> {
  const seen = view.getJson<Seen>(seenKey(owner, agent, message))
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
function claimContext(tx: Transaction, owner: string, asked: string, now: number): string {
  const contextId = asked === '' ? newId('context', now) : asked
  const known = tx.getJson<{ owner: string }>(key('taskContext', contextId))
  if (known !== undefined && known.owner !== owner) fail('NOT_FOUND', { contextId })
  if (known === undefined) tx.putJson(key('taskContext', contextId), { owner })
  return contextId
}

function checkReferences(view: View, owner: string, message: Message): void {
  for (const id of message.referenceTaskIds ?? []) readHead(view, owner, id)
}

function trimHistory(task: Task, keep: number): Task {
  const { history = [], ...rest } = task
  const kept = keep === 0 ? [] : history.slice(-keep)
  return kept.length === 0 ? rest : { ...rest, history: kept }
}

function historyLimit(value: unknown): number {
  if (value === undefined || value === null) return Number.POSITIVE_INFINITY
  if (!Number.isSafeInteger(value) || (value as number) < 0) wrong('historyLength')
  return value as number
}

function checkFilter(filter: TaskFilter) {
  const { pageSize = LIMITS.listDefault, pageToken = '', contextId = '', status, statusTimestampAfter } = filter
  if (!Number.isSafeInteger(pageSize) || (pageSize as number) < 1 || (pageSize as number) > 100) wrong('pageSize')
  if (typeof contextId !== 'string') wrong('contextId')
  const any = status === undefined || status === 'TASK_STATE_UNSPECIFIED' || status === ''
  if (!any && !TASK_STATES.includes(status as TaskState)) wrong('status')
  const since =
    statusTimestampAfter === undefined
      ? 0
      : Date.parse(typeof statusTimestampAfter === 'string' ? statusTimestampAfter : '')
  if (Number.isNaN(since)) wrong('statusTimestampAfter')
  return {
    pageSize: pageSize as number,
    after: cursorOf(pageToken),
    contextId: contextId as string,
    status: any ? undefined : (status as TaskState),
    since,
    historyLength: historyLimit(filter.historyLength),
  }
}

function cursorOf(token: unknown): string | undefined {
  if (token === '') return undefined
  const text = typeof token === 'string' ? Buffer.from(token, 'base64url').toString('utf8') : ''
  if (!/^[0-9]{16}\/task_[0-9a-z_]{1,80}$/.test(text)) wrong('pageToken')
  return text
}

const wrong = (member: string): never =>
  fail('INVALID_INPUT', { errors: [{ path: `/${member}`, message: 'is not valid' }] })
