import { describe, expect, test } from 'vitest'
import { NodeError } from '@csb/core'
import { openAgentDoor } from './agent-service.ts'
import { auth, openDoor, post } from './fixtures.ts'

const door = await openAgentDoor()
const recording = await openDoor()

async function invoke(body: unknown, headers: Record<string, string> = {}, capability = 'echo.say') {
  const response = await door.request(`/invoke/${capability}`, post(body, headers))
  return { status: response.status, ...((await response.json()) as Record<string, unknown>) }
}

describe('capabilities', () => {
  test('IOP-3 what agents can do is listed in the form of the document', async () => {
    const response = await door.request('/capabilities', { headers: auth })
    expect(await response.json()).toMatchObject({
      agent_id: 'echo',
      agent_name: 'Echo',
      protocol_version: '1.0',
      capabilities: [{ id: 'echo.say', name: 'Say', description: 'says it again', evidence_required: false }],
    })
  })

  test('IOP-4.1 a call is a message to the agent, and its output comes back', async () => {
    const response = await door.request(
      '/invoke/echo.say',
      post(
        { input: { n: 1 }, caller_info: { agent_id: 'c' }, options: { timeout_sec: 5 } },
        { 'X-Request-ID': 'call-1' },
      ),
    )
    expect(await response.json()).toEqual({
      status: 'success',
      request_id: 'call-1',
      output: { text: 'echo: {"n":1}', n: 1 },
      version: '1.0',
    })
    expect(door.service.asked.at(-1)).toMatchObject({
      operation: 'agents.send',
      input: { agent: 'echo', params: { message: { messageId: 'call-1', parts: [{ data: { n: 1 } }] } } },
    })
  })

  test('IOP-4.2 the same request id is the same call', async () => {
    const first = await invoke({ input: { n: 2 } }, { 'X-Request-ID': 'call-2' })
    expect(await invoke({ input: { n: 2 } }, { 'X-Request-ID': 'call-2' })).toEqual(first)
    expect(await invoke({ input: { n: 3 } }, { 'X-Request-ID': 'call-2' })).toMatchObject({
      status: 'error',
      error: { code: 'REPLAYED' },
    })
  })

  test.each(['2.0', '0.9', 'x'])('IOP-5 version %s is refused', async (version) => {
    const found = await invoke({ input: {} }, { 'X-API-Version': version })
    expect(found).toMatchObject({ status: 'error', error: { code: 'VERSION_MISMATCH', retryable: false } })
  })

  test('IOP-5 another minor version is taken', async () => {
    expect(await invoke({ input: { n: 1 } }, { 'X-API-Version': '1.7' })).toMatchObject({ status: 'success' })
  })

  test.each<[string, unknown, string, string]>([
    ['an unknown capability', { input: {} }, 'none', 'NOT_FOUND'],
    ['no input', {}, 'echo.say', 'INVALID_INPUT'],
    ['a timeout out of range', { input: {}, options: { timeout_sec: 0 } }, 'echo.say', 'INVALID_INPUT'],
    ['malformed JSON', '{', 'echo.say', 'MALFORMED'],
  ])('IOP-4.3 %s is an error in the form of the document', async (_, body, capability, code) => {
    const response = await door.request(`/invoke/${capability}`, post(body, { 'X-Request-ID': 'r' }))
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(await response.json()).toMatchObject({
      status: 'error',
      request_id: 'r',
      error: { code, retryable: expect.any(Boolean) },
    })
  })

  test.each<[string, object, string]>([
    ['an agent that failed', { state: 'TASK_STATE_FAILED' }, 'AGENT_FAILED'],
    ['an agent that asks for more', { state: 'TASK_STATE_INPUT_REQUIRED' }, 'UNSUPPORTED_OPERATION'],
    ['an agent that does not take it', { state: 'TASK_STATE_REJECTED' }, 'DENIED'],
    ['a task that is not done', { state: 'TASK_STATE_WORKING' }, 'TIMEOUT'],
  ])('IOP-4.3 %s is an error', async (_, status, code) => {
    recording.service.answers.set('agents.list', () => ({
      items: [{ id: 'a', name: 'A', skills: [{ id: 's', name: 'S', description: 'd' }] }],
    }))
    recording.service.answers.set('agents.send', () => ({ task: { id: 't', status } }))
    const response = await recording.request('/invoke/s', post({ input: {} }))
    expect(await response.json()).toMatchObject({ status: 'error', error: { code } })
  })

  test('IOP-4.3 the code an agent failed with is kept', async () => {
    recording.service.answers.set('agents.send', () => ({
      task: {
        status: { state: 'TASK_STATE_FAILED' },
        metadata: { 'urn:csb:ext:error:v1': { code: 'AGENT_TIMEOUT', retryable: true } },
      },
    }))
    const response = await recording.request('/invoke/s', post({ input: {} }))
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 504,
      body: { error: { code: 'AGENT_TIMEOUT', retryable: true } },
    })
  })

  test('IOP-4.3 the caller is answered at its deadline', async () => {
    recording.service.answers.set('agents.send', () => new Promise(() => undefined))
    const response = await recording.request('/invoke/s', post({ input: {}, options: { timeout_sec: 0.05 } }))
    expect(await response.json()).toMatchObject({ status: 'error', error: { code: 'TIMEOUT', retryable: true } })
  })

  test('IOP-7 without a lease it is refused in the same form', async () => {
    recording.service.answers.set('agents.list', () => {
      throw new NodeError('LEASE_REQUIRED')
    })
    const response = await recording.request('/capabilities')
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ status: 'error', error: { code: 'LEASE_REQUIRED' } })
  })
})
