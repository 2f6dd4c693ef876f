import { anything, assert, constantFrom, dictionary, jsonValue, oneof, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError } from '@csb/core'
import { readRequest, toTasksSend } from '../src/index.ts'

const method = constantFrom(
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'tasks/send',
  'whatever',
)
const member = constantFrom(
  'message',
  'configuration',
  'parts',
  'messageId',
  'message_id',
  'role',
  'id',
  'metadata',
  'text',
  'history_length',
)
const params = dictionary(member, oneof(jsonValue(), dictionary(member, jsonValue())))

/** Reads it, or refuses it by a code. */
function orRefused(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    expect(isNodeError(error, 'INVALID_INPUT') || isNodeError(error, 'UNSUPPORTED_OPERATION')).toBe(true)
  }
}

describe('whatever a stranger sends', () => {
  test('it is read or refused, and what was read is read as it is', () => {
    assert(
      property(method, params, (name, value) =>
        orRefused(() => {
          const once = readRequest({ method: name, params: value }, 1)
          expect(readRequest(once, 1)).toEqual(once)
        }),
      ),
    )
  })

  test('any result can be told in the form of tasks/send', () => {
    assert(property(anything(), (value) => orRefused(() => toTasksSend({ task: value }))))
  })
})

describe('other spellings', () => {
  test('A2A DM-SERIAL-001 snake_case is read, and what is below metadata and data stays as it is', () => {
    const kept = { some_key: { context_id: 1 } }
    const snake = {
      message_id: 's-1',
      context_id: 'c-1',
      role: 'ROLE_USER',
      parts: [{ data: kept, media_type: 'application/json' }],
      metadata: kept,
    }
    const sent = { message: snake, configuration: { history_length: 1 } }
    expect(readRequest({ method: 'SendMessage', params: sent }, 1)).toEqual({
      method: 'SendMessage',
      params: {
        message: {
          messageId: 's-1',
          contextId: 'c-1',
          role: 'ROLE_USER',
          parts: [{ data: kept, mediaType: 'application/json' }],
          metadata: kept,
        },
        configuration: { historyLength: 1 },
      },
    })
  })

  test('DEL-002.2.1 tasks/send is read as a message; its files and values as parts, what is neither is refused', () => {
    const asked = (parts: unknown) => ({
      id: 'task-1',
      sessionId: 'session-1',
      message: { role: 'agent', parts },
      authority: { delegated_by: '用户' },
    })
    const file = { bytes: 'aGk=', name: 'a.txt', mimeType: 'text/plain' }
    const parts = [
      { type: 'text', text: '请完成' },
      { type: 'file', file },
      { type: 'data', data: { n: 1 } },
    ]
    expect(readRequest({ method: 'tasks/send', params: asked(parts) }, 1)).toEqual({
      method: 'SendMessage',
      params: {
        message: {
          messageId: 'task-1',
          contextId: 'session-1',
          role: 'ROLE_USER',
          parts: [{ text: '请完成' }, { raw: 'aGk=', filename: 'a.txt', mediaType: 'text/plain' }, { data: { n: 1 } }],
        },
      },
    })
    const odd = { method: 'tasks/send', params: asked([{ type: 'odd' }]) }
    expect(() => readRequest(odd, 1)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
    expect(() => readRequest({ method: 'tasks/send', params: {} }, 1)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
  })
})
