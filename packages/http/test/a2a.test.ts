import { request as rawRequest, type IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { NodeError, createKeyPair, until } from '@csb/core'
import { openAgentDoor } from './agent-service.ts'
import { auth, json, openDoor, post } from './fixtures.ts'

type Rpc = {
  id: unknown
  result?: Record<string, unknown>
  error?: { code: number; message: string; data: Record<string, unknown>[] }
}

const door = await openAgentDoor()
const recording = await openDoor()
const { did } = createKeyPair()
const V1 = { 'A2A-Version': '1.0' }
const AUTHORITY = 'urn:csb:ext:authority:v1'
let count = 0

const message = (text: string, more: object = {}) => ({
  messageId: `r-${++count}`,
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})
const rpc = (method: string, params: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })

async function call(body: unknown, headers: Record<string, string> = V1, path = '/a2a/echo', at = door) {
  const response = await at.request(path, post(body, headers))
  return { response, ...((await response.json()) as Rpc) }
}

/** How many there are. */
const tasks = async () => (await call(rpc('ListTasks', {}))).result?.['totalSize']

const reason = (error: Rpc['error']) => error?.data[0]?.['reason']

describe('JSON-RPC', () => {
  test('A2A JSONRPC-FMT-001 the id comes back as it was, text, number or null', async () => {
    for (const id of ['a', 7, null]) expect((await call(rpc('ListTasks', {}, id))).id).toBe(id)
  })

  test.each<[string, unknown, number, number]>([
    ['malformed JSON', '{"jsonrpc"', -32700, 400],
    ['a batch', [rpc('GetTask', { id: 'x' })], -32600, 200],
    ['a notification', { jsonrpc: '2.0', method: 'GetTask', params: { id: 'x' } }, -32600, 200],
    ['no version of JSON-RPC', { id: 1, method: 'GetTask' }, -32600, 200],
    ['no method', { jsonrpc: '2.0', id: 1 }, -32600, 200],
    ['an object as id', rpc('GetTask', {}, {}), -32600, 200],
    ['an unknown method', rpc('DropTask', {}), -32601, 200],
    ['parameters that are a list', rpc('GetTask', []), -32602, 200],
    ['no id of a task', rpc('GetTask', {}), -32602, 200],
    ['push notifications', rpc('CreateTaskPushNotificationConfig', {}), -32003, 200],
    ['an extended card', rpc('GetExtendedAgentCard', {}), -32007, 200],
    ['an unknown task', rpc('GetTask', { id: 'task_none' }), -32001, 200],
  ])('A2A CORE-ERR-001 JSONRPC-ERR-001 %s', async (_, body, code, status) => {
    const { response, error } = await call(body)
    expect({ code: error?.code, status: response.status }).toEqual({ code, status })
    expect(error?.data[0]).toMatchObject({
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      metadata: expect.any(Object),
    })
  })

  test.each<[string, RequestInit, number, number]>([
    ['a body over the bound', post(`"${'x'.repeat(8 * 1024 * 1024)}"`, V1), -32600, 413],
    ['another content type', post('{}', { 'Content-Type': 'text/plain' }), -32005, 415],
    ['a password for a token', post(rpc('GetTask', {}), { Authorization: 'Basic eDp5' }), -32010, 401],
  ])('%s has its HTTP status and is still JSON-RPC', async (_, init, code, status) => {
    const response = await door.request('/a2a/echo', init)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } })
  })

  test('a refusal of the service is 401 or 403 with our own code in ErrorInfo', async () => {
    recording.service.answers.set('agents.send', () => {
      throw new NodeError('LEASE_EXPIRED', { lease: 'sha256:x' })
    })
    const { response, error } = await call(rpc('SendMessage', { message: message('x') }), V1, '/a2a/echo', recording)
    expect(response.status).toBe(403)
    expect(error?.data[0]).toMatchObject({
      reason: 'LEASE_EXPIRED',
      domain: 'csb',
      metadata: { code: 'LEASE_EXPIRED', retryable: 'false', lease: 'sha256:x' },
    })
  })

  test('a well-read request that can not be done is 200 with an error inside', async () => {
    recording.service.answers.set('agents.cancelTask', () => {
      throw new NodeError('TASK_NOT_CANCELABLE')
    })
    const { response, error } = await call(rpc('CancelTask', { id: 't' }), V1, '/a2a/echo', recording)
    expect({ status: response.status, code: error?.code }).toEqual({ status: 200, code: -32002 })
  })

  test.each<[string, object, string]>([
    ['no message', {}, 'message'],
    ['no parts', { message: { ...message('x'), parts: [] } }, 'message.parts'],
    ['a part with two contents', { message: { ...message('x'), parts: [{ text: 'a', data: 1 }] } }, 'message.parts[0]'],
    ['junk for base64', { message: { ...message('x'), parts: [{ raw: '!' }] } }, 'message.parts[0].raw'],
    ['the role of an agent', { message: { ...message('x'), role: 'ROLE_AGENT' } }, 'message.role'],
    ['no message id', { message: { role: 'ROLE_USER', parts: [{ text: 'x' }] } }, 'message'],
    [
      'a negative history',
      { message: message('x'), configuration: { historyLength: -1 } },
      'configuration.historyLength',
    ],
  ])('A2A CORE-ERR-002 %s is told by field before anything runs', async (_, params, field) => {
    const before = await tasks()
    const { error } = await call(rpc('SendMessage', params))
    expect(error).toMatchObject({
      code: -32602,
      data: [
        { reason: 'INVALID_INPUT' },
        { fieldViolations: expect.arrayContaining([expect.objectContaining({ field })]) },
      ],
    })
    expect(await tasks()).toBe(before)
  })

  test('A2A DM-SERIAL-001 snake_case is taken, and handed on as it came: what was signed of it was signed so', async () => {
    const snake = { message_id: 's-1', context_id: 'c-1', role: 'ROLE_USER', parts: [{ text: 'x' }] }
    const params = { message: snake, configuration: { history_length: 1 } }
    expect((await call(rpc('SendMessage', params))).result).toMatchObject({ task: { contextId: 'c-1' } })
    expect(door.service.asked.at(-1)?.input).toEqual({ agent: 'echo', params })
  })

  test('an agent of another node is asked by its did', async () => {
    recording.service.answers.set('agents.getTask', () => ({ id: 't' }))
    await call(rpc('GetTask', { id: 't' }), V1, `/a2a/${did}/echo`, recording)
    expect(recording.service.asked.at(-1)).toMatchObject({
      operation: 'agents.getTask',
      input: { agent: 'echo', did, params: { id: 't' } },
    })
  })
})

describe('versions and extensions', () => {
  test.each(['1.0', '1.0.1', '1.0.99'])('A2A VER-CLIENT-002 %s is 1.0', async (version) => {
    expect((await call(rpc('ListTasks', {}), { 'A2A-Version': version })).result).toBeDefined()
  })

  test('the version may stand in the query', async () => {
    expect((await call(rpc('ListTasks', {}), {}, '/a2a/echo?A2A-Version=1.0')).result).toBeDefined()
  })

  test.each(['2.0', '0.9', 'x', '1'])('A2A VER-SERVER-002 %s is not spoken', async (version) => {
    const { error } = await call(rpc('ListTasks', {}), { 'A2A-Version': version })
    expect({ code: error?.code, reason: reason(error) }).toEqual({ code: -32009, reason: 'VERSION_NOT_SUPPORTED' })
  })

  test('A2A VER-SERVER-003 no version is 0.3, where the methods of 1.0 do not exist', async () => {
    const { error } = await call(rpc('SendMessage', { message: message('x') }), {})
    expect(error).toMatchObject({
      code: -32601,
      data: [{ metadata: { hint: expect.stringContaining('A2A-Version') } }],
    })
    const old = { kind: 'message', messageId: 'old-1', role: 'user', parts: [{ kind: 'text', text: 'x' }] }
    expect((await call(rpc('message/send', { message: old }), {})).result).toMatchObject({
      kind: 'task',
      status: { state: 'completed' },
    })
  })

  test('0.3 does not let through what 1.0 refuses', async () => {
    const old = { kind: 'message', messageId: 'old-2', role: 'user', parts: [] }
    const before = await tasks()
    expect((await call(rpc('message/send', { message: old }), {})).error?.code).toBe(-32602)
    expect(await tasks()).toBe(before)
    expect((await call(rpc('tasks/get', { id: 'task_none' }), {})).error?.code).toBe(-32001)
  })

  test('the header A2A-Extensions comes back for what took effect, on answers and streams alike', async () => {
    const headers = { ...V1, 'A2A-Extensions': `urn:other, ${AUTHORITY}` }
    const unary = await call(rpc('SendMessage', { message: message('x') }), headers)
    expect(unary.response.headers.get('a2a-extensions')).toBe(AUTHORITY)
    const stream = await door.request(
      '/a2a/echo',
      post(rpc('SendStreamingMessage', { message: message('x') }), headers),
    )
    expect(stream.headers.get('a2a-extensions')).toBe(AUTHORITY)
    await stream.text()
    const refused = { task: { id: 't', metadata: { [AUTHORITY]: { accepted: false } } } }
    recording.service.answers.set('agents.send', () => refused)
    const downgraded = await call(rpc('SendMessage', { message: message('x') }), headers, '/a2a/echo', recording)
    expect(downgraded.response.headers.get('a2a-extensions')).toBeNull()
  })
})

describe('tasks/send of the CSB document', () => {
  const authority = { delegated_by: '用户', scope: ['csb-protocol'], level: 'execute', issued_at: 1 }
  const params = (more: object = {}) => ({
    id: `task-${++count}`,
    sessionId: 'session-1',
    message: { role: 'agent', parts: [{ type: 'text', text: '请完成' }] },
    ...more,
  })

  test('DEL-002.2.1 it is handed on as it came, and the answer has the old form', async () => {
    const sent = params({ authority })
    const { result } = await call(rpc('tasks/send', sent), {})
    expect(door.service.asked.at(-1)).toMatchObject({
      operation: 'agents.tasksSend',
      input: { agent: 'echo', params: sent },
    })
    expect(result).toMatchObject({
      sessionId: 'session-1',
      status: { state: 'completed' },
      artifacts: [{ parts: [{ type: 'text', text: 'echo: 请完成' }], index: 0 }],
    })
  })

  test('what is no such message is refused', async () => {
    expect((await call(rpc('tasks/send', {}), {})).error?.code).toBe(-32602)
    expect((await call(rpc('tasks/send', []), {})).error?.code).toBe(-32602)
  })
})

/** The raw response, so that a test can drop it in the middle. */
function open(body: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = rawRequest(
      { port: door.port, host: '127.0.0.1', path: '/a2a/echo', method: 'POST', headers: { ...json, ...auth, ...V1 } },
      resolve,
    )
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}

describe('streams', () => {
  test('A2A JSONRPC-SSE-001 each event is a whole JSON-RPC response, with the generation as its id', async () => {
    const response = await door.request(
      '/a2a/echo',
      post(rpc('SendStreamingMessage', { message: message('x') }, 'q'), V1),
    )
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    const blocks = (await response.text()).split('\n\n').filter((block) => block.includes('data: '))
    const ids = blocks.map((block) => Number(/^id: (\d+)$/m.exec(block)?.[1]))
    expect(ids).toEqual(ids.map((_, index) => index + 1))
    for (const block of blocks)
      expect(JSON.parse(block.slice(block.indexOf('data: ') + 6))).toMatchObject({
        jsonrpc: '2.0',
        id: 'q',
        result: expect.any(Object),
      })
  })

  test('what fails at once is a plain error, not a stream', async () => {
    const { response, error } = await call(rpc('SubscribeToTask', { id: 'task_none' }))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(reason(error)).toBe('TASK_NOT_FOUND')
  })

  test('what fails later is the last event', async () => {
    recording.service.flows.set('agents.stream', async function* () {
      yield { task: { id: 't' } }
      throw new NodeError('PEER_UNREACHABLE')
    })
    const response = await recording.request(
      '/a2a/echo',
      post(rpc('SendStreamingMessage', { message: message('x') }), V1),
    )
    const blocks = (await response.text()).split('\n\n').filter((block) => block !== '')
    expect(blocks).toHaveLength(2)
    expect(blocks[1]).toContain('PEER_UNREACHABLE')
  })

  test('silence is filled, and a reader that goes ends its source but not the task', async () => {
    const started = await call(
      rpc('SendMessage', { message: message('hang'), configuration: { returnImmediately: true } }),
    )
    const { id } = (started.result?.['task'] ?? {}) as { id?: string }
    const stream = await open(rpc('SubscribeToTask', { id }))
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    stream.on('error', () => undefined)
    await until(() => text.includes(': keep-alive'), 30_000, 'a heartbeat')
    const { signal } = door.service.asked.at(-1)?.options ?? {}
    expect(signal?.aborted).toBe(false)
    stream.destroy()
    await until(() => signal?.aborted === true, 30_000, 'the source is told')
    expect((await call(rpc('GetTask', { id }))).result).toMatchObject({ id, status: { state: 'TASK_STATE_WORKING' } })
  })

  test('a source that gives quickly is not read ahead of a reader that does not read', async () => {
    let given = 0
    recording.service.flows.set('agents.subscribe', async function* (_, { signal }) {
      for (; given < 5_000; given++) {
        if (signal?.aborted === true) return
        yield { statusUpdate: { taskId: 't', text: 'x'.repeat(16_384) } }
      }
    })
    const sent = await new Promise<IncomingMessage>((resolve) => {
      const options = {
        port: recording.port,
        host: '127.0.0.1',
        path: '/a2a/echo',
        method: 'POST',
        headers: { ...json, ...V1 },
      }
      rawRequest(options, resolve).end(JSON.stringify(rpc('SubscribeToTask', { id: 't' })))
    })
    sent.pause()
    let before = -1
    await until(
      () => {
        const isStill = given > 0 && given === before
        before = given
        return isStill
      },
      30_000,
      'the source stands still',
      300,
    )
    expect(given).toBeLessThan(5_000)
    sent.destroy()
  })
})

describe('cards', () => {
  test('A2A CARD-CACHE-001 CARD-CACHE-002 a card has an ETag that holds, and is not sent twice', async () => {
    const first = await door.request('/.well-known/agent-card.json')
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toMatch(/max-age=\d+/)
    expect((await door.request('/agents/echo/agent-card.json')).headers.get('etag')).toBe(etag)
    const again = await door.request('/.well-known/agent-card.json', { headers: { 'If-None-Match': `"x", W/${etag}` } })
    expect({ status: again.status, body: await again.text() }).toEqual({ status: 304, body: '' })
  })

  test('a card of an agent on another node is asked for by its did and kept from shared caches', async () => {
    recording.service.answers.set('agents.card', () => ({ name: 'far' }))
    const response = await recording.request(`/agents/${did}/echo/agent-card.json`, { headers: auth })
    expect(response.headers.get('cache-control')).toMatch(/^private/)
    expect(recording.service.asked.at(-1)).toMatchObject({
      operation: 'agents.card',
      caller: { kind: 'bearer' },
      input: { agent: 'echo', did },
    })
  })

  test('no card is a problem', async () => {
    recording.service.answers.set('agents.card', () => {
      throw new NodeError('NOT_FOUND', { agent: 'x' })
    })
    const response = await recording.request('/agents/x/agent-card.json')
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 404,
      body: { code: 'NOT_FOUND' },
    })
  })
})
