/** Fresh nodes for a run: real processes of the `csb` command in folders of their own, on loopback, unsealed. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createDoor, type Door } from './door.ts'

export type SpawnOptions = {
  readonly name: string
  /** the folder of a node whose owner and home this one joins */
  readonly join?: string
}

export type LocalNode = {
  readonly directory: string
  readonly door: Door
  /** Run a `csb` command on this node's folder. Resolves with its stdout, rejects where it does not exit with 0. */
  readonly command: (...args: readonly string[]) => Promise<string>
  /** Give a peer a lease on the memory of this node's home, up to a label level. */
  readonly share: (did: string, level: 'public' | 'trusted' | 'private') => Promise<void>
  readonly stop: () => Promise<void>
  /** Stop, let `work` have the folder, and start again. */
  readonly whileStopped: (work: (directory: string) => Promise<void>) => Promise<Door>
}

export type Nodes = {
  readonly spawn: (options: SpawnOptions) => Promise<LocalNode>
  /** Stop all and remove their folders. */
  readonly close: () => Promise<void>
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = ['--conditions=csb-source', join(ROOT, 'apps/node/src/main.ts')]
const START_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 60_000
const ENVIRONMENT = {
  ...process.env,
  CSB_P2P_LISTEN: '/ip4/127.0.0.1/tcp/0',
  CSB_P2P_MDNS: 'false',
  CSB_LOG_LEVEL: 'warn',
}

type Running = { readonly child: ChildProcess; readonly url: string }

export function createNodes(): Nodes {
  const nodes: LocalNode[] = []
  const folders: string[] = []
  return {
    spawn: async (options) => {
      const directory = await mkdtemp(join(tmpdir(), 'csb-conformance-'))
      folders.push(directory)
      const node = await createNode(directory, options)
      nodes.push(node)
      return node
    },
    close: async () => {
      for (const node of nodes) await node.stop()
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    },
  }
}

async function createNode(directory: string, { name, join: joined }: SpawnOptions): Promise<LocalNode> {
  const command = async (...args: readonly string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [...MAIN, ...args, '--data', directory, '--json'], {
      env: ENVIRONMENT,
    })
    return stdout
  }
  await command('init', '--name', name, '--unsealed', ...(joined === undefined ? [] : ['--join', joined]))
  const token = (await readFile(join(directory, 'owner.token'), 'utf8')).trim()
  let running = await start(directory)
  return {
    directory,
    get door() {
      return createDoor(running.url, token)
    },
    command,
    share: async (did, level) => {
      await command('share', did, '--level', level)
    },
    stop: () => stop(running.child),
    whileStopped: async (work) => {
      await stop(running.child)
      await work(directory)
      running = await start(directory)
      return createDoor(running.url, token)
    },
  }
}

/** Resolves when the node says by one JSON line that it is ready. */
async function start(directory: string): Promise<Running> {
  const child = spawn(process.execPath, [...MAIN, 'start', '--data', directory, '--port', '0', '--json'], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors = `${errors}${text.toString()}`.slice(-2000)))
  const ended = new AbortController()
  child.once('exit', (code) => ended.abort(new Error(`the node exited with ${code}: ${errors}`)))
  const lines = createInterface({ input: child.stdout })
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(START_TIMEOUT_MS)])
  try {
    for (;;) {
      const [line] = (await once(lines, 'line', { signal })) as [string]
      const ready = readReady(line)
      if (ready !== undefined) return { child, url: ready.replace(/\/$/, '') }
    }
  } catch (error) {
    child.kill('SIGKILL')
    throw ended.signal.aborted ? ended.signal.reason : error
  }
}

function readReady(line: string): string | undefined {
  try {
    const { url } = JSON.parse(line) as { url?: unknown }
    return typeof url === 'string' ? url : undefined
  } catch {
    return undefined
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await Promise.race([
    exited,
    once(AbortSignal.timeout(STOP_TIMEOUT_MS), 'abort').then(() => {
      child.kill('SIGKILL')
    }),
  ])
  await exited
}
