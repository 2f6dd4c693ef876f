import { describe, expect, test } from 'vitest'
import {
  ERRORS,
  NodeError,
  createFakeClock,
  deadline,
  delay,
  errorFromJSON,
  fail,
  isNodeError,
  toNodeError,
  until,
} from '@csb/core'

describe('the error table', () => {
  const rows = Object.entries(ERRORS)

  test('every JSON-RPC code and every sentence stands once', () => {
    expect(new Set(rows.map(([, { rpc }]) => rpc)).size).toBe(rows.length)
    expect(new Set(rows.map(([, { message }]) => message)).size).toBe(rows.length)
  })

  test.each(rows)('%s has a status, an exit code and a sentence', (code, { status, exit, message }) => {
    expect(code).toMatch(/^[A-Z][A-Z_]+$/)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(600)
    expect(exit).toBeGreaterThan(0)
    expect(message).toMatch(/^[A-Za-z].*\.$/)
  })

  test('an error crosses a border and comes back with its code and details', () => {
    const error = new NodeError('SCOPE_EXCEEDED', { field: 'paths' })
    const back = errorFromJSON(JSON.parse(JSON.stringify(error)))
    expect(back).toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'paths' }, row: ERRORS.SCOPE_EXCEEDED })
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'SCOPE_EXCEEDED',
      message: ERRORS.SCOPE_EXCEEDED.message,
      retryable: false,
      details: { field: 'paths' },
    })
  })

  test('what is no error of ours on the wire is INTERNAL', () => {
    for (const value of [null, 7, {}, { code: 'toString' }, { code: 'constructor' }, { code: 5 }, 'x']) {
      expect(errorFromJSON(value).code).toBe('INTERNAL')
    }
    expect(errorFromJSON({ code: 'BUSY', details: 'x' })).toMatchObject({ code: 'BUSY', details: {} })
  })

  test('known errors of the disk and the runtime get their code, others are INTERNAL and keep their cause', () => {
    const cause = new Error('IO error: /x: No space left on device')
    expect(toNodeError(new Error('batch failed', { cause })).code).toBe('DISK_FULL')
    expect(toNodeError(Object.assign(new Error('x'), { code: 'ENOSPC' })).code).toBe('DISK_FULL')
    expect(toNodeError(Object.assign(new Error('x'), { code: 'EADDRINUSE' })).code).toBe('PORT_IN_USE')
    expect(
      toNodeError(AbortSignal.timeout(0).reason ?? Object.assign(new Error('x'), { name: 'TimeoutError' })).code,
    ).toBe('TIMEOUT')
    const foreign = new TypeError('x is not a function')
    expect(toNodeError(foreign)).toMatchObject({ code: 'INTERNAL', cause: foreign })
    for (const value of [undefined, null, 'text', 7]) expect(toNodeError(value).code).toBe('INTERNAL')
    const own = new NodeError('BUSY')
    expect(toNodeError(own)).toBe(own)
  })

  test('fail throws, and is told apart by code', () => {
    try {
      fail('BUSY', { waiting: 3 })
    } catch (error) {
      expect(isNodeError(error)).toBe(true)
      expect(isNodeError(error, 'BUSY')).toBe(true)
      expect(isNodeError(error, 'TIMEOUT')).toBe(false)
      expect(isNodeError(new Error('x'))).toBe(false)
    }
    expect.assertions(4)
  })
})

describe('time', () => {
  test('a fake clock stands still until told', () => {
    const clock = createFakeClock(1000)
    clock.advance(5)
    expect(clock.now()).toBe(1005)
    clock.set(1)
    expect(clock.now()).toBe(1)
  })

  test('a delay ends early with the reason it was aborted for', async () => {
    const controller = new AbortController()
    const waiting = delay(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(delay(60_000, AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
    await expect(delay(1)).resolves.toBeUndefined()
  })

  test('a deadline fires with its parent or by itself', async () => {
    const controller = new AbortController()
    const signal = deadline(60_000, controller.signal)
    controller.abort()
    expect(signal.aborted).toBe(true)
    const own = deadline(1)
    await until(() => own.aborted, 30_000, 'the deadline fires', 1)
  })

  test('until gives the first answer, or says what it waited for', async () => {
    let asked = 0
    expect(await until(() => (++asked > 3 ? asked : undefined), 30_000, 'four', 1)).toBe(4)
    await expect(until(() => false, 5, 'never', 1)).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})
