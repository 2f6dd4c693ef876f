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
import { delay, systemClock, until } from '@csb/core'
import { createClient, initNode, openOwner, readText, type Client, type Desk, type Flags } from '@csb/node'
import { createPorts, type Ports } from './ports.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const START_MS = 120_000
const STOP_MS = 60_000

export type NodeInit = {
  readonly name: string
  readonly ownerName?: string
  /** another node of the same owner, with the same home */
  readonly join?: Member
  /** false: a node without a home */
  readonly withHome?: boolean
  /** whom it knows of when it starts; default all that are there */
  readonly knows?: readonly Member[]
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

/** @param options `keep`: leave the folder behind when it closes */
export async function createCluster(options: { readonly keep?: boolean } = {}): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), 'csb-cluster-'))
  const members: Running[] = []
  const ports = createPorts(process.pid)
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
      const known = init.knows ?? members
      const bootstrap = known.flatMap((one) => one.addresses().slice(0, 1))
      const member = createMember(folder, identity, await settingsFor(ports, bootstrap))
      // before it starts: one that does not come up is stopped as well
      members.push(member)
      await member.start()
      return member
    },
    partition: async (...groups) => {
      for (const group of groups) {
        const others = members.filter((member) => !group.includes(member)).map(({ did }) => did)
        const inside = members.filter((member) => group.includes(member))
        await Promise.all(inside.map((member) => member.tell({ do: 'block', dids: others })))
      }
    },
    heal: async () => {
      await Promise.all(members.map((member) => member.tell({ do: 'unblock' })))
    },
    close: async () => {
      await Promise.allSettled(members.map((member) => member.stop()))
      if (options.keep !== true) await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Loopback only, free ports, found through the first node and not by multicast: the same on every machine. */
const settingsFor = async (ports: Ports, bootstrap: readonly string[]): Promise<Flags> => ({
  port: await ports.take(),
  listen: [`/ip4/127.0.0.1/tcp/${await ports.take()}`],
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

  const isUp = () => child !== undefined && child.exitCode === null && child.signalCode === null

  const ended = async (how: 'ask' | 'kill') => {
    if (child === undefined || !isUp()) return
    const leaving = child
    const gone = once(leaving, 'exit').then(() => true)
    if (how === 'kill') leaving.kill('SIGKILL')
    else if (leaving.connected) leaving.send({ do: 'stop' })
    else leaving.kill('SIGTERM')
    const late = new AbortController()
    const inTime = await Promise.race([gone, delay(STOP_MS, late.signal).then(() => false)])
    late.abort()
    if (!inTime) leaving.kill('SIGKILL')
    await gone
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
    kill: () => ended('kill'),
    stop: () => ended('ask'),
    start: async () => {
      child = fork(WORKER, [directory, JSON.stringify({ ...flags, ...placeOf(ready) })], {
        execArgv: ['--conditions=csb-source'],
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      const log = createWriteStream(logFile, { flags: 'a' })
      // on a full disk the log is what is given up, not whoever keeps it
      log.on('error', () => undefined)
      child.stdout?.pipe(log, { end: false })
      child.stderr?.pipe(log, { end: false })
      child.once('close', () => log.end())
      ready = await firstMessage(child, logFile)
      member.client = createClient(ready.url, (await readText(directory, 'token'))?.trim() ?? '')
    },
    tell: async (order) => {
      if (child === undefined || !isUp()) return
      const answered = once(child, 'message') as Promise<[{ failed?: string; error?: string }]>
      const gone = once(child, 'exit').then((): never => {
        throw new Error(`${name} ended instead of doing what it was told`)
      })
      child.send(order)
      const [answer] = await Promise.race([answered, gone])
      if (answer.failed !== undefined) throw new Error(`${name} could not ${answer.failed}: ${answer.error ?? ''}`)
    },
  }
  return member
}

/** One that was up before comes back where others know it. */
function placeOf({ url, addresses }: Ready): Flags {
  if (url === '') return {}
  return { port: Number(new URL(url).port), listen: addresses.map((address) => address.replace(/\/p2p\/.*$/, '')) }
}

async function firstMessage(child: ChildProcess, logFile: string): Promise<Ready> {
  let message: { ready?: Ready } | undefined
  child.once('message', (value) => {
    message = value as { ready?: Ready }
  })
  return until(
    async () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the node ended at once:\n${await readFile(logFile, 'utf8').catch(() => '')}`)
      return message?.ready
    },
    START_MS,
    'the node is up',
  )
}
