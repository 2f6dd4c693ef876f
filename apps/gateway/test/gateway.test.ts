import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT, systemClock } from '@csb/core'
import { connect, createClient, leaseFor, openOwner } from '@csb/node'

type Child = ChildProcessByStdio<null, Readable, Readable>
type Ready = { readonly did: string; readonly home: null; readonly url: string }

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const parent = await mkdtemp(join(tmpdir(), 'csb-gateway-'))
afterAll(() => rm(parent, { recursive: true, force: true }))

function gateway(args: readonly string[], more: NodeJS.ProcessEnv = {}): Child {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:CSB_|npm_|INIT_CWD$)/.test(name))
  const own = { CSB_P2P_LISTEN: '/ip4/127.0.0.1/tcp/0', CSB_P2P_MDNS: 'false', CSB_LOG_LEVEL: 'silent', ...more }
  const env = { ...Object.fromEntries(kept), ...own }
  const child = spawn(process.execPath, ['--conditions=csb-source', MAIN, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** Its exit code and what it said, when it has ended. */
async function ended(child: Child): Promise<{ code: number | null; out: string; err: string }> {
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  return { code, out, err }
}

async function up(child: Child): Promise<Ready> {
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return JSON.parse(line) as Ready
}

async function stop(child: Child): Promise<number | null> {
  child.kill('SIGTERM')
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

describe('a gateway', () => {
  test('makes itself in CSB_DATA at its first start, without a home, and is the same one at the next', async () => {
    const data = join(parent, 'same')
    const first = gateway(['--json', '--port', '0'], { CSB_DATA: data })
    const one = await up(first)
    expect(one).toMatchObject({ ready: true, name: 'gateway', home: null })
    expect(await stop(first)).toBe(EXIT.ok)
    const second = gateway(['--json', '--port', '0', '--data', data])
    expect((await up(second)).did).toBe(one.did)
    expect(await stop(second)).toBe(EXIT.ok)
  })

  test('answers nobody without a token; one is leased on the same machine, with its owner key sealed', async () => {
    const data = join(parent, 'sealed')
    const child = gateway(['--json', '--port', '0', '--data', data], { CSB_PASSPHRASE: 'correct horse' })
    const { url } = await up(child)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/v1/status`)).status).toBe(401)
    await expect(openOwner(data, undefined)).rejects.toMatchObject({ code: 'PASSPHRASE' })
    const desk = {
      directory: data,
      client: await connect(data),
      owner: await openOwner(data, 'correct horse'),
      now: systemClock.now(),
    }
    const { token } = await leaseFor(desk, { name: 'client', lease: { actions: ['send'] }, ttlMs: 60_000 })
    // it may send, and rules nothing
    expect(await createClient(url, token).call('GET', '/v1/agents/find')).toHaveProperty('items')
    await expect(createClient(url, token).call('GET', '/v1/grants')).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED' })
    expect(await stop(child)).toBe(EXIT.ok)
  })

  test('says to a person where it is and how a client gets a token', async () => {
    const data = join(parent, 'said')
    const child = gateway(['--port', '0', '--data', data])
    const all = ended(child)
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    const { code, out, err } = await all
    expect(code).toBe(EXIT.ok)
    expect(out).toMatch(/^gateway is up\.\n {2}id {7}did:key:z[^]+url {6}http:\/\/127\.0\.0\.1:\d+\n/)
    expect(out).toContain(`csb lease --data ${data} --for NAME`)
    expect(err).toContain(`NOTE: the owner's key in ${data} is not sealed.`)
  })
})

describe('a slip', () => {
  test.each([[['--bogus']], [['--port', 'many']], [['here']]])(
    'of usage, as %j, exits with 2 and makes nothing',
    async (args) => {
      const data = join(parent, 'slip')
      const { code, out } = await ended(gateway([...args, '--json', '--data', data]))
      expect(code).toBe(EXIT.input)
      expect(JSON.parse(out)).toMatchObject({ error: { code: 'INVALID_INPUT' } })
      await expect(readFile(join(data, 'identity.json'))).rejects.toMatchObject({ code: 'ENOENT' })
    },
  )

  test('has help that fits a screen', async () => {
    const { code, out } = await ended(gateway(['--help']))
    expect(code).toBe(EXIT.ok)
    expect(out.split('\n').length).toBeLessThanOrEqual(40)
  })
})
