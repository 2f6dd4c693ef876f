import { anything, assert, constantFrom, dictionary, jsonValue, oneof, property, string } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError } from '@csb/core'
import { readParams } from '../src/a2a-params.ts'
import { fromTasksSend, toTasksSend } from '../src/a2a-shim.ts'
import { createOriginCheck } from '../src/origin.ts'

const method = constantFrom(
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
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
const params = oneof(jsonValue(), dictionary(member, oneof(jsonValue(), dictionary(member, jsonValue()))))

/** Reads it, or refuses it by a code. */
function orRefused(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    expect(isNodeError(error, 'INVALID_INPUT') || isNodeError(error, 'UNSUPPORTED_OPERATION')).toBe(true)
  }
}

describe('whatever a stranger sends', () => {
  test('parameters are read or refused', () => {
    assert(property(method, params, (name, value) => orRefused(() => readParams(name, value))))
  })

  test('reading twice changes nothing', () => {
    assert(
      property(dictionary(member, jsonValue()), (value) => {
        const once = readParams('ListTasks', value)
        expect(readParams('ListTasks', once)).toEqual(once)
      }),
    )
  })

  test('tasks/send is read or refused, and any result can be told in its form', () => {
    assert(property(params, (value) => orRefused(() => fromTasksSend(value, 1))))
    assert(property(anything(), (value) => orRefused(() => toTasksSend({ task: value }))))
  })

  test('no Host that is a name of somebody else gets in', () => {
    const check = createOriginCheck({ host: '127.0.0.1' })
    assert(
      property(string(), (text) => {
        const host = `${text.replaceAll(/[^\w.-]/g, '')}.example`
        const headers = new Headers({ host })
        expect(() => check(headers)).toThrow(expect.objectContaining({ code: 'DENIED' }))
      }),
    )
  })
})
