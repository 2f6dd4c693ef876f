import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createHttp } from '../src/index.ts'
import { createRecordingService, openDoor } from './fixtures.ts'

const door = await openDoor()
const proxied = await openDoor({ publicUrl: 'https://nas.example:8443/' })

/** Fetch does not let a test choose Host or Origin. */
function ask(port: number, headers: Record<string, string>): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = rawRequest({ port, host: '127.0.0.1', path: '/healthz', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('attack 33: who may speak to it', () => {
  test.each([
    ['its address', {}],
    ['localhost', { Host: 'localhost:7480' }],
    ['an IPv6 address', { Host: '[::1]:7480' }],
    ['a page of its own', { Host: '127.0.0.1:7480', Origin: 'http://127.0.0.1:7480' }],
  ])('%s is let in', async (_, headers) => {
    expect((await ask(door.port, headers)).status).toBe(200)
  })

  test.each([
    ['a name that was made to point here', { Host: 'evil.example:7480' }],
    ['a name that looks like an address', { Host: '127.0.0.1.evil.example' }],
    ['a name that ends in localhost', { Host: 'evil.localhost' }],
    ['a page of another site', { Host: 'localhost:7480', Origin: 'https://evil.example' }],
    ['a page of another port', { Host: 'localhost:7480', Origin: 'http://localhost:3000' }],
    ['a page without an origin', { Host: 'localhost:7480', Origin: 'null' }],
  ])('%s is refused', async (_, headers) => {
    const { status, body } = await ask(door.port, headers)
    expect(status).toBe(403)
    expect(JSON.parse(body)).toMatchObject({ code: 'DENIED' })
  })

  test.each([
    ['no name', 'GET /healthz HTTP/1.0\r\n\r\n'],
    ['a Host with a path', 'GET /healthz HTTP/1.1\r\nHost: localhost/x\r\nConnection: close\r\n\r\n'],
    ['two names', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
    [
      'a whole address of elsewhere',
      'GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    ],
  ])('%s is refused', async (_, text) => {
    const socket = connect(door.port, '127.0.0.1', () => socket.write(text))
    const answer = Buffer.concat(await Array.fromAsync(socket as AsyncIterable<Buffer>)).toString()
    expect(answer).toMatch(/^HTTP\/1\.1 40[03] /)
    expect(answer).not.toContain('"ok"')
  })

  test('the name of the proxy is its own, and its page too', async () => {
    expect(proxied.url).toBe('https://nas.example:8443')
    expect((await ask(proxied.port, { Host: 'nas.example:8443', Origin: 'https://nas.example:8443' })).status).toBe(200)
    expect((await ask(proxied.port, { Host: 'other.example' })).status).toBe(403)
  })
})

describe('the listener', () => {
  test('a body that is announced too large is refused before it comes', async () => {
    const head =
      'POST /v1/memory HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n'
    const socket = connect(door.port, '127.0.0.1', () => socket.write(head))
    const [first] = (await once(socket, 'data')) as [Buffer]
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 /)
    socket.destroy()
  })

  test('a taken port is told as such', async () => {
    const taken = createHttp({ service: createRecordingService(), port: door.port })
    await expect(taken).rejects.toMatchObject({ code: 'PORT_IN_USE', details: { port: door.port } })
  })

  test('beyond this machine it listens only when told that this is insecure', async () => {
    const open = createHttp({ service: createRecordingService(), port: 0, host: '0.0.0.0' })
    await expect(open).rejects.toMatchObject({ code: 'INSECURE_LISTEN' })
    const insecure = await createHttp({ service: createRecordingService(), port: 0, host: '0.0.0.0', insecure: true })
    await insecure.close()
  })

  test('an address of another machine and a public URL that is none are told as such', async () => {
    const elsewhere = createHttp({ service: createRecordingService(), port: 0, host: '192.0.2.1', insecure: true })
    await expect(elsewhere).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    const wrong = createHttp({ service: createRecordingService(), port: 0, publicUrl: 'nas' })
    await expect(wrong).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  test('closing ends open streams and frees the port', async () => {
    const own = await openDoor()
    own.service.flows.set('agents.subscribe', async function* (_, { signal }) {
      yield { task: { id: 't' } }
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    })
    const body = { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 't' } }
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
      body: JSON.stringify(body),
    }
    const stream = await own.request('/a2a/echo', init)
    const text = stream.text().catch(() => 'cut')
    await own.close()
    expect(await text).toMatch(/"id":"t"/)
    const again = await createHttp({ service: createRecordingService(), port: own.port })
    await again.close()
  })
})
