import { describe, expect, test } from 'vitest'
import { createKeyPair, NodeError } from '@csb/core'
import { TOKEN, auth, json, openDoor, post } from './fixtures.ts'

const door = await openDoor()
const { did } = createKeyPair()
const home = 'home_aaaaaaaaaaaaaaaaaaaaaaaaaa'
const id = 'mem_1700000000000_abc'

async function askedBy(path: string, init: RequestInit = {}) {
  door.service.asked.length = 0
  const response = await door.request(path, init)
  expect(door.service.asked).toHaveLength(1)
  const [asked] = door.service.asked
  return { status: response.status, operation: asked?.operation, input: asked?.input, caller: asked?.caller, response }
}

describe('each route is one call', () => {
  test.each<[string, string, unknown, number, string, unknown]>([
    ['GET', '/v1/status', undefined, 200, 'node.status', {}],
    ['POST', '/v1/memory', { entry: { content: 'a' }, home }, 201, 'memory.create', { entry: { content: 'a' }, home }],
    ['POST', `/v1/memory?home=${home}`, { content: 'a' }, 201, 'memory.create', { entry: { content: 'a' }, home }],
    [
      'POST',
      '/v1/memory',
      { content: 'a', label: 'sealed:owner' },
      201,
      'memory.create',
      { entry: { content: 'a' }, label: 'sealed:owner' },
    ],
    [
      'POST',
      '/v1/memory/batch',
      [{ content: 'a', label: 'sealed:owner' }],
      201,
      'memory.batch',
      { items: [{ entry: { content: 'a' }, label: 'sealed:owner' }] },
    ],
    ['POST', '/v1/memory/batch', [{ content: 'a' }], 201, 'memory.batch', { items: [{ entry: { content: 'a' } }] }],
    ['POST', '/v1/memory/batch', { items: [] }, 201, 'memory.batch', { items: [] }],
    [
      'GET',
      '/v1/memory?level=hot&type=lesson&limit=10&cursor=x',
      undefined,
      200,
      'memory.list',
      { level: 'hot', type: 'lesson', limit: 10, cursor: 'x' },
    ],
    ['GET', '/v1/memory?include_deleted=true', undefined, 200, 'memory.list', { include_deleted: true }],
    ['GET', `/v1/memory/${id}?home=${home}`, undefined, 200, 'memory.get', { id, home }],
    ['DELETE', `/v1/memory/${id}?reason=old`, undefined, 200, 'memory.delete', { id, reason: 'old' }],
    ['POST', `/v1/memory/${id}/restore`, undefined, 200, 'memory.restore', { id }],
    ['DELETE', `/v1/memory/${id}/hard`, undefined, 200, 'memory.forget', { ids: [id] }],
    [
      'DELETE',
      `/v1/memory/${id},${id}9/hard?reason=x`,
      undefined,
      200,
      'memory.forget',
      { ids: [id, `${id}9`], reason: 'x' },
    ],
    ['POST', '/v1/memory/forget', { ids: [id] }, 200, 'memory.forget', { ids: [id] }],
    ['GET', '/v1/files/refs', undefined, 200, 'files.refs', {}],
    ['GET', '/v1/files/log', undefined, 200, 'files.log', { branch: 'main' }],
    ['GET', '/v1/files/log/runs/7?limit=3', undefined, 200, 'files.log', { branch: 'runs/7', limit: 3 }],
    ['GET', '/v1/files/log/runs%2F7', undefined, 200, 'files.log', { branch: 'runs/7' }],
    [
      'GET',
      '/v1/files/tree?branch=memory&path=notes',
      undefined,
      200,
      'files.list',
      { branch: 'memory', path: 'notes' },
    ],
    ['GET', '/v1/files/file?path=a%20b.md', undefined, 200, 'files.read', { branch: 'main', path: 'a b.md' }],
    [
      'PUT',
      '/v1/files/file',
      { branch: 'runs/1', path: 'a', text: 'x' },
      200,
      'files.write',
      { branch: 'runs/1', path: 'a', text: 'x' },
    ],
    ['POST', '/v1/files/branches', { branch: 'runs/1' }, 201, 'files.branch', { branch: 'runs/1' }],
    ['DELETE', '/v1/files/branches/runs/1', undefined, 200, 'files.removeBranch', { branch: 'runs/1' }],
    ['GET', '/v1/files/diff?from=main&to=runs/1', undefined, 200, 'files.diff', { from: 'main', to: 'runs/1' }],
    ['GET', '/v1/files/merge?from=runs/1&into=main', undefined, 200, 'files.preview', { from: 'runs/1', into: 'main' }],
    ['POST', '/v1/files/merge', { from: 'a', into: 'b' }, 200, 'files.merge', { from: 'a', into: 'b' }],
    ['POST', '/v1/files/snapshots', { name: 'x' }, 201, 'files.snapshot', { name: 'x' }],
    ['GET', '/v1/files/recycle?limit=5', undefined, 200, 'files.recycle', { limit: 5 }],
    ['POST', '/v1/files/restore', { branch: 'a', path: 'b' }, 200, 'files.restore', { branch: 'a', path: 'b' }],
    ['POST', '/v1/files/gc', {}, 200, 'files.gc', {}],
    ['GET', '/v1/files/fsck', undefined, 200, 'files.fsck', {}],
    ['GET', '/v1/record?limit=5&after=7', undefined, 200, 'record.tail', { limit: 5, after: 7 }],
    ['GET', '/v1/gate?all=true', undefined, 200, 'gate.list', { all: true }],
    ['GET', '/v1/gate/gate_1?page=2', undefined, 200, 'gate.show', { card: 'gate_1', page: 2 }],
    ['POST', '/v1/gate/g1/approve', { gate: {} }, 200, 'gate.approve', { card: 'g1', approval: { gate: {} } }],
    ['POST', '/v1/gate/g1/reject', { approval: {}, card: 'g2' }, 200, 'gate.reject', { card: 'g1', approval: {} }],
    ['PUT', `/v1/memory/${id}/label`, { label: 'public:owner' }, 200, 'memory.label', { id, label: 'public:owner' }],
    [
      'PUT',
      '/v1/files/label',
      { branch: 'runs/1', path: 'a', label: 'public:owner' },
      200,
      'files.label',
      { branch: 'runs/1', path: 'a', label: 'public:owner' },
    ],
    ['GET', '/v1/record/verify', undefined, 200, 'record.verify', {}],
    ['GET', '/v1/record/explain/abcd', undefined, 200, 'record.explain', { commit: 'abcd' }],
    ['GET', '/v1/record/prove/12', undefined, 200, 'record.prove', { seq: 12 }],
    ['GET', '/v1/agents', undefined, 200, 'agents.list', {}],
    ['POST', '/v1/agents', { id: 'echo' }, 201, 'agents.attach', { id: 'echo' }],
    ['GET', '/v1/agents/find?capability=math', undefined, 200, 'agents.find', { capability: 'math' }],
    ['DELETE', '/v1/agents/echo', undefined, 200, 'agents.detach', { id: 'echo' }],
    ['POST', '/v1/agents/echo/send', { params: {}, did }, 200, 'agents.send', { agent: 'echo', params: {}, did }],
    ['GET', '/v1/peers', undefined, 200, 'peers.list', {}],
    ['POST', '/v1/peers', { address: '/ip4/1.2.3.4/tcp/1' }, 200, 'peers.dial', { address: '/ip4/1.2.3.4/tcp/1' }],
    ['GET', '/v1/grants', undefined, 200, 'authority.grants', {}],
    ['POST', '/v1/grants', { grant: {} }, 201, 'authority.accept', { grant: {} }],
    ['POST', '/v1/revocations', { revocation: {} }, 201, 'authority.revoke', { revocation: {} }],
    ['GET', '/v1/trust', undefined, 200, 'authority.trusted', {}],
    ['POST', '/v1/trust', { did, name: 'Bo' }, 201, 'authority.trust', { did, name: 'Bo' }],
    ['DELETE', `/v1/trust/${did}`, undefined, 200, 'authority.untrust', { did }],
    ['GET', '/v1/sync', undefined, 200, 'sync.status', {}],
    ['POST', '/v1/sync', { did }, 200, 'sync.run', { did }],
    [
      'POST',
      '/v1/handoff',
      { did, agent: 'echo', text: 'do' },
      200,
      'handoff.offer',
      { did, agent: 'echo', text: 'do' },
    ],
  ])('%s %s', async (method, path, body, status, operation, input) => {
    const init: RequestInit = {
      method,
      headers: { ...auth, ...(body === undefined ? {} : json) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    expect(await askedBy(path, init)).toMatchObject({
      status,
      operation,
      caller: { kind: 'bearer', token: TOKEN, door: 'http' },
    })
    expect(door.service.asked[0]?.input).toEqual(input)
  })

  test('the answer is the result, as JSON that is not cached', async () => {
    door.service.answers.set('memory.get', () => ({ id, content: '记忆' }))
    const response = await door.request(`/v1/memory/${id}`)
    expect(await response.json()).toEqual({ id, content: '记忆' })
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('without a token the caller is nobody; the service decides what that means', async () => {
    expect(await askedBy('/v1/status')).toMatchObject({ caller: { kind: 'nobody', door: 'http' } })
  })

  test('MEM-003.3.2 memory has the version in its path, and no other path reaches it', async () => {
    for (const path of ['/memory', '/v2/memory']) expect((await door.request(path)).status).toBe(404)
    expect((await askedBy('/v1/memory')).operation).toBe('memory.list')
  })

  test('the path wins over query and body', async () => {
    const { input } = await askedBy('/v1/agents/echo/send?agent=q', post({ agent: 'b', params: {} }))
    expect(input).toEqual({ agent: 'echo', params: {} })
  })

  test('numbers that are none stay text, for the schema to refuse', async () => {
    expect((await askedBy('/v1/memory?limit=1e3')).input).toEqual({ limit: '1e3' })
  })

  test('a request id of the caller is kept, a bad one is replaced', async () => {
    const kept = await askedBy('/v1/status', { headers: { 'X-Request-ID': 'my-1' } })
    expect(kept.operation).toBe('node.status')
    expect(door.service.asked[0]?.options.requestId).toBe('my-1')
    await askedBy('/v1/status', { headers: { 'X-Request-ID': 'x'.repeat(65) } })
    expect(door.service.asked[0]?.options.requestId).toMatch(/^req_/)
  })
})

describe('errors are problems', () => {
  async function problem(path: string, init: RequestInit = {}) {
    const response = await door.request(path, init)
    const text = await response.text()
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(text).not.toMatch(/<html|\bat .*\.(?:ts|js):\d/i)
    return { ...(JSON.parse(text) as Record<string, unknown>), response }
  }

  test('an error of the service keeps its code, status, sentence and details', async () => {
    door.service.answers.set('files.write', () => {
      throw new NodeError('CONFLICT', { head: 'abc' })
    })
    const found = await problem('/v1/files/file', { ...post({ branch: 'b', path: 'p' }), method: 'PUT' })
    expect(found).toMatchObject({
      type: 'urn:csb:error:CONFLICT',
      status: 409,
      code: 'CONFLICT',
      retryable: true,
      details: { head: 'abc' },
    })
    expect(found.response.status).toBe(409)
    expect(found).toHaveProperty('request_id', expect.stringMatching(/^req_/))
  })

  test('a fault tells nothing of the inside, and the log everything', async () => {
    const events: unknown[] = []
    const other = await openDoor({ log: (...event) => events.push(event) })
    other.service.answers.set('node.status', () => {
      throw new TypeError('secret path /home/x')
    })
    const response = await other.request('/v1/status', { headers: { 'X-Request-ID': 'r1' } })
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('secret')
    expect(JSON.stringify(events)).toContain('secret path')
    expect(JSON.stringify(events)).toContain('r1')
  })

  test('401 says how to authenticate', async () => {
    const found = await problem('/v1/status', { headers: { Authorization: 'Basic eDp5' } })
    expect(found).toMatchObject({ code: 'UNAUTHENTICATED', status: 401 })
    expect(found.response.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  test.each<[string, string, RequestInit, string, number]>([
    ['malformed JSON', '/v1/memory', post('{"entry": '), 'MALFORMED', 400],
    ['the same member twice', '/v1/memory', post('{"entry":{},"entry":{}}'), 'MALFORMED', 400],
    ['__proto__', '/v1/memory', post('{"__proto__":{}}'), 'MALFORMED', 400],
    ['too deep', '/v1/memory', post('['.repeat(40) + ']'.repeat(40)), 'MALFORMED', 400],
    [
      'bytes that are not UTF-8',
      '/v1/memory',
      { ...post(''), body: Buffer.from([0x22, 0xff, 0x22]) },
      'MALFORMED',
      400,
    ],
    ['a form', '/v1/memory', post('a=b', { 'Content-Type': 'application/x-www-form-urlencoded' }), 'CONTENT_TYPE', 415],
    [
      'plain text, as a page of another site can send',
      '/v1/memory',
      post('{}', { 'Content-Type': 'text/plain' }),
      'CONTENT_TYPE',
      415,
    ],
    ['a list where an object belongs', '/v1/memory', post('[]'), 'INVALID_INPUT', 422],
    ['a body over the bound', '/v1/memory', post(`"${'x'.repeat(8 * 1024 * 1024)}"`), 'TOO_LARGE', 413],
    ['a member given twice in the query', '/v1/memory?limit=1&limit=2', {}, 'INVALID_INPUT', 422],
    ['an unknown route', '/v2/nothing', {}, 'UNKNOWN_OPERATION', 404],
    ['an unknown method', '/v1/status', { method: 'DELETE' }, 'UNKNOWN_OPERATION', 404],
  ])('%s', async (_, path, init, code, status) => {
    door.service.asked.length = 0
    expect(await problem(path, init)).toMatchObject({ code, status })
    expect(door.service.asked).toEqual([])
  })

  test('a body without a length is cut off at the bound', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(0x20)
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(chunk) })
    const init = { method: 'POST', headers: json, body, duplex: 'half' } as RequestInit
    expect(await problem('/v1/memory', init)).toMatchObject({ code: 'TOO_LARGE', status: 413 })
  })
})
