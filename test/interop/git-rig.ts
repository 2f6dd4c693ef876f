/** A node with a home of either hash, and the git program of this machine in front of it. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { systemClock, type Lease } from '@csb/core'
import { createHome } from '@csb/files'
import {
  createClient,
  initNode,
  leaseFor,
  openOwner,
  readSettings,
  startNode,
  type Client,
  type RunningNode,
} from '@csb/node'
import { openStore } from '@csb/store'

export type Hash = 'sha1' | 'sha256'

export type GitNode = {
  readonly node: RunningNode
  readonly client: Client
  readonly home: string
  readonly token: string
  /** data folder */
  readonly folder: string
  /** a folder for work trees */
  readonly work: string
  /** address of the home, or of another one, with the token in it */
  url(token?: string, home?: string): string
  close(): Promise<void>
}

const version = spawnSync('git', ['--version'], { encoding: 'utf8' }).stdout ?? ''
const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(version) ?? []

export const HAS_GIT = Number(major) * 1000 + Number(minor) >= 2029
export const SKIPPED = 'git 2.29 or newer is not here'

/** A data folder with homes of one hash, and no node running on it. */
export type GitFolder = {
  readonly folder: string
  readonly directory: string
  readonly homes: readonly string[]
  readonly token: string
}

/** Make a data folder. @param more homes besides the first */
export async function makeGitFolder(hash: Hash, more = 0): Promise<GitFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-git-'))
  const directory = join(folder, 'node')
  const { identity, token } = await initNode({
    directory,
    name: 'alder',
    custody: 'unsealed',
    withHome: true,
    now: systemClock.now(),
  })
  const homes = hash === 'sha256' ? [identity.home ?? ''] : []
  while (homes.length <= more) homes.push(await addHome(directory, identity, hash))
  return { folder, directory, homes, token }
}

/** Start a node with an empty home. */
export async function openGitNode(hash: Hash): Promise<GitNode> {
  return startGitNode(await makeGitFolder(hash))
}

/** Start a node in a folder; closing it removes the folder. */
export async function startGitNode({ folder, directory, homes, token }: GitFolder): Promise<GitNode> {
  const [home = ''] = homes
  const settings = await readSettings(
    directory,
    { port: 0, listen: ['/ip4/127.0.0.1/tcp/0'], mdns: false, logLevel: 'silent' },
    {},
  )
  const node = await startNode(directory, settings)
  const work = join(folder, 'work')
  await mkdir(work, { recursive: true })
  return {
    node,
    client: createClient(node.url, token),
    home,
    token,
    folder: directory,
    work,
    url: (other = token, its = home) => `${node.url.replace('http://', `http://git:${other}@`)}/git/${its}.git`,
    close: async () => {
      await node.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type Git = (...args: readonly string[]) => Promise<string>
type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }

const ENVIRONMENT = {
  PATH: process.env['PATH'],
  HOME: tmpdir(),
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
}

/** Run git in a folder; rejects with what it said where it ends badly. */
export function gitIn(cwd: string): Git {
  return async (...args) => {
    const { code, stdout, stderr } = await ran(cwd, args)
    if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}: ${stderr}`)
    return stdout
  }
}

/** Run git and tell how it ended. */
export async function ran(cwd: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  try {
    const options = { cwd, env: { ...ENVIRONMENT, ...env }, maxBuffer: 64 * 1024 * 1024 }
    const { stdout, stderr } = await promisify(execFile)('git', [...args], options)
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string }
    return { code: code ?? 1, stdout: stdout ?? '', stderr: stderr ?? '' }
  }
}

/** What a session on all of a home may do by git. */
export const SESSION = {
  actions: ['list', 'read', 'write', 'propose'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
} satisfies Partial<Lease>

/** A session of its own, in a clone of a branch. @param more members of its lease, over {@link SESSION} */
export async function sessionOn(
  rig: GitNode,
  branch: string,
  more: Partial<Lease> = {},
  options: readonly string[] = [],
) {
  const desk = {
    directory: rig.folder,
    client: rig.client,
    owner: await openOwner(rig.folder, undefined),
    now: systemClock.now(),
  }
  const { token } = await leaseFor(desk, { name: 'agent', lease: { ...SESSION, ...more }, ttlMs: 600_000 })
  const folder = await mkdtemp(join(rig.work, 'session-'))
  await gitIn(rig.work)('clone', '-q', ...options, '--branch', branch, rig.url(token), folder)
  return { folder, git: gitIn(folder), token }
}

/** Write files into a work tree and commit them. @returns id of the commit */
export async function commitIn(
  cwd: string,
  files: Readonly<Record<string, string | Uint8Array>>,
  message: string,
): Promise<string> {
  const git = gitIn(cwd)
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true })
    await writeFile(join(cwd, path), content)
  }
  await git('add', '-A')
  await git('commit', '-q', '-m', message)
  return (await git('rev-parse', 'HEAD')).trim()
}

/** An empty repository with a first branch `main`. */
export async function newRepository(cwd: string, hash: Hash): Promise<Git> {
  await mkdir(cwd, { recursive: true })
  execFileSync('git', ['init', '-q', '-b', 'main', `--object-format=${hash}`, cwd], { env: ENVIRONMENT })
  return gitIn(cwd)
}

async function addHome(
  directory: string,
  { did, owner }: { readonly did: string; readonly owner: { readonly did: string } },
  hash: Hash,
): Promise<string> {
  const store = await openStore(join(directory, 'db'))
  try {
    const home = await store.transact((tx) =>
      createHome(tx, { hash, owner: owner.did, origin: did, now: systemClock.now() }),
    )
    return home.id
  } finally {
    await store.close()
  }
}
