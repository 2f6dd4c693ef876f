/**
 * Runs an attached agent: one JSON object on its stdin, JSON or JSON lines on its stdout.
 *
 * There is no shell, so nothing in a message can become a command. The environment holds only what is given.
 * The process group is killed at the deadline, on abort, and when the leader has ended, so nothing stays behind.
 * What the agent writes is bounded; what it says of itself is foreign text and is never interpreted here.
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { LIMITS, NodeError, deadline, fail, fromUtf8, isNodeError, parseBounded, type Json } from '@csb/core'
import type { JsonObject } from './a2a.ts'

/** What an agent ends with: any of a text, a JSON value, files by path. */
export type AgentResult = {
  readonly text?: string
  readonly data?: unknown
  readonly files?: readonly { readonly path: string; readonly text: string }[]
}

/** What an agent tells, in order. The last one is always the result. */
export type AgentEvent =
  | { readonly kind: 'status'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'artifact'; readonly artifact: JsonObject }
  | { readonly kind: 'result'; readonly result: AgentResult }

export type RunOptions = {
  /** ends the run with AGENT_FAILED, or with its reason where that is a NodeError */
  readonly signal?: AbortSignal
  /** default {@link LIMITS.agentTimeoutMs} */
  readonly timeoutMs?: number
  /** of stdout, default {@link LIMITS.agentOutputBytes} */
  readonly outputBytes?: number
  /** only PATH, HOME, LANG and names that begin with CSB_ are passed on */
  readonly env?: Readonly<Record<string, string>>
}

type Command = { readonly command: readonly string[]; readonly cwd?: string }

const ENVIRONMENT = /^(?:PATH|HOME|LANG|CSB_[A-Z0-9_]+)$/
const KINDS = ['status', 'text', 'artifact', 'result'] as const

/**
 * Start the command, give it `input`, and give what it tells as it comes. Leaving the loop early kills it.
 * @param input becomes one line of JSON
 * @throws AGENT_TIMEOUT, AGENT_OUTPUT_TOO_LARGE, AGENT_FAILED with `exit` or `signal` and the end of its stderr
 */
export async function* runCommand(
  agent: Command,
  input: Json,
  options: RunOptions = {},
): AsyncGenerator<AgentEvent, void, undefined> {
  const { timeoutMs = LIMITS.agentTimeoutMs, outputBytes = LIMITS.agentOutputBytes } = options
  if (options.signal?.aborted === true) throw reasonOf(options.signal, timeoutMs)
  const signal = deadline(timeoutMs, options.signal)
  const child = start(agent, options.env ?? {})
  const ended = endOf(child)
  await once(child, 'spawn').catch((error: unknown) =>
    fail(
      'AGENT_FAILED',
      { reason: 'the command can not be started', cause: (error as { code?: unknown }).code },
      error,
    ),
  )
  const stderr = keepTail(child)
  const stop = () => {
    kill(child)
    child.stdout.destroy()
  }
  signal.addEventListener('abort', stop, { once: true })
  child.stdin.on('error', () => undefined) // an agent may end without reading
  child.stdin.end(`${JSON.stringify(input)}\n`)
  try {
    const reader = createReader(outputBytes)
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield* reader.take(chunk)
    const { code, killed } = await ended
    if (signal.aborted) throw reasonOf(options.signal, timeoutMs)
    if (code !== 0) fail('AGENT_FAILED', { exit: code, signal: killed, stderr: stderr() })
    yield* reader.finish()
  } catch (error) {
    if (signal.aborted) throw reasonOf(options.signal, timeoutMs)
    if (isNodeError(error, 'AGENT_FAILED'))
      throw new NodeError('AGENT_FAILED', { stderr: stderr(), ...error.details }, error)
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
    child.stderr.destroy()
  }
}

function start(agent: Command, given: Readonly<Record<string, string>>): ChildProcessWithoutNullStreams {
  const [file = '', ...parameters] = agent.command
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => ENVIRONMENT.test(name)))
  return spawn(file, parameters, {
    env,
    shell: false,
    detached: true, // leader of its own group, so that its children can be killed with it
    windowsHide: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(agent.cwd === undefined ? {} : { cwd: agent.cwd }),
  })
}

/** Resolves when the leader has ended; whatever of its group still runs is killed then. */
function endOf(child: ChildProcessWithoutNullStreams): Promise<{ code: number | null; killed: string | null }> {
  return new Promise((resolve) => {
    child.once('exit', (code, killed) => {
      kill(child)
      resolve({ code, killed })
    })
  })
}

function kill(child: ChildProcessWithoutNullStreams): void {
  if (child.pid === undefined) return
  try {
    if (process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    // the group is gone already
  }
}

function reasonOf(parent: AbortSignal | undefined, timeoutMs: number): NodeError {
  if (parent?.aborted !== true) return new NodeError('AGENT_TIMEOUT', { timeoutMs })
  const reason: unknown = parent.reason
  return isNodeError(reason) ? reason : new NodeError('AGENT_FAILED', { reason: 'canceled' })
}

/** The last {@link LIMITS.agentErrorBytes} of stderr. */
function keepTail(child: ChildProcessWithoutNullStreams): () => string {
  let kept: Buffer = Buffer.alloc(0)
  child.stderr.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-LIMITS.agentErrorBytes)
  })
  child.stderr.on('error', () => undefined)
  return () => kept.toString('utf8')
}

type Reader = { take(chunk: Buffer): Generator<AgentEvent>; finish(): Generator<AgentEvent> }

/**
 * Splits stdout into JSON lines. Where the first line is not JSON by itself, all of stdout is read as one
 * JSON text at the end, so an agent may also print one object over several lines.
 */
function createReader(outputBytes: number): Reader {
  let bytes = 0
  let pending: Buffer[] = []
  let lines = 0
  let whole = false
  let told = ''
  let done = false

  const read = (line: Buffer): AgentEvent | undefined => {
    const text = (fromUtf8(line) ?? fail('AGENT_FAILED', { reason: 'stdout is not UTF-8' })).trim()
    if (text === '') return undefined
    if (done) fail('AGENT_FAILED', { reason: 'something was written after the result' })
    const event = eventOf(text, outputBytes, lines === 0)
    lines++
    if (event.kind === 'text') told += event.text
    done = event.kind === 'result'
    return event
  }

  return {
    *take(chunk) {
      bytes += chunk.byteLength
      if (bytes > outputBytes) fail('AGENT_OUTPUT_TOO_LARGE', { outputBytes })
      let rest = chunk
      for (let at = rest.indexOf(10); at >= 0 && !whole; at = rest.indexOf(10)) {
        const line = Buffer.concat([...pending, rest.subarray(0, at)])
        if (lines === 0 && !isJson(line)) {
          whole = true
          break
        }
        pending = []
        rest = rest.subarray(at + 1)
        const event = read(line)
        if (event !== undefined) yield event
      }
      if (rest.byteLength > 0) pending.push(rest)
    },
    *finish() {
      const event = read(Buffer.concat(pending))
      if (event !== undefined) yield event
      if (done) return
      if (lines === 0) fail('AGENT_FAILED', { reason: 'nothing was written to stdout' })
      yield { kind: 'result', result: told === '' ? {} : { text: told } }
    },
  }
}

function isJson(line: Buffer): boolean {
  try {
    JSON.parse(line.toString('utf8') || '0')
    return true
  } catch {
    return line.toString('utf8').trim() === ''
  }
}

/** @param alone true for the first line, which may be a result without its wrapping */
function eventOf(text: string, outputBytes: number, alone: boolean): AgentEvent {
  let value: unknown
  try {
    value = parseBounded(text, outputBytes)
  } catch (error) {
    fail('AGENT_FAILED', { reason: 'a line of stdout is not JSON; logs belong on stderr' }, error)
  }
  if (!isObject(value)) fail('AGENT_FAILED', { reason: 'a line of stdout is not a JSON object' })
  const kind = KINDS.find((member) => Object.hasOwn(value, member))
  if (kind === undefined) {
    if (alone) return { kind: 'result', result: { data: value } }
    return fail('AGENT_FAILED', { reason: 'a line has none of status, text, artifact, result' })
  }
  const told = value[kind]
  if (kind === 'status' || kind === 'text') {
    if (typeof told !== 'string') fail('AGENT_FAILED', { reason: `${kind} is not a string` })
    return { kind, text: told }
  }
  if (kind === 'artifact') {
    if (!isObject(told)) fail('AGENT_FAILED', { reason: 'artifact is not an object' })
    return { kind, artifact: told }
  }
  return { kind, result: resultOf(told) }
}

/** A result that is a string is its text; an object is read member by member. */
function resultOf(told: unknown): AgentResult {
  if (typeof told === 'string') return { text: told }
  if (!isObject(told)) fail('AGENT_FAILED', { reason: 'result is neither an object nor a string' })
  const { text, data, files } = told
  if (text !== undefined && typeof text !== 'string') fail('AGENT_FAILED', { reason: 'result.text is not a string' })
  if (files !== undefined && !(Array.isArray(files) && files.every(isFile))) {
    fail('AGENT_FAILED', { reason: 'result.files is not a list of {path, text}' })
  }
  return {
    ...(text === undefined ? {} : { text }),
    ...(data === undefined ? {} : { data }),
    ...(files === undefined ? {} : { files: files.map(({ path, text: content }) => ({ path, text: content })) }),
  }
}

const isFile = (value: unknown): value is { path: string; text: string } =>
  isObject(value) && typeof value['path'] === 'string' && typeof value['text'] === 'string'

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
