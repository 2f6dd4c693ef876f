/** Keys, a store in a temporary folder, and grants that pass every check, for the tests of this package. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createKeyPair, type Grant, type KeyPair, type Lease } from '@csb/core'
import { openStore, type Store } from '@csb/store'
import { draftGrant, locationOf, signGrant, type GrantInit, type Party } from '@csb/authority'

export const NOW = 1_800_000_000_000
export const HOUR = 3_600_000
export const HOME = 'home_abcdefghijklmnopqrstuvwxyz'

const seeded = (byte: number): KeyPair => createKeyPair(new Uint8Array(32).fill(byte))

export const owner = seeded(1)
export const node = seeded(2)
export const agent = seeded(3)
export const helper = seeded(4)
export const otherNode = seeded(5)
export const stranger = seeded(6)

export const party = (name: string, key: KeyPair): Party => ({ name, did: key.did })

/** A lease with every permission of the node's home. */
export const wideLease = (extra: Partial<Lease> = {}): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [locationOf(node.did, HOME)],
  actions: ['list', 'read', 'write', 'propose', 'send'],
  paths: ['/'],
  branches: ['main', 'memory', 'runs/*'],
  labels_max: 'private',
  label_tags: ['health', 'work'],
  capabilities: ['B', 'C'],
  ...extra,
})

/** A grant of the owner to the agent, for the node. */
export function ownerGrant(extra: Partial<GrantInit> = {}): Grant {
  return signGrant(ownerDraft(extra), owner)
}

export const ownerDraft = (extra: Partial<GrantInit> = {}) =>
  draftGrant({
    type: 'scoped',
    from: party('Ada', owner),
    to: party('若兰 🌸', agent),
    audience: [node.did],
    scope: ['csb-protocol', 'notes'],
    level: 'execute',
    now: NOW,
    ttlMs: HOUR,
    maxDepth: 3,
    statusKey: node.did,
    ...extra,
  })

export const childDraft = (parent: Grant, extra: Partial<GrantInit> = {}) =>
  draftGrant({
    type: 'scoped',
    from: party('若兰 🌸', agent),
    to: party('helper', helper),
    audience: [node.did],
    scope: ['csb-protocol'],
    level: 'request',
    now: NOW,
    ttlMs: HOUR / 2,
    maxDepth: 1,
    parent,
    statusKey: node.did,
    ...extra,
  })

/** A grant of the agent to the helper below `parent`. */
export const childGrant = (parent: Grant, extra: Partial<GrantInit> = {}): Grant =>
  signGrant(childDraft(parent, extra), agent)

/** A store that is gone after the test. */
export async function testStore(): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-authority-'))
  const store = await openStore(join(folder, 'store'))
  onTestFinished(async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })
  return store
}

/** The same data, opened again. */
export async function reopened(store: Store): Promise<Store> {
  await store.close()
  const again = await openStore(store.directory)
  onTestFinished(() => again.close())
  return again
}

/** What was thrown, or undefined. */
export function thrownBy(work: () => unknown): unknown {
  try {
    work()
    return undefined
  } catch (error) {
    return error
  }
}

/** What a refusal looks like. */
export const refusal = (reason: string, where: { field?: string; link?: number } = {}) => ({
  code: 'GRANT_INVALID',
  details: { reason, ...where },
})
