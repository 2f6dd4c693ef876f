/**
 * Reading tasks, with the semantics of A2A 1.0.1 get and list: the owner's own only, history as long as asked,
 * pages by cursor, latest status first.
 */
import { LIMITS, fail } from '@csb/core'
import { prefix, tail, type View } from '@csb/store'
import { TASK_STATES, type Task, type TaskState } from './a2a.ts'
import { didsOf, foldTask, readHead, type Owner, type TaskRow } from './task-log.ts'

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

/**
 * @param options.historyLength at most that many last messages; 0: none; omitted: all
 * @throws NOT_FOUND where it is not `owner`'s or not of `agent`; INVALID_INPUT
 * @clause A2A-OP-3.1.3
 */
export async function getTask(
  view: View,
  owner: Owner,
  id: string,
  options: { readonly agent?: string; readonly historyLength?: unknown } = {},
): Promise<Task> {
  const keep = historyLimit(options.historyLength)
  return trimHistory(await foldTask(view, readHead(view, owner, id, options.agent)), keep)
}

/**
 * The owner's tasks, the latest status first.
 * @throws INVALID_INPUT with the member that is wrong
 * @clause A2A-OP-3.1.4
 */
export async function listTasks(view: View, owner: Owner, filter: TaskFilter): Promise<TaskPage> {
  const { pageSize, after, since, status, contextId, historyLength } = checkFilter(filter)
  const found: string[] = []
  let totalSize = 0
  for (const did of didsOf(owner)) {
    let own = 0
    for await (const [k] of view.range({ prefix: prefix('taskByOwner', did) })) {
      const at = tail(k, 'taskByOwner', did)
      const row = view.getJson<TaskRow>(k)
      if (row === undefined) continue
      if (filter.agent !== undefined && row.agent !== filter.agent) continue
      if (contextId !== '' && row.contextId !== contextId) continue
      if (status !== undefined && row.state !== status) continue
      if (Number.MAX_SAFE_INTEGER - Number(at.slice(0, 16)) < since) break
      totalSize++
      if (after !== undefined && at <= after) continue
      // one more than a page tells that there is another
      if (own <= pageSize) found.push(at)
      own++
    }
  }
  // rows of one did are in this order as they come
  const page = found.toSorted().slice(0, pageSize)
  const more = found.length > pageSize
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
