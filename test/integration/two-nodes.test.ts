import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { until } from '@csb/core'
import { createPorts } from '../../apps/harness/src/ports.ts'
import { ROOT } from '../structure/house.ts'

type Scripts = { readonly scripts: Readonly<Record<string, string>> }
type Peers = { readonly items: readonly { readonly did: string; readonly connected: boolean }[] }
type Task = { readonly task: { readonly status: { readonly state: string } } }

const MEET_MS = 60_000
const MDNS = { group: '224.0.0.251', port: 5353 }

const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Scripts
const folder = await mkdtemp(join(tmpdir(), 'csb-two-'))
type Child = ChildProcessByStdio<null, Readable, Readable>

const children: Child[] = []

afterAll(async () => {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    }),
  )
  await rm(folder, { recursive: true, force: true })
})

/** What `npm run <script> -- <args>` runs. */
function script(name: 'start' | 'csb', args: readonly string[]): Child {
  const [, ...words] = (scripts[name] ?? '').split(' ')
  const kept = Object.entries(process.env).filter(([variable]) => !/^(?:CSB_|npm_|INIT_CWD$)/.test(variable))
  const env = { ...Object.fromEntries(kept), CSB_LOG_LEVEL: 'silent' }
  return spawn(process.execPath, [...words, ...args], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
}

async function csb<T>(...args: readonly string[]): Promise<T> {
  const child = script('csb', [...args, '--json'])
  const [out] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return JSON.parse(out) as T
}

/** Resolves when it has said that it is up. */
async function start(name: string, ...args: readonly string[]): Promise<string> {
  const data = join(folder, name)
  const child = script('start', ['--data', data, ...args])
  children.push(child)
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await until(
    () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${said}`)
      return said.includes('is up.')
    },
    MEET_MS,
    `${name} is up`,
  )
  return data
}

/** A node has its port and the two after it. */
const ports = createPorts(process.pid)
const freePort = () => ports.take(3)

/** Whether this machine carries the multicast by which nodes find each other. */
async function hasMulticast(): Promise<boolean> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  const heard = once(socket, 'message').then(
    () => true,
    () => false,
  )
  try {
    socket.bind(MDNS.port)
    await once(socket, 'listening')
    socket.addMembership(MDNS.group)
    // an empty question: whoever else listens there ignores it
    socket.send(Buffer.alloc(12), MDNS.port, MDNS.group)
    return await Promise.race([heard, once(AbortSignal.timeout(2000), 'abort').then(() => false)])
  } catch {
    return false
  } finally {
    socket.close()
  }
}

const isReachable = await hasMulticast()

test.runIf(isReachable)('two nodes started by hand find each other on one machine and exchange a message', async () => {
  const nas = await start('nas', '--name', 'nas', '--port', String(await freePort()))
  const friend = await start('friend', '--name', 'friend', '--port', String(await freePort()))
  const { did } = await csb<{ did: string }>('status', '--data', friend)
  await until(
    async () => {
      const { items } = await csb<Peers>('peers', '--data', nas)
      return items.some((peer) => peer.did === did && peer.connected)
    },
    MEET_MS,
    'they have found each other',
  )

  const clerk = ['--', 'node', 'apps/harness/agents/clerk.mjs']
  const attach = [
    'agent',
    'attach',
    'clerk',
    '--data',
    friend,
    '--skill',
    'report.write',
    '--accept',
    'anyone',
    '--json',
    ...clerk,
  ]
  const attached = script('csb', attach)
  const [out] = await Promise.all([text(attached.stdout), once(attached, 'exit')])
  expect(JSON.parse(out)).toMatchObject({ id: 'clerk' })
  await until(
    async () => {
      const { items } = await csb<Peers>('find', '--capability', 'report.write', '--data', nas)
      return items.some((found) => found.did === did)
    },
    MEET_MS,
    'the agent is found by what it can do',
  )
  const { task } = await csb<Task>('send', 'clerk', 'Good morning', '--to', did, '--data', nas)
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(JSON.stringify(task)).toContain('processed without authority: absent')
})

test.skipIf(isReachable)('nodes on one machine need multicast to find each other, and this machine has none', () => {
  expect(isReachable).toBe(false)
})
