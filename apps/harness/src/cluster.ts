/**
 * Starts real node processes on this machine, kills them, starts them again, cuts them off from one another, and
 * keeps what they log. Everything lies in one temporary folder that goes when the cluster closes.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock, until } from '@csb/core'
import { createClient, initNode, openOwner, readText, type Client, type Desk, type Flags } from '@csb/node'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const START_MS = 30_000
const STOP_MS = 20_000

export type NodeInit = {
  readonly name: string
  readonly ownerName?: string
  /** another node of the same owner, with the same home */
  readonly join?: Member
  /** false: a node without a home */
  readonly withHome?: boolean
}

export type Member = {
  readonly name: string
  readonly directory: string
  readonly did: string
  readonly owner: { readonly name: string; readonly did: string }
  readonly home: string | null
  /** where others reach it; changes when it is started again */
  addresses(): readonly string[]
  client: Client
  /** with the owner's key: what only the owner may sign */
  desk(): Promise<Desk>
  /** what it logged so far */
  log(): Promise<string>
  /** stop it without a word, as a power cut does */
  kill(): Promise<void>
  stop(): Promise<void>
  /** start it again on the same folder */
  start(): Promise<void>
}

export type Cluster = {
  readonly directory: string
  readonly members: readonly Member[]
  add(init: NodeInit): Promise<Member>
  /** cut the groups off from one another */
  partition(...groups: readonly (readonly Member[])[]): Promise<void>
  heal(): Promise<void>
  close(): Promise<void>
}

type Ready = { readonly url: string; readonly addresses: readonly string[] }

/** @param flags for every node, above those the harness sets */
export async function createCluster(flags: Flags = {}): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), 'csb-cluster-'))
  const members: Running[] = []
  return {
    directory,
    members,
    add: async (init) => {
      const folder = join(directory, init.name)
      const { identity } = await initNode({
        directory: folder,
        name: init.name,
        ownerName: init.ownerName ?? `${init.name}'s owner`,
        custody: 'unsealed',
        withHome: init.withHome !== false,
        ...(init.join === undefined ? {} : { join: { directory: init.join.directory } }),
        now: systemClock.now(),
      })
      const bootstrap = members.flatMap((member) => member.addresses().slice(0, 1))
      const member = createMember(folder, identity, { ...defaults(bootstrap), ...flags })
      await member.start()
      members.push(member)
      return member
    },
    partition: async (...groups) => {
      for (const group of groups) {
        const others = members.filter((member) => !group.includes(member)).map(({ did }) => did)
        await Promise.all(group.map((member) => (member as Running).tell({ do: 'block', dids: others })))
      }
    },
    heal: async () => {
      await Promise.all(members.map((member) => member.tell({ do: 'unblock' })))
    },
    close: async () => {
      await Promise.allSettled(members.map((member) => member.stop()))
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Loopback only, any free port, found through the first node and not by multicast: the same on every machine. */
const defaults = (bootstrap: readonly string[]): Flags => ({
  port: 0,
  listen: ['/ip4/127.0.0.1/tcp/0'],
  bootstrap,
  mdns: false,
  logLevel: 'info',
})

type Running = Member & { tell(order: object): Promise<void> }
type Named = Pick<Member, 'name' | 'did' | 'owner' | 'home'>

function createMember(directory: string, { name, did, owner, home }: Named, flags: Flags): Running {
  const logFile = join(directory, 'node.log')
  let child: ChildProcess | undefined
  let ready: Ready = { url: '', addresses: [] }

  const ended = async (signal: NodeJS.Signals | 'ask') => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const leaving = child
    const exit = once(leaving, 'exit')
    if (signal === 'ask') leaving.send({ do: 'stop' })
    else leaving.kill(signal)
    const timer = setTimeout(() => leaving.kill('SIGKILL'), STOP_MS)
    await exit
    clearTimeout(timer)
  }

  const member: Running = {
    name,
    directory,
    did,
    owner,
    home,
    client: createClient('', ''),
    addresses: () => ready.addresses,
    desk: async () => ({
      directory,
      client: member.client,
      owner: await openOwner(directory, undefined),
      now: systemClock.now(),
    }),
    log: () => readFile(logFile, 'utf8').catch(() => ''),
    kill: () => ended('SIGKILL'),
    stop: () => ended('ask'),
    start: async () => {
      child = fork(WORKER, [directory, JSON.stringify(flags)], {
        execArgv: ['--conditions=csb-source'],
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      const log = createWriteStream(logFile, { flags: 'a' })
      child.stdout?.pipe(log, { end: false })
      child.stderr?.pipe(log, { end: false })
      ready = await firstMessage(child, logFile)
      member.client = createClient(ready.url, (await readText(directory, 'token'))?.trim() ?? '')
    },
    tell: async (order) => {
      const told = child
      if (told === undefined) return
      const answer = once(told, 'message')
      told.send(order)
      await answer
    },
  }
  return member
}

async function firstMessage(child: ChildProcess, logFile: string): Promise<Ready> {
  let message: { ready?: Ready } | undefined
  child.once('message', (value) => {
    message = value as { ready?: Ready }
  })
  return until(
    async () => {
      if (child.exitCode !== null)
        throw new Error(`the node ended at once:\n${await readFile(logFile, 'utf8').catch(() => '')}`)
      return message?.ready
    },
    START_MS,
    'the node is up',
  )
}
