/** A service over a real store, with an owner, the owner's token and tokens of agents; nobody can be reached. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createFakeClock, createKeyPair, fail, type Identity, type Lease } from '@csb/core'
import {
  createChainCache,
  createToken,
  draftGrant,
  grantHash,
  locationOf,
  signGrant,
  storeGrant,
  tokenHash,
  type Card,
} from '@csb/authority'
import { createHome } from '@csb/files'
import { createRuns, createService, type Caller, type Parts } from '@csb/service'
import { openStore, type Store } from '@csb/store'
import { askGate } from '../src/gate/gates.ts'
import type { Operation } from '../src/operation.ts'
import { createPipeline } from '../src/pipeline.ts'
import { createFolding } from '../src/refusals.ts'

export const NOW = 1_800_000_000_000
export const owner = createKeyPair(new Uint8Array(32).fill(1))
export const node = createKeyPair(new Uint8Array(32).fill(2))
const agent = createKeyPair(new Uint8Array(32).fill(3))

/** What any operation does that needs an approval. */
const PROPOSING: Operation = { name: 'test.merge', input: 'FilesRefs', kind: 'write', open: 'lease', run: () => null }

export async function openRig() {
  const folder = await mkdtemp(join(tmpdir(), 'csb-service-'))
  const store = await openStore(join(folder, 'db'))
  onTestFinished(async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })
  const clock = createFakeClock(NOW)
  const home = await store.transact((tx) => createHome(tx, { owner: owner.did, origin: node.did, now: NOW }))
  const parts = partsOf(store, clock, home.id)
  const service = createService(parts)
  const pipeline = createPipeline(parts, createFolding(clock), () => undefined, createChainCache())
  const lease = (extra: Partial<Lease>): Lease => ({
    type: 'urn:csb:lease:1',
    locations: [locationOf(node.did, home.id)],
    actions: ['list', 'read', 'write', 'propose'],
    paths: ['/'],
    branches: ['*'],
    labels_max: 'sealed',
    label_tags: ['*'],
    ...extra,
  })
  const hand = async (name: string, did: string, own: Lease) => {
    const token = createToken()
    const grant = signGrant(
      draftGrant({
        type: 'scoped',
        from: { name: 'Ada', did: owner.did },
        to: { name, did },
        audience: [node.did],
        scope: ['lease'],
        level: 'request',
        now: NOW,
        ttlMs: 7 * 86_400_000,
        lease: own,
      }),
      owner,
    )
    await store.transact((tx) => storeGrant(tx, { chain: [grant], tokenHash: tokenHash(token) }))
    const caller: Caller = { kind: 'bearer', token, door: 'http' }
    const call = <T = Record<string, unknown>>(operation: string, input: object): Promise<T> =>
      service.perform(caller, operation, input) as Promise<T>
    const merge = async (from: string, into = 'main'): Promise<never> => {
      const context = await pipeline.admit(caller, PROPOSING, {}, {})
      return askGate(context, { kind: 'merge', home: home.id, from, into })
    }
    return { call, merge, lease: grantHash(grant) }
  }
  const command = lease({ actions: ['list', 'read', 'write', 'propose', 'send', 'exec'], capabilities: ['B', 'C'] })
  return {
    store,
    clock,
    home: home.id,
    service,
    person: await hand('Ada', owner.did, command),
    agent: await hand('若兰 🌸', agent.did, lease({ branches: ['runs/*', 'memory'] })),
    /** may write, not propose */
    scribe: await hand('scribe', agent.did, lease({ actions: ['list', 'read', 'write'] })),
  }
}

export type Rig = Awaited<ReturnType<typeof openRig>>

export type ShownCard = { readonly card: Card; readonly digest: string; readonly state: string }

/** The card that a refused wish opened. */
export async function cardFor(rig: Rig, wish: Promise<unknown>): Promise<Card> {
  const error = await wish.then(
    () => fail('INTERNAL', { reason: 'nothing was asked' }),
    (thrown: unknown) => thrown as { code?: string; details?: { card?: string } },
  )
  if (error.code !== 'GATE_REQUIRED') throw error as Error
  const { card } = await rig.person.call<ShownCard>('gate.show', { card: error.details?.card ?? '' })
  return card
}

function partsOf(store: Store, clock: ReturnType<typeof createFakeClock>, home: string): Parts {
  const identity: Identity = {
    v: 1,
    name: 'test',
    did: node.did,
    peer_id: node.peerId,
    owner: { name: 'Ada', did: owner.did },
    home,
    created_at: NOW,
    memory_level_map: { hot: 'hot', warm: 'warm', cold: 'cold' },
    memory_storage: 'git',
    delegations: [],
  }
  const alone = () => fail('PEER_UNREACHABLE')
  return {
    store,
    clock,
    key: node,
    identity,
    config: {},
    peers: new Proxy({} as Parts['peers'], { get: () => alone }),
    log: () => undefined,
    version: '0',
    httpUrl: () => 'http://127.0.0.1',
    agentEnvironment: {},
    runs: createRuns(),
    background: () => undefined,
  }
}
