/**
 * Runs an attached agent: one JSON object on its stdin, JSON or JSON lines on its stdout.
 *
 * There is no shell, so nothing in a message can become a command. The environment holds only what is given.
 * The process group is killed at the deadline, on abort, and when the leader has ended. A child that leaves the group,
 * as one that starts a session of its own does, can live on: only a sandbox around the agent ends that one too.
 * What the agent writes is bounded; what it says of itself is foreign text and is never interpreted here. A token it was
 * given never stands in the details of an error.
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { LIMITS, NodeError, deadline, fail, isNodeError, type Json } from '@csb/core'
import { createOutputReader, type AgentEvent } from './output.ts'
import { createPacer } from './pacer.ts'

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
const SECRET = /TOKEN/
const REDACTED = '[token]'

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
  const stderr = keepTail(child, secretsOf(options.env ?? {}))
  const stop = () => {
    kill(child)
    child.stdout.destroy()
  }
  signal.addEventListener('abort', stop, { once: true })
  child.stdin.on('error', () => undefined) // an agent may end without reading
  child.stdin.end(`${JSON.stringify(input)}\n`)
  try {
    const reader = createOutputReader(outputBytes)
    const pacer = createPacer()
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield* pacer.take(reader.take(chunk))
    yield* pacer.flush()
    const { code, killed } = await ended
    if (signal.aborted) throw reasonOf(options.signal, timeoutMs)
    if (code !== 0) fail('AGENT_FAILED', { exit: code, signal: killed, stderr: stderr() })
    yield* pacer.take(reader.finish())
    yield* pacer.flush()
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

/** The last {@link LIMITS.agentErrorBytes} of stderr, without what is secret in it. */
function keepTail(child: ChildProcessWithoutNullStreams, secrets: readonly string[]): () => string {
  let kept: Buffer = Buffer.alloc(0)
  let isCut = false
  child.stderr.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([kept, chunk])
    kept = all.subarray(-LIMITS.agentErrorBytes)
    isCut ||= kept.byteLength < all.byteLength
  })
  child.stderr.on('error', () => undefined)
  return () => redact(kept.toString('utf8'), secrets, isCut)
}

/** The longest first, so that one which holds another goes whole. */
const secretsOf = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env)
    .flatMap(([name, value]) => (SECRET.test(name) && value !== '' ? [value] : []))
    .sort((a, b) => b.length - a.length)

/** @param isCut something stood before the text: the end of a secret may be its beginning */
function redact(text: string, secrets: readonly string[], isCut: boolean): string {
  let clean = text
  for (const secret of secrets) {
    clean = clean.replaceAll(secret, REDACTED)
    if (!isCut) continue
    for (let length = secret.length - 1; length > 0; length--) {
      if (!clean.startsWith(secret.slice(-length))) continue
      clean = `${REDACTED}${clean.slice(length)}`
      break
    }
  }
  return clean.slice(-LIMITS.agentErrorBytes)
}
