import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LIMITS, NodeError, until, type Json } from '@csb/core'
import { runCommand, type AgentEvent, type RunOptions } from '../src/index.ts'
import { nodeAgent, temporaryFolder } from './fixtures.ts'

async function run(source: string, input: Json = {}, options: RunOptions = {}): Promise<AgentEvent[]> {
  return Array.fromAsync(runCommand(nodeAgent(source), input, options))
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const readStdin = `let t = ''; for await (const c of process.stdin) t += c; const input = JSON.parse(t);`

describe('what an agent reads and writes', () => {
  test('it gets one JSON object and its one JSON object is the result', async () => {
    const events = await run(`${readStdin} console.log(JSON.stringify({ result: { text: input.say + '!' } }))`, {
      say: 'héllo',
    })
    expect(events).toEqual([{ kind: 'result', result: { text: 'héllo!' } }])
  })

  test('JSON lines come as they are written, the result last', async () => {
    const events = await run(`
      console.log('{"status":"thinking"}'); console.log('{"text":"a"}'); console.log('');
      console.log('{"artifact":{"name":"n","text":"t"}}');
      console.log('{"result":{"data":{"n":1},"files":[{"path":"a.md","text":"x"}]}}')`)
    expect(events).toEqual([
      { kind: 'status', text: 'thinking' },
      { kind: 'text', text: 'a' },
      { kind: 'artifact', artifact: { name: 'n', text: 't' } },
      { kind: 'result', result: { data: { n: 1 }, files: [{ path: 'a.md', text: 'x' }] } },
    ])
  })

  test('an object over several lines without our members is the result as data', async () => {
    const events = await run(`process.stdout.write(JSON.stringify({ answer: 42, list: [1] }, null, 2))`)
    expect(events).toEqual([{ kind: 'result', result: { data: { answer: 42, list: [1] } } }])
  })

  test('texts that come together are one event, in their place among the others', async () => {
    const events = await run(
      `process.stdout.write('{"text":"a"}\\n{"text":"b"}\\n{"status":"s"}\\n{"text":"c"}\\n{"result":"d"}\\n')`,
    )
    expect(events).toEqual([
      { kind: 'text', text: 'ab' },
      { kind: 'status', text: 's' },
      { kind: 'text', text: 'c' },
      { kind: 'result', result: { text: 'd' } },
    ])
  })

  test('texts without a result are the result together', async () => {
    const events = await run(`console.log('{"text":"a"}'); console.log('{"text":"b"}')`)
    expect(events.at(-1)).toEqual({ kind: 'result', result: { text: 'ab' } })
  })

  test('a character split between two writes is read whole', async () => {
    const events = await run(`
      const bytes = Buffer.from('{"result":"契约"}\\n'); process.stdout.write(bytes.subarray(0, 12));
      setTimeout(() => process.stdout.write(bytes.subarray(12)), 30)`)
    expect(events).toEqual([{ kind: 'result', result: { text: '契约' } }])
  })

  test('an agent that does not read its input is no error', async () => {
    const events = await run(`process.stdin.destroy(); console.log('{"result":"ok"}')`, { long: 'x'.repeat(1 << 20) })
    expect(events).toEqual([{ kind: 'result', result: { text: 'ok' } }])
  })

  test('nothing in the input reaches a shell', async () => {
    const folder = await temporaryFolder()
    const agent = { command: ['/bin/echo', '{"text":"$(id) `id` ; rm -rf x"}'], cwd: folder }
    const events = await Array.fromAsync(runCommand(agent, { say: '$(touch x)' }))
    expect(events[0]).toEqual({ kind: 'text', text: '$(id) `id` ; rm -rf x' })
  })

  test('the environment is what was given, of the names that may pass', async () => {
    const env = {
      PATH: '/usr/bin',
      HOME: '/tmp',
      LANG: 'C',
      CSB_RUN: 'run_1',
      LD_PRELOAD: '/evil.so',
      NODE_OPTIONS: '--inspect',
    }
    const [event] = await run(`console.log(JSON.stringify({ result: { data: process.env } }))`, {}, { env })
    expect(event).toEqual({
      kind: 'result',
      result: { data: { PATH: '/usr/bin', HOME: '/tmp', LANG: 'C', CSB_RUN: 'run_1' } },
    })
  })
})

describe('what stops an agent', () => {
  test('the deadline kills the whole process group', async () => {
    const folder = await temporaryFolder()
    const pids = join(folder, 'pids')
    const source = `
      import { spawn } from 'node:child_process'; import { writeFileSync } from 'node:fs';
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
      writeFileSync(${JSON.stringify(pids)}, process.pid + ' ' + child.pid); setInterval(() => {}, 1000)`
    await expect(run(source, {}, { timeoutMs: 4_000 })).rejects.toMatchObject({
      code: 'AGENT_TIMEOUT',
      details: { timeoutMs: 4_000 },
    })
    const [leader = 0, child = 0] = (await readFile(pids, 'utf8')).split(' ').map(Number)
    await until(() => !isAlive(leader) && !isAlive(child), 30_000, 'both processes are gone')
  })

  test('children it leaves behind do not outlive it, nor hold up its result', async () => {
    const folder = await temporaryFolder()
    const pids = join(folder, 'pids')
    const source = `
      import { spawn } from 'node:child_process'; import { writeFileSync } from 'node:fs';
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
      writeFileSync(${JSON.stringify(pids)}, String(child.pid)); child.unref();
      process.stdout.write('{"result":"ok"}\\n', () => process.exit(0))`
    await expect(run(source, {}, { timeoutMs: 60_000 })).resolves.toEqual([{ kind: 'result', result: { text: 'ok' } }])
    const child = Number(await readFile(pids, 'utf8'))
    await until(() => !isAlive(child), 30_000, 'the child is gone')
  })

  test('more output than its bound ends it', async () => {
    const source = `process.stdout.write('x'.repeat(50_001)); setInterval(() => {}, 1000)`
    await expect(run(source, {}, { outputBytes: 50_000, timeoutMs: 60_000 })).rejects.toMatchObject({
      code: 'AGENT_OUTPUT_TOO_LARGE',
    })
  })

  test('an abort ends it with the reason that was given', async () => {
    const stop = new AbortController()
    const reason = new NodeError('BUSY')
    const events = runCommand(
      nodeAgent(`console.log('{"status":"up"}'); setInterval(() => {}, 1000)`),
      {},
      { signal: stop.signal },
    )
    expect((await events.next()).value).toEqual({ kind: 'status', text: 'up' })
    stop.abort(reason)
    await expect(events.next()).rejects.toBe(reason)
  })

  test('leaving the loop kills it', async () => {
    const events = runCommand(
      nodeAgent(`console.log(JSON.stringify({ status: String(process.pid) })); setInterval(() => {}, 1000)`),
      {},
    )
    const first = (await events.next()).value as { text: string }
    await events.return()
    await until(() => !isAlive(Number(first.text)), 30_000, 'the process is gone')
  })
})

describe('what an agent does wrong', () => {
  test('an exit code is told with the end of stderr', async () => {
    const failure = run(`process.stderr.write('x'.repeat(100000) + 'the end'); process.exitCode = 3`)
    const error: unknown = await failure.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { exit: 3 } })
    const { stderr } = (error as NodeError).details as { stderr: string }
    expect(stderr).toHaveLength(16 * 1024)
    expect(stderr.endsWith('the end')).toBe(true)
  })

  test('a token it was given never stands in the details, whole or cut', async () => {
    const env = { CSB_TOKEN: 'csb_secret-of-this-run', CSB_OTHER_TOKENS: 'another', CSB_RUN: 'run_1' }
    const source = (after: number) => `process.exitCode = 3
      process.stderr.write('x'.repeat(20000) + process.env.CSB_TOKEN + ' ' + process.env.CSB_OTHER_TOKENS + 'y'.repeat(${after}))`
    const stderrOf = async (after: number) => {
      const error: unknown = await run(source(after), {}, { env }).catch((thrown: unknown) => thrown)
      return (error as NodeError).details['stderr'] as string
    }
    const whole = await stderrOf(10)
    expect(whole).toMatch(/x\[token\] \[token\]y{10}$/)
    expect(whole.length).toBeLessThanOrEqual(LIMITS.agentErrorBytes)
    // the window begins within the token
    const cut = await stderrOf(LIMITS.agentErrorBytes - ' another'.length - 9)
    expect(cut).toMatch(/^\[token\] \[token\]y+$/)
  })

  test('what it says without end is bounded in events, and no text of it is lost', async () => {
    const texts = await run(`for (let n = 0; n < 100000; n++) console.log('{"text":"ab"}')`)
    expect(texts.length).toBeLessThan(LIMITS.agentTexts + 1_024)
    const said = texts.flatMap((event) => (event.kind === 'text' ? [event.text] : []))
    expect(said.join('')).toBe('ab'.repeat(100_000))
    const endless = run(`for (let n = 0; n < ${LIMITS.agentEvents + 1}; n++) console.log('{"status":"s"}')`)
    await expect(endless).rejects.toMatchObject({
      code: 'AGENT_OUTPUT_TOO_LARGE',
      details: { events: LIMITS.agentEvents },
    })
  })

  test('a command that does not exist is told as such', async () => {
    const events = Array.fromAsync(runCommand({ command: ['/no/such/agent'] }, {}))
    await expect(events).rejects.toMatchObject({ code: 'AGENT_FAILED', details: { cause: 'ENOENT' } })
  })

  test.each([
    ['nothing', ``],
    ['text that is not JSON', `console.log('hello')`],
    ['a log line between JSON lines', `console.log('{"text":"a"}'); console.log('hello')`],
    ['a list', `console.log('[1]')`],
    ['a number as text', `console.log('{"text":1}')`],
    ['something after the result', `console.log('{"result":"a"}'); console.log('{"text":"b"}')`],
    ['bytes that are not UTF-8', `process.stdout.write(Buffer.from([0x22, 0xff, 0x22, 0x0a]))`],
    ['the same member twice', `console.log('{"text":"a","text":"b"}')`],
  ])('%s is refused', async (_, source) => {
    await expect(run(source)).rejects.toMatchObject({ code: 'AGENT_FAILED' })
  })
})
