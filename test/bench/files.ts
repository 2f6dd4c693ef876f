/**
 * The git view against `git http-backend`, in one run on one disk: clone and push of two repositories, the memory of
 * the node for a clone; and what one more note costs in a home of ten thousand.
 *
 * `floor` is what git itself takes where a server says the same bytes at once: no server gets below that, and the ratio
 * beside it is the least there can be. `servers'` is the ratio without it.
 *
 * The node is the built command as it is started, a process of its own. Its memory is what the system says: `peak` is
 * the most that was resident (VmHWM) while it served what the row and those above it of the same kind tell, the file of
 * the program with it; `own` of that what stands behind no file; `idle` the resident before the first request.
 */
import { execFile, fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createKeyPair } from '@csb/core'
import { createHome } from '@csb/files'
import { createNotes } from '@csb/memory'
import { openStore, type Store } from '@csb/store'
import { makeGitFolder, type GitFolder } from '../interop/git-rig.ts'
import { createReplay, type Replay } from './git-replay.ts'
import { makeEmpty, makeRepository, type Recipe } from './git-repositories.ts'

const THOUSAND: Recipe = { files: 1_000, commits: 21, perCommit: 15, folders: 20 }
const MANY: Recipe = { files: 1_200, commits: 400, perCommit: 4, folders: 40 }
const CLONES = 7
const PUSHES = 3
const REPLAYS = 5
const STARTS = 3
/** As package.json and the container have it. */
const NODE_FLAGS = ['--max-semi-space-size=1', '--heap-growing-percent=100']
const NOTES = 10_000

/** Wall time and the server's own time on the processor, in ms. */
type Sample = { readonly wallMs: number; readonly cpuMs: number }
type Backend = { readonly child: ChildProcess; readonly url: string }
type NodeProcess = {
  readonly child: ChildProcess
  readonly urls: readonly string[]
  /** in MB */
  readonly idle: number
}

/** Run everything and print two tables; about two minutes. */
export async function benchFiles(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-'))
  try {
    const child = fork(fileURLToPath(new URL('git-backend.ts', import.meta.url)), [folder])
    const [{ url }] = (await once(child, 'message')) as [{ url: string }]
    const backend = { child, url }
    const replay = await createReplay()
    print([
      '',
      'csb ms',
      'backend ms',
      'ratio',
      'floor ms',
      'floor',
      'servers’',
      'csb CPU',
      'backend CPU',
      'peak MB',
      'own MB',
      'idle MB',
    ])
    await benchRepository(folder, backend, replay, '1,000 files', THOUSAND)
    await benchRepository(folder, backend, replay, '5,000 objects', MANY)
    replay.close()
    child.disconnect()
    await benchNotes(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function benchRepository(
  folder: string,
  backend: Backend,
  replay: Replay,
  name: string,
  recipe: Recipe,
): Promise<void> {
  const plain = name.replaceAll(/\W/g, '-')
  const source = join(folder, plain)
  const objects = makeRepository(source, recipe)
  const made = await makeGitFolder('sha256', PUSHES)
  const pushing = await startNode(made)
  const [, ...empty] = pushing.urls
  let head = (await git(['-C', source, 'rev-parse', 'main'])).trim()
  const push = (server: ChildProcess, url: string, spec = 'main:refs/heads/runs/bench') =>
    timed(server, ['-C', source, 'push', '-q', url, spec])
  const ours: Sample[] = []
  const theirs: Sample[] = []
  for (const [i, url] of empty.entries()) {
    makeEmpty(`${source}-${i}`)
    ours.push(await push(pushing.child, url))
    theirs.push(await push(backend.child, `${backend.url}/${plain}-${i}`))
  }
  const through = replay.inFrontOf(pushing.urls[0] ?? '')
  const alone = await replayed(() => push(pushing.child, through))
  row(`push of ${name} (${objects} objects)`, { ours, theirs, alone }, await memoryOf(pushing))
  await stop(pushing)

  let count = 0
  const clone = (server: ChildProcess, from: string, ...args: string[]) =>
    timed(server, ['clone', '-q', '--single-branch', ...args, from, `${source}-clone-${count++}`])
  for (const [title, args] of [
    ['bare clone', ['--bare']],
    ['clone with checkout', []],
  ] as const) {
    const cloneOurs = ({ child }: NodeProcess, from: string) => clone(child, from, ...args, '--branch', 'runs/bench')
    const [cold, first, again, other]: [Sample[], Sample[], Sample[], Sample[]] = [[], [], [], []]
    for (let i = 0; i < STARTS - 1; i++) {
      const node = await startNode(made)
      cold.push(await cloneOurs(node, node.urls[0] ?? ''))
      await stop(node)
    }
    const node = await startNode(made)
    const [url = ''] = node.urls
    cold.push(await cloneOurs(node, url))
    const afterCold = await memoryOf(node)
    for (let i = 0; i < CLONES; i++) {
      head = (await git(['-C', source, 'commit-tree', 'main^{tree}', '-p', head, '-m', `more ${i}`])).trim()
      await push(node.child, url, `${head}:refs/heads/runs/bench`)
      first.push(await cloneOurs(node, url))
      again.push(await cloneOurs(node, url))
      other.push(await clone(backend.child, `${backend.url}/${plain}`, ...args))
    }
    const afterAll = await memoryOf(node)
    const front = replay.inFrontOf(url)
    const own = await replayed(() => cloneOurs(node, front))
    row(`${title} of ${name}, the first since the start`, { ours: cold, theirs: other, alone: own }, afterCold)
    row(`${title} of ${name}, the first of a head`, { ours: first, theirs: other, alone: own }, afterAll)
    row(`${title} of ${name}, again`, { ours: again, theirs: other, alone: own }, afterAll)
    await stop(node)
  }
  await rm(made.folder, { recursive: true, force: true })
}

/** What git takes when it is answered at once; the first time somebody else answers. */
async function replayed(run: () => Promise<Sample>): Promise<Sample[]> {
  await run()
  const samples: Sample[] = []
  for (let i = 0; i < REPLAYS; i++) samples.push(await run())
  return samples
}

/** One note more, where there are many: how long, how many bytes. */
async function benchNotes(folder: string): Promise<void> {
  const store = await openStore(join(folder, 'notes', 'db'))
  const key = createKeyPair()
  const home = await store.transact((tx) => createHome(tx, { owner: key.did, origin: key.did, now: 1_800_000_000_000 }))
  const write = (count: number, now: number) =>
    store.transact((tx) =>
      createNotes(tx, {
        home: home.id,
        inputs: Array.from({ length: count }, (_, i) => ({
          entry: { content: `note ${now} ${i}`, type: 'lesson', level: 'L2' },
        })),
        actor: key.did,
        author: { name: 'A', did: key.did },
        message: 'notes',
        trailers: {},
        now,
      }),
    )
  for (let at = 0; at < NOTES; at += 100) await write(100, 1_800_000_000_000 + at * 60_000)
  const before = await bytesIn(store)
  const times: number[] = []
  for (let i = 0; i < 100; i++) {
    const began = performance.now()
    await write(1, 1_900_000_000_000 + i * 60_000)
    times.push(performance.now() - began)
  }
  const bytes = ((await bytesIn(store)) - before) / 100
  print(['', 'ms', 'bytes written'])
  print([`one more note among ${NOTES}`, median(times).toFixed(2), bytes.toFixed(0)])
  await store.close()
}

/** All keys and values together: what a synced batch adds. */
async function bytesIn(store: Store): Promise<number> {
  let bytes = 0
  for await (const [k, value] of store.db.iterator()) bytes += Buffer.byteLength(k) + value.byteLength
  return bytes
}

/** The built command, and what of its memory counts from here on. */
async function startNode({ directory, token, homes }: GitFolder): Promise<NodeProcess> {
  const command = fileURLToPath(new URL('../../apps/node/dist/main.js', import.meta.url))
  const start = [command, 'start', '--json', '--data', directory, '--port', '0', '--no-mdns']
  const child = spawn(process.execPath, [...NODE_FLAGS, ...start], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const { url } = JSON.parse(line) as { url: string }
  const front = url.replace('http://', `http://git:${token}@`)
  // the most that was resident while it started is not asked for
  await writeFile(`/proc/${child.pid}/clear_refs`, '5').catch(() => undefined)
  const idle = await statusOf(child, 'VmRSS')
  return { child, idle, urls: homes.map((home) => `${front}/git/${home}.git`) }
}

async function stop({ child }: NodeProcess): Promise<void> {
  child.kill()
  await once(child, 'exit')
}

async function git(args: readonly string[]): Promise<string> {
  const person = { NAME: 'A', EMAIL: 'a@b', DATE: '1800000000 +0000' }
  const people = ['AUTHOR', 'COMMITTER'].flatMap((role) =>
    Object.entries(person).map(([what, value]) => [`GIT_${role}_${what}`, value]),
  )
  const env = {
    PATH: process.env['PATH'],
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    ...Object.fromEntries(people),
  }
  return (await promisify(execFile)('git', [...args], { env })).stdout
}

async function timed(server: ChildProcess, args: readonly string[]): Promise<Sample> {
  const before = await cpuMsOf(server)
  const began = performance.now()
  await git(args)
  const wallMs = performance.now() - began
  return { wallMs, cpuMs: (await cpuMsOf(server)) - before }
}

/** Of a process and those it started and waited for, in steps of 10 ms; NaN where the system does not tell. */
async function cpuMsOf({ pid }: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0)
}

type Memory = { readonly peak: number; readonly own: number; readonly idle: number }

/** In MB. */
async function memoryOf({ child, idle }: NodeProcess): Promise<Memory> {
  const peak = await statusOf(child, 'VmHWM')
  return { peak, own: peak - (await statusOf(child, 'RssFile')), idle }
}

/** In MB; NaN where the system does not tell. */
async function statusOf({ pid }: ChildProcess, what: 'VmHWM' | 'VmRSS' | 'RssFile'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024
}

type Samples = {
  readonly ours: readonly Sample[]
  readonly theirs: readonly Sample[]
  readonly alone: readonly Sample[]
}

function row(what: string, { ours, theirs, alone }: Samples, { peak, own, idle }: Memory): void {
  const wall = (samples: readonly Sample[]) => median(samples.map(({ wallMs }) => wallMs))
  const cpu = (samples: readonly Sample[]) => samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / samples.length
  const whole = (...values: number[]) => values.map((value) => value.toFixed(0))
  const floor = wall(alone)
  print([
    what,
    ...whole(wall(ours), wall(theirs)),
    (wall(ours) / wall(theirs)).toFixed(2),
    ...whole(floor),
    (floor / wall(theirs)).toFixed(2),
    // where git takes nearly all of it nothing can be said
    wall(theirs) - floor < floor / 4 ? '-' : ((wall(ours) - floor) / (wall(theirs) - floor)).toFixed(2),
    ...whole(cpu(ours), cpu(theirs), peak, own, idle),
  ])
}

function print([what = '', ...cells]: readonly string[]): void {
  process.stdout.write(`${what.padEnd(60)}${cells.map((cell) => cell.padStart(12)).join('')}\n`)
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
