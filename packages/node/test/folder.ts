/** A folder that goes when the test ends, a node in it, settings that listen at any free port of loopback. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '@csb/core'
import { readSettings, type Flags, type Settings } from '../src/config.ts'
import type { RunningNode } from '../src/create-node.ts'
import { startNode } from '../src/start-node.ts'
import { initNode, type Initialised, type InitOptions } from '../src/init-node.ts'

export async function createFolder(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'csb-node-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  return join(parent, 'node')
}

export const made = (directory: string, options: Partial<InitOptions> = {}): Promise<Initialised> =>
  initNode({ directory, name: 'alder', custody: 'unsealed', withHome: true, now: systemClock.now(), ...options })

const LOOPBACK: Flags = { port: 0, listen: ['/ip4/127.0.0.1/tcp/0'], mdns: false, logLevel: 'silent' }

export const settingsIn = (directory: string, flags: Flags = {}): Promise<Settings> =>
  readSettings(directory, { ...LOOPBACK, ...flags }, {})

/** Started, and stopped when the test ends. */
export async function started(directory: string, flags: Flags = {}): Promise<RunningNode> {
  const node = await startNode(directory, await settingsIn(directory, flags))
  onTestFinished(() => node.stop())
  return node
}
