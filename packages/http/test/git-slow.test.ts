/** Clients of the git view that stand still: they are left within the bound, whichever way the bytes were to go. */
import { connect, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { until } from '@csb/core'
import { createHttp } from '../src/index.ts'
import { TOKEN, createRecordingService } from './fixtures.ts'

const IDLE_MS = 300
const HOME = `home_${'a'.repeat(26)}`
const CHUNK = Buffer.alloc(64 * 1024)

const recording = createRecordingService()
let sent = 0
let ended = 0
let pushed: unknown
recording.flows.set('git.fetch', async function* () {
  yield await Promise.resolve({ kind: 'common', oids: [], ready: true })
  yield { kind: 'ends', shallow: [], unshallow: [] }
  try {
    for (;;) {
      sent += CHUNK.byteLength
      yield { kind: 'pack', bytes: CHUNK }
    }
  } finally {
    ended++
  }
})
const http = await createHttp({
  port: 0,
  streamIdleMs: IDLE_MS,
  service: {
    ...recording,
    attend: async (_caller, _operation, _input, port) => {
      try {
        for (let chunk = await port.receive(); chunk !== undefined; chunk = await port.receive());
      } catch (error) {
        pushed = error
        throw error
      }
    },
  },
})
const sockets: Socket[] = []
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await http.close()
})

/** Send a request's head and this much of its body, which was said to be longer. */
function begin(service: string, body: string, length = body.length): { socket: Socket; said: () => string } {
  const socket = connect(http.port, '127.0.0.1')
  sockets.push(socket)
  let said = ''
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  const head = [
    `POST /git/${HOME}.git/${service} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${TOKEN}`,
    'Git-Protocol: version=2',
    `Content-Length: ${length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return { socket, said: () => said }
}

const FETCH = `0012command=fetch\n0001004awant ${'f'.repeat(64)}\n0009done\n0000`
const COMMAND = `${'0'.repeat(64)} ${'f'.repeat(64)} refs/heads/runs/x\0report-status side-band-64k`

describe('a client that stands still', () => {
  test('in the middle of what it asks is told so and left', async () => {
    const began = performance.now()
    const { said } = begin('git-upload-pack', FETCH.slice(0, 20), FETCH.length)
    await until(() => said().includes('[TIMEOUT]'), 30_000, 'the answer')
    expect(said()).toMatch(/^HTTP\/1\.1 504 /)
    expect(performance.now() - began).toBeGreaterThanOrEqual(IDLE_MS * 0.9)
  })

  test('in the middle of its pack is left, and the push has failed', async () => {
    const line = `${(COMMAND.length + 4).toString(16).padStart(4, '0')}${COMMAND}0000PACK`
    const { said } = begin('git-receive-pack', line, line.length + 1_000)
    await until(() => said().includes('[TIMEOUT]'), 30_000, 'the answer')
    expect(pushed).toMatchObject({ code: 'TIMEOUT', details: { idleMs: IDLE_MS } })
  })

  test('and takes nothing of what it asked for is cut, and no more is read for it than fits the line', async () => {
    const { socket } = begin('git-upload-pack', FETCH)
    socket.pause()
    await until(() => sent > 0, 30_000, 'the answer')
    await until(() => ended === 1, 30_000, 'the answer')
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    await closed
  })

  test('while one that is slow and does not stand still is served to its end', async () => {
    const body = '0014command=ls-refs\n0000'
    recording.answers.set('git.refs', () => ({ hash: 'sha256', head: 'refs/heads/main', refs: [] }))
    const { socket, said } = begin('git-upload-pack', body.slice(0, 4), body.length)
    const began = performance.now()
    for (const letter of body.slice(4)) {
      // a piece every so often, all of them longer than the bound
      const due = performance.now() + IDLE_MS / 8
      await until(() => performance.now() >= due, 30_000, 'the answer')
      socket.write(letter)
    }
    await until(() => said().includes('0000'), 30_000, 'the answer')
    expect(said()).toMatch(/^HTTP\/1\.1 200 /)
    expect(performance.now() - began).toBeGreaterThan(IDLE_MS * 2)
  })
})
