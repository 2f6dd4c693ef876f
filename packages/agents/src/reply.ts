/**
 * Turns what a running agent tells into what happens to its task: A2A status and artifact updates.
 *
 * What the agent wrote to stderr, and details of errors, stay on this node where the task's owner may be a stranger.
 */
import { EXTENSIONS, LIMITS, toNodeError } from '@csb/core'
import type { JsonObject, Part } from './a2a.ts'
import type { AgentEvent, AgentResult } from './output.ts'
import { agentMessage, type TaskUpdate } from './tasks.ts'

export type Reply = {
  /** @param now ms since epoch */
  updates(event: AgentEvent, now: number): TaskUpdate[]
}

/** One per run. Texts become one artifact `reply` in chunks; the result completes the task. */
export function createReply(): Reply {
  let chunks = 0
  let artifacts = 0

  const artifactOf = (given: JsonObject): TaskUpdate => {
    artifacts++
    const { artifactId, name, description, parts, text, data, metadata } = given
    return {
      artifactUpdate: {
        artifact: {
          artifactId: typeof artifactId === 'string' && artifactId !== '' ? artifactId : `artifact-${artifacts}`,
          ...(typeof name === 'string' ? { name } : {}),
          ...(typeof description === 'string' ? { description } : {}),
          parts: partsOf(parts, text, data),
          ...(isObject(metadata) ? { metadata } : {}),
        },
        ...(given['append'] === true ? { append: true } : {}),
        lastChunk: given['lastChunk'] !== false,
      },
    }
  }

  const resultOf = ({ text, data, files = [] }: AgentResult): TaskUpdate[] => {
    const updates: TaskUpdate[] = []
    if (text !== undefined) {
      updates.push({ artifactUpdate: { artifact: { artifactId: 'reply', parts: [{ text }] }, lastChunk: true } })
    }
    if (data !== undefined)
      updates.push({ artifactUpdate: { artifact: { artifactId: 'data', parts: [{ data }] }, lastChunk: true } })
    files.forEach(({ path, text: content }, index) => {
      const artifact = { artifactId: `file-${index + 1}`, name: path, parts: [{ text: content, filename: path }] }
      updates.push({ artifactUpdate: { artifact, lastChunk: true } })
    })
    return [...updates, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }]
  }

  return {
    updates: (event, now) => {
      if (event.kind === 'status')
        return [{ statusUpdate: { status: { state: 'TASK_STATE_WORKING', message: agentMessage(event.text, now) } } }]
      if (event.kind === 'artifact') return [artifactOf(event.artifact)]
      if (event.kind === 'result') return resultOf(event.result)
      // between the node and whoever pays
      if (event.kind === 'usage') return []
      chunks++
      return [
        {
          artifactUpdate: {
            artifact: { artifactId: 'reply', parts: [{ text: event.text }] },
            ...(chunks > 1 ? { append: true } : {}),
            lastChunk: false,
          },
        },
      ]
    },
  }
}

/** What of an error may be told to the task's own people: how the command ended, no ids and no grants. */
const TOLD = ['reason', 'cause', 'exit', 'signal', 'timeoutMs', 'outputBytes', 'events'] as const

/**
 * What happens to a task whose run ended in an error: its code and sentence, nothing else of it.
 * @param now ms since epoch
 * @param shown `details`: the task is of this node's own people, who are told how its command ended and the last
 *   {@link LIMITS.agentErrorShownChars} of its stderr
 */
export function failureUpdate(error: unknown, now: number, shown: { readonly details?: boolean } = {}): TaskUpdate {
  const { code, message, row, details } = toNodeError(error)
  const told = shown.details === true ? { details: toldOf(details) } : {}
  return {
    statusUpdate: {
      status: { state: 'TASK_STATE_FAILED', message: agentMessage(message, now) },
      metadata: { [EXTENSIONS.error]: { code, retryable: row.retryable, ...told } },
    },
  }
}

/**
 * What happens to a task whose run was ended since what it rested on ended: it is canceled, and says why.
 * @param why a word of the closed list of reasons
 * @param now ms since epoch
 */
export function endedUpdate(error: unknown, why: string, now: number): TaskUpdate {
  const { code } = toNodeError(error)
  return {
    statusUpdate: {
      status: {
        state: 'TASK_STATE_CANCELED',
        message: agentMessage(`ended, its authority does not hold: ${why}`, now),
      },
      metadata: { [EXTENSIONS.error]: { code, retryable: false, reason: why } },
    },
  }
}

function toldOf(details: Readonly<Record<string, unknown>>): JsonObject {
  const told = TOLD.flatMap((name) => {
    const value = details[name]
    return typeof value === 'string' || typeof value === 'number' ? [[name, value] as const] : []
  })
  const { stderr } = details
  const tail = typeof stderr === 'string' ? stderr.trim().slice(-LIMITS.agentErrorShownChars) : ''
  return { ...Object.fromEntries(told), ...(tail === '' ? {} : { stderr: tail.toWellFormed() }) }
}

/** A part has exactly one content; what the agent wrote otherwise becomes data as it is. */
function partsOf(parts: unknown, text: unknown, data: unknown): Part[] {
  const list = Array.isArray(parts) ? (parts as readonly unknown[]) : []
  const read = list.map((part): Part => (isPart(part) ? part : { data: part }))
  if (typeof text === 'string') read.push({ text })
  if (data !== undefined) read.push({ data })
  return read.length === 0 ? [{ text: '' }] : read
}

function isPart(value: unknown): value is Part {
  if (!isObject(value)) return false
  const contents = ['text', 'raw', 'url', 'data'].filter((member) => Object.hasOwn(value, member))
  return contents.length === 1 && (contents[0] === 'data' || typeof value[contents[0] ?? ''] === 'string')
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
