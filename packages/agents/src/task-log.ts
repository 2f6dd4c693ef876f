/**
 * The log of a task: events in the order they happened, numbered by its generation, never changed. A task is
 * what its log folds to; whoever follows one reads the same events in the same order.
 *
 * Keys and heads of tasks are spelled here and used by the files beside it only.
 * @clause A2A-004
 */
import { EXTENSIONS, fail } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import {
  isTerminal,
  type Artifact,
  type ArtifactUpdate,
  type JsonObject,
  type Message,
  type StatusUpdate,
  type StreamResponse,
  type Task,
  type TaskState,
} from './a2a.ts'

/** What is known of a task without reading its log. Times in ms since epoch. */
export type TaskHead = {
  readonly id: string
  /** did of who sent the first message; to anybody else the task does not exist */
  readonly owner: string
  readonly agent: string
  readonly contextId: string
  /** number of events */
  readonly generation: number
  readonly state: TaskState
  readonly statusAt: number
}

/** The row by which tasks are listed. */
export type TaskRow = Pick<TaskHead, 'agent' | 'contextId' | 'state'>

/** An event and its number, counted from 1. */
export type TaskEvent = { readonly generation: number; readonly event: StreamResponse }

/** Did of who asks; where that key followed others, with theirs behind it: what was theirs is its own. */
export type Owner = string | readonly [string, ...string[]]

export const didsOf = (owner: Owner): readonly [string, ...string[]] => (typeof owner === 'string' ? [owner] : owner)

/** @throws NOT_FOUND where there is none, or it is not `owner`'s, or not of `agent` where one is given */
export function readHead(view: View, owner: Owner, id: string, agent?: string): TaskHead {
  const head = view.getJson<TaskHead>(key('task', id))
  if (head === undefined || !didsOf(owner).includes(head.owner) || (agent !== undefined && head.agent !== agent))
    fail('NOT_FOUND', { task: id })
  return head
}

/** True where there is a task of that id, whoever's it is, and it has ended. */
export function hasEnded(view: View, id: string): boolean {
  const head = view.getJson<TaskHead>(key('task', id))
  return head !== undefined && isTerminal(head.state)
}

/** Heads of all tasks that have not ended, of all owners. */
export async function openHeads(view: View): Promise<TaskHead[]> {
  const heads: TaskHead[] = []
  for await (const [k] of view.range({ prefix: prefix('task') })) {
    const head = view.getJson<TaskHead>(k)
    if (head !== undefined && !isTerminal(head.state)) heads.push(head)
  }
  return heads
}

/** Stage a new task with its first event. */
export function stageFirst(tx: Transaction, head: TaskHead, task: Task): void {
  tx.putJson(key('taskEvent', head.id, 1), { task })
  stageHead(tx, undefined, head)
}

/** Stage one more event. @returns the new head */
export function stageNext(tx: Transaction, head: TaskHead, event: StreamResponse, now: number): TaskHead {
  const generation = head.generation + 1
  const state = 'statusUpdate' in event ? event.statusUpdate.status.state : head.state
  const next: TaskHead = { ...head, generation, state, statusAt: 'statusUpdate' in event ? now : head.statusAt }
  tx.putJson(key('taskEvent', head.id, generation), event)
  stageHead(tx, head, next)
  return next
}

/** Events after a generation, each stamped with its number. */
export async function* readEvents(view: View, id: string, after: number): AsyncGenerator<TaskEvent> {
  const range = { prefix: prefix('taskEvent', id), after: key('taskEvent', id, after) }
  for await (const [k] of view.range(range)) {
    const event = view.getJson<StreamResponse>(k)
    const generation = Number(k.slice(range.prefix.length))
    if (event !== undefined) yield { generation, event: stamp(event, generation) }
  }
}

/** The task as its log tells it. */
export async function foldTask(view: View, head: TaskHead): Promise<Task> {
  const folding = createFold()
  for await (const { event } of readEvents(view, head.id, 0)) folding.add(event)
  return stampTask(folding.task(head), head.generation)
}

/** Sorts newest first: 16 digits that fall as time rises. */
export const rowTail = (head: Pick<TaskHead, 'id' | 'statusAt'>): string =>
  `${String(Number.MAX_SAFE_INTEGER - head.statusAt).padStart(16, '0')}/${head.id}`

function stageHead(tx: Transaction, before: TaskHead | undefined, head: TaskHead): void {
  tx.putJson(key('task', head.id), head)
  if (before !== undefined && before.state === head.state && before.statusAt === head.statusAt) return
  if (before !== undefined) tx.del(key('taskByOwner', head.owner, rowTail(before)))
  const row: TaskRow = { agent: head.agent, contextId: head.contextId, state: head.state }
  tx.putJson(key('taskByOwner', head.owner, rowTail(head)), row)
}

function createFold() {
  let first: Task | undefined
  let status: Task['status'] | undefined
  let metadata: JsonObject = {}
  const history: Message[] = []
  const artifacts = new Map<string, Artifact>()

  const addArtifact = ({ artifact, append }: ArtifactUpdate) => {
    const kept = artifacts.get(artifact.artifactId)
    if (append !== true || kept === undefined) {
      artifacts.set(artifact.artifactId, { ...artifact, parts: [...artifact.parts] })
    } else {
      // the list is this fold's own, so chunks are pushed instead of copied: long streams stay linear
      ;(kept.parts as Artifact['parts'][number][]).push(...artifact.parts)
    }
  }

  const addStatus = (update: StatusUpdate) => {
    if (status?.message !== undefined) history.push(status.message)
    status = update.status
    metadata = { ...metadata, ...update.metadata }
  }

  return {
    add: (event: StreamResponse) => {
      if ('task' in event) {
        first = event.task
        status = event.task.status
        metadata = event.task.metadata ?? {}
        history.push(...(event.task.history ?? []))
      } else if ('message' in event) {
        history.push(event.message)
      } else if ('statusUpdate' in event) {
        addStatus(event.statusUpdate)
      } else {
        addArtifact(event.artifactUpdate)
      }
    },
    task: (head: TaskHead): Task => {
      if (first === undefined || status === undefined)
        fail('OBJECT_DAMAGED', { reason: 'a task without its first event', task: head.id })
      return {
        ...first,
        status,
        metadata,
        history,
        ...(artifacts.size === 0 ? {} : { artifacts: [...artifacts.values()] }),
      }
    },
  }
}

export const stampTask = (task: Task, generation: number): Task => ({
  ...task,
  metadata: { ...task.metadata, [EXTENSIONS.generation]: generation },
})

function stamp(event: StreamResponse, generation: number): StreamResponse {
  const mark = { [EXTENSIONS.generation]: generation }
  if ('task' in event) return { task: stampTask(event.task, generation) }
  if ('statusUpdate' in event) {
    return { statusUpdate: { ...event.statusUpdate, metadata: { ...event.statusUpdate.metadata, ...mark } } }
  }
  if ('artifactUpdate' in event) {
    return { artifactUpdate: { ...event.artifactUpdate, metadata: { ...event.artifactUpdate.metadata, ...mark } } }
  }
  return event
}
