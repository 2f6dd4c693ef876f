/**
 * The A2A 1.0.1 shapes that are kept and sent, as ProtoJSON. Types and state sets; no behaviour.
 *
 * Unknown members of foreign documents are carried along, never read.
 */

/** A JSON object of which only some members are known. */
export type JsonObject = { readonly [member: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Exactly one of `text`, `raw` (base64), `url`, `data`. */
export type Part = {
  readonly text?: string
  readonly raw?: string
  readonly url?: string
  readonly data?: unknown
  readonly filename?: string
  readonly mediaType?: string
  readonly metadata?: JsonObject
}

export type Message = {
  readonly messageId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly Part[]
  readonly contextId?: string
  readonly taskId?: string
  readonly metadata?: JsonObject
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
}

export const TASK_STATES = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
] as const

export type TaskState = (typeof TASK_STATES)[number]

/** `timestamp` is `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export type TaskStatus = { readonly state: TaskState; readonly message?: Message; readonly timestamp: string }

export type Artifact = {
  readonly artifactId: string
  readonly parts: readonly Part[]
  readonly name?: string
  readonly description?: string
  readonly metadata?: JsonObject
  readonly extensions?: readonly string[]
}

export type Task = {
  readonly id: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly artifacts?: readonly Artifact[]
  readonly history?: readonly Message[]
  readonly metadata?: JsonObject
}

export type StatusUpdate = {
  readonly taskId: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly metadata?: JsonObject
}

export type ArtifactUpdate = {
  readonly taskId: string
  readonly contextId: string
  readonly artifact: Artifact
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata?: JsonObject
}

/** One event of a task, and one item of an A2A stream: exactly one member. */
export type StreamResponse =
  | { readonly task: Task }
  | { readonly message: Message }
  | { readonly statusUpdate: StatusUpdate }
  | { readonly artifactUpdate: ArtifactUpdate }

/** True for a state that is never left. */
export const isTerminal = (state: TaskState): boolean =>
  state === 'TASK_STATE_COMPLETED' ||
  state === 'TASK_STATE_FAILED' ||
  state === 'TASK_STATE_CANCELED' ||
  state === 'TASK_STATE_REJECTED'

/** True where the task waits for its owner: to say more, or to let it in. */
export const isInterrupted = (state: TaskState): boolean =>
  state === 'TASK_STATE_INPUT_REQUIRED' || state === 'TASK_STATE_AUTH_REQUIRED'
