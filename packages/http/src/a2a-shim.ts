/**
 * The `tasks/send` of CSB-Delegation DEL-002, an A2A 0.1 message, read as an A2A 1.0 message and answered in its
 * own form. Nothing is granted here: authority is only put where it is looked for.
 * @clause DEL-002.2.1
 */
import { canonicalize, fail, newId } from '@csb/core'
import { isObject } from './route.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** Where A2A messages carry authority. */
export const AUTHORITY_EXTENSION = 'urn:csb:ext:authority:v1'

/**
 * @param value `params` of `tasks/send`
 * @param now ms since epoch
 * @returns `params` of SendMessage; `authority` is in the metadata of the message
 * @throws INVALID_INPUT where it is no such message, or two authorities differ
 */
export function fromTasksSend(value: unknown, now: number): JsonObject {
  if (!isObject(value) || !isObject(value['message']))
    fail('INVALID_INPUT', { errors: [{ path: '/message', message: 'is required' }] })
  const { message } = value
  const authority = oneAuthority([value['authority'], message['authority'], metadataOf(message)[AUTHORITY_EXTENSION]])
  const metadata = { ...metadataOf(message), ...(authority === undefined ? {} : { [AUTHORITY_EXTENSION]: authority }) }
  const contextId = value['sessionId']
  return {
    message: {
      messageId: typeof value['id'] === 'string' && value['id'] !== '' ? value['id'] : newId('message', now),
      ...(typeof contextId === 'string' && contextId !== '' ? { contextId } : {}),
      role: 'ROLE_USER',
      parts: Array.isArray(message['parts']) ? message['parts'].map(partOf) : [],
      ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      ...(authority === undefined ? {} : { extensions: [AUTHORITY_EXTENSION] }),
    },
  }
}

/** @param result an A2A 1.0 SendMessageResponse with a task */
export function toTasksSend(result: unknown): JsonObject {
  const task =
    isObject(result) && isObject(result['task'])
      ? result['task']
      : fail('UNSUPPORTED_OPERATION', { method: 'tasks/send' })
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

function oneAuthority(copies: readonly unknown[]): unknown {
  const [first, ...others] = copies.filter((copy) => copy !== undefined)
  // which of two was meant can not be known, so neither is taken
  if (others.some((other) => canonicalize(other) !== canonicalize(first))) {
    fail('INVALID_INPUT', { errors: [{ path: '/authority', message: 'differs from the one in the message' }] })
  }
  return first
}

const metadataOf = (message: JsonObject): JsonObject => (isObject(message['metadata']) ? message['metadata'] : {})

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
