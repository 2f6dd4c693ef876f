/** Runs the csb command as a person does: a process of its own, its output, its exit code. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { deadline } from '@csb/core'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
/** Many short processes of the same code: compiled once. */
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/csb-compiled', import.meta.url))
const READY_MS = 120_000
const QUIET = { CSB_P2P_LISTEN: '/ip4/127.0.0.1/tcp/0', CSB_P2P_MDNS: 'false', CSB_LOG_LEVEL: 'silent' }

export type Ran = { readonly code: number | null; readonly out: string; readonly err: string }
export type Setting = { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly input?: string | Uint8Array }

/** The environment of a test, without what npm or a person put there for a node. */
export function environment(more: NodeJS.ProcessEnv = QUIET): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:CSB_|npm_|INIT_CWD$)/.test(name))
  return { ...Object.fromEntries(kept), NODE_COMPILE_CACHE: CACHE, ...more }
}

const running = new Set<ChildProcessWithoutNullStreams>()
// a test that fails stops nothing
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

function begin(args: readonly string[], { env = {}, cwd }: Setting): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, ['--conditions=csb-source', MAIN, ...args], {
    env: environment({ ...QUIET, ...env }),
    cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Resolves when the command has ended. */
export async function csb(args: readonly string[], setting: Setting = {}): Promise<Ran> {
  const child = begin(args, setting)
  child.stdin.end(setting.input ?? '')
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  return { code, out, err }
}

export type Running = {
  readonly ready: Readonly<Record<string, unknown>>
  readonly pid: number
  /** @returns its exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** A `csb start` that has said by its line of JSON that it is up. */
export async function csbStart(args: readonly string[], setting: Setting = {}): Promise<Running> {
  const child = begin(['start', '--json', ...args], setting)
  child.stdin.end()
  const exited = once(child, 'exit') as Promise<[number | null]>
  const complaint = text(child.stderr)
  const lines = createInterface({ input: child.stdout })
  const line = once(lines, 'line', { signal: deadline(READY_MS) }) as Promise<[string]>
  const early = exited.then(async ([code]): Promise<never> => {
    throw new Error(`csb start ended with ${code}: ${await complaint}`)
  })
  early.catch(() => undefined)
  const [ready] = await Promise.race([line, early])
  return {
    ready: JSON.parse(ready) as Record<string, unknown>,
    pid: child.pid ?? 0,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      return (await exited)[0]
    },
  }
}
