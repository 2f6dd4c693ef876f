/**
 * The `tasks/send` of CSB-Delegation DEL-002, an A2A 0.1 message, read as an A2A 1.0 message and answered in its
 * own form. Nothing is granted here: authority is judged where it stands, on the body as it came.
 * @clause DEL-002.2.1
 */
import { fail, newId } from '@csb/core'
import { isObject, type JsonObject } from './a2a.ts'

/** The method, as it is spelled. */
export const TASKS_SEND = 'tasks/send'

/**
 * @param value `params` of `tasks/send`
 * @param now ms since epoch
 * @returns `params` of SendMessage, without the authority that stands beside the message
 * @throws INVALID_INPUT where it is no such message
 */
export function fromTasksSend(value: unknown, now: number): JsonObject {
  if (!isObject(value) || !isObject(value['message']))
    fail('INVALID_INPUT', { errors: [{ path: '/message', message: 'is required' }] })
  const { message } = value
  const { metadata } = message
  const contextId = value['sessionId']
  return {
    message: {
      messageId: typeof value['id'] === 'string' && value['id'] !== '' ? value['id'] : newId('message', now),
      ...(typeof contextId === 'string' && contextId !== '' ? { contextId } : {}),
      role: 'ROLE_USER',
      parts: Array.isArray(message['parts']) ? message['parts'].map(partOf) : [],
      ...(isObject(metadata) ? { metadata } : {}),
    },
  }
}

/** @param result an A2A 1.0 SendMessageResponse with a task */
export function toTasksSend(result: unknown): JsonObject {
  const task =
    isObject(result) && isObject(result['task'])
      ? result['task']
      : fail('UNSUPPORTED_OPERATION', { method: TASKS_SEND })
  const status = isObject(task['status']) ? task['status'] : {}
  const artifacts = Array.isArray(task['artifacts']) ? (task['artifacts'] as readonly unknown[]) : []
  return {
    id: task['id'],
    sessionId: task['contextId'],
    status: {
      state: oldState(status['state']),
      ...(isObject(status['message']) ? { message: oldMessage(status['message']) } : {}),
      timestamp: status['timestamp'],
    },
    artifacts: artifacts.filter(isObject).map((artifact, index) => ({
      ...(typeof artifact['name'] === 'string' ? { name: artifact['name'] } : {}),
      parts: oldParts(artifact['parts']),
      index,
    })),
    ...(isObject(task['metadata']) ? { metadata: task['metadata'] } : {}),
  }
}

/** `{type: 'text' | 'data' | 'file'}` as one content; what is none of them stays and is refused later. */
function partOf(part: unknown): unknown {
  if (!isObject(part)) return part
  if (part['type'] === 'text') return { text: part['text'] }
  if (part['type'] === 'data') return { data: part['data'] }
  if (part['type'] !== 'file' || !isObject(part['file'])) return part
  const { bytes, uri, name, mimeType } = part['file']
  return {
    ...(bytes === undefined ? { url: uri } : { raw: bytes }),
    ...(typeof name === 'string' ? { filename: name } : {}),
    ...(typeof mimeType === 'string' ? { mediaType: mimeType } : {}),
  }
}

const oldState = (state: unknown): string =>
  typeof state === 'string'
    ? state
        .replace(/^TASK_STATE_/, '')
        .toLowerCase()
        .replaceAll('_', '-')
    : 'unknown'

const oldMessage = (message: JsonObject): JsonObject => ({
  role: message['role'] === 'ROLE_AGENT' ? 'agent' : 'user',
  parts: oldParts(message['parts']),
})

function oldParts(parts: unknown): JsonObject[] {
  const list = Array.isArray(parts) ? (parts as readonly unknown[]) : []
  return list.filter(isObject).map(({ text, data, raw, url, filename, mediaType }) => {
    if (text !== undefined) return { type: 'text', text }
    if (data !== undefined) return { type: 'data', data: isObject(data) ? data : { value: data } }
    return {
      type: 'file',
      file: { ...(raw === undefined ? { uri: url } : { bytes: raw }), name: filename, mimeType: mediaType },
    }
  })
}
