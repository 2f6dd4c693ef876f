/**
 * The git view against `git http-backend`, in one run on one disk: clone and push of two repositories, the memory of
 * the node for a clone; and what one more note costs in a home of ten thousand. Beside them what git itself takes where
 * the server answers at once, and the ratio without that: the servers' own.
 */
import { execFile, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
const REPLAYS = 3
const NOTES = 10_000

/** Wall time and the server's own time on the processor, in ms. */
type Sample = { readonly wallMs: number; readonly cpuMs: number }
type Backend = { readonly child: ChildProcess; readonly url: string }
type NodeProcess = { readonly child: ChildProcess; readonly urls: readonly string[] }

/** Run everything and print two tables; about 90 s. */
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
      'git’s own',
      'servers’',
      'csb CPU',
      'backend CPU',
      'peak MB',
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
  row(`push of ${name} (${objects} objects)`, { ours, theirs, alone }, await memoryOf(pushing.child, 'VmHWM'))
  await stop(pushing)

  const node = await startNode(made)
  const [url = ''] = node.urls
  const before = await memoryOf(node.child, 'VmHWM')
  let count = 0
  const clone = (server: ChildProcess, from: string, ...args: string[]) =>
    timed(server, ['clone', '-q', '--single-branch', ...args, from, `${source}-clone-${count++}`])
  const theirUrl = `${backend.url}/${plain}`
  for (const [title, args] of [
    ['bare clone', ['--bare']],
    ['clone with checkout', []],
  ] as const) {
    const [first, again, other]: [Sample[], Sample[], Sample[]] = [[], [], []]
    for (let i = 0; i < CLONES; i++) {
      const branch = `runs/${plain}-${args.length}-${i}`
      const commit = (await git(['-C', source, 'commit-tree', 'main^{tree}', '-p', 'main', '-m', branch])).trim()
      await push(node.child, url, `${commit}:refs/heads/${branch}`)
      first.push(await clone(node.child, url, ...args, '--branch', branch))
      again.push(await clone(node.child, url, ...args, '--branch', branch))
      other.push(await clone(backend.child, theirUrl, ...args))
    }
    const branch = `runs/${plain}-${args.length}-0`
    const front = replay.inFrontOf(url)
    const own = await replayed(() => clone(node.child, front, ...args, '--branch', branch))
    const peak = await memoryOf(node.child, 'VmHWM')
    row(`${title} of ${name}, first of a head`, { ours: first, theirs: other, alone: own }, peak, before)
    row(`${title} of ${name}, again`, { ours: again, theirs: other, alone: own }, peak, before)
  }
  await stop(node)
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

/** As it is built, and with the setting of the container: a node from source holds its compiler as well. */
async function startNode(made: GitFolder): Promise<NodeProcess> {
  const script = fileURLToPath(new URL('git-node.ts', import.meta.url))
  const child = fork(script, [JSON.stringify(made)], { execArgv: ['--max-semi-space-size=4'] })
  const [{ urls }] = (await once(child, 'message')) as [{ urls: readonly string[] }]
  return { child, urls }
}

async function stop({ child }: NodeProcess): Promise<void> {
  child.disconnect()
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

/** In MB; NaN where the system does not tell. */
async function memoryOf({ pid }: ChildProcess, what: 'VmHWM' | 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024
}

type Samples = {
  readonly ours: readonly Sample[]
  readonly theirs: readonly Sample[]
  readonly alone: readonly Sample[]
}

function row(what: string, { ours, theirs, alone }: Samples, peak: number, idle?: number): void {
  const wall = (samples: readonly Sample[]) => median(samples.map(({ wallMs }) => wallMs))
  const cpu = (samples: readonly Sample[]) => samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / samples.length
  const whole = (...values: number[]) => values.map((value) => value.toFixed(0))
  const own = wall(alone)
  print([
    what,
    ...whole(wall(ours), wall(theirs)),
    (wall(ours) / wall(theirs)).toFixed(2),
    ...whole(own),
    // where git takes nearly all of it nothing can be said
    wall(theirs) - own < own / 4 ? '-' : ((wall(ours) - own) / (wall(theirs) - own)).toFixed(2),
    ...whole(cpu(ours), cpu(theirs), peak),
    idle === undefined ? '' : idle.toFixed(0),
  ])
}

function print([what = '', ...cells]: readonly string[]): void {
  process.stdout.write(`${what.padEnd(54)}${cells.map((cell) => cell.padStart(12)).join('')}\n`)
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
