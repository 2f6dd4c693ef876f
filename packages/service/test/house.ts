/** Whole services over real stores, with real keys, grants and agent commands, joined by a network in memory. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import {
  createFakeClock,
  createKeyPair,
  fail,
  isNodeError,
  newId,
  until,
  type AgentRecord,
  type AgentsAttach,
  type Clock,
  type Config,
  type FakeClock,
  type Grant,
  type KeyPair,
  type Lease,
} from '@csb/core'
import {
  createToken,
  draftGrant,
  holderOf,
  readRecords,
  signApproval,
  signGrant,
  storeGrant,
  tokenHash,
  trust,
  type Card,
  type GrantInit,
} from '@csb/authority'
import { getTask } from '@csb/agents'
import { createHome } from '@csb/files'
import { key, openStore, type Store } from '@csb/store'
import { createRuns, createService, type Caller, type Parts, type Service } from '../src/index.ts'
import type { Network } from './network.ts'

export const HOUR = 3_600_000
export const NOW = 1_800_000_000_000
const AGENT = fileURLToPath(new URL('fixtures/agent.mjs', import.meta.url))

export type House = {
  readonly name: string
  readonly key: KeyPair
  readonly owner: KeyPair
  readonly home: string
  readonly clock: Clock
  readonly store: Store
  readonly parts: Parts
  readonly service: Service
  readonly logged: string[]
  /** the owner's command line */
  readonly owning: Caller
  /** a token with what is left of everything after `lease` */
  readonly leased: (lease?: Partial<Lease>, grant?: Partial<GrantInit>) => Promise<Caller & { readonly hash: string }>
  /** what the owner signed, kept here and shown by this node where it asks elsewhere */
  readonly grant: (init: Partial<GrantInit> & Pick<GrantInit, 'to'>) => Promise<Grant>
  /** forget notes as the owner does: ask, and sign what the card says */
  readonly forget: (ids: readonly string[], reason?: string) => Promise<Forgot>
  readonly owned: <T = Record<string, unknown>>(operation: string, input?: object) => Promise<T>
  readonly dump: (isLeftOut?: (fullKey: string) => boolean) => Promise<Record<string, string>>
  readonly records: () => Promise<readonly Told[]>
  readonly idle: () => Promise<unknown>
  /** stop, and start again on the same folder */
  readonly reopen: () => Promise<House>
}

export type Forgot = {
  readonly card: string
  readonly commit: string
  readonly forgotten: readonly string[]
  readonly report: readonly { readonly id: string; readonly records: number; readonly remains: readonly string[] }[]
}

/** What the record says of one act. */
export type Told = {
  readonly lease: string | null
  readonly seq: number
  readonly operation: string
  readonly outcome: string
  readonly code: string | null
  readonly actor: string | null
  readonly run: string | null
  readonly reads: readonly { readonly path: string }[]
  readonly effect: Record<string, unknown>
}

export type HouseInit = {
  readonly name?: string
  readonly owner?: KeyPair
  readonly key?: KeyPair
  readonly home?: string
  readonly clock?: Clock
  readonly config?: Config
  readonly network?: Network
  /** an existing folder to open again */
  readonly folder?: string
}

const isOfRecord = (fullKey: string): boolean => /^(?:r[hpncrlu]\/|m\/record$)/.test(fullKey)

export async function createHouse(init: HouseInit = {}): Promise<House> {
  const { name = 'nas', owner = createKeyPair(), key: node = createKeyPair(), clock = createFakeClock(NOW) } = init
  const folder = init.folder ?? (await mkdtemp(join(tmpdir(), 'csb-service-')))
  const store = await openStore(join(folder, 'db'))
  const isNew = !store.view().has(key('meta', 'node-grant'))
  const home = isNew
    ? (
        await store.transact((tx) =>
          createHome(tx, {
            owner: owner.did,
            origin: node.did,
            now: clock.now(),
            ...(init.home === undefined ? {} : { id: init.home }),
          }),
        )
      ).id
    : (init.home ?? '')
  const person = { name: `${name}'s owner`, did: owner.did }
  const everything: Lease = {
    type: 'urn:csb:lease:1',
    locations: [`nas://*/${home}`, `nas://${node.peerId}/*`],
    actions: ['list', 'read', 'write', 'propose', 'snapshot', 'send', 'exec'],
    paths: ['/'],
    branches: ['*'],
    labels_max: 'sealed',
    label_tags: ['*'],
    capabilities: ['B', 'C'],
  }

  const sign = (more: Partial<GrantInit> & Pick<GrantInit, 'to'>) =>
    signGrant(
      draftGrant({
        type: 'global',
        from: person,
        audience: ['*'],
        scope: ['*'],
        level: 'request',
        now: clock.now(),
        ttlMs: null,
        statusKey: node.did,
        ...more,
      }),
      owner,
    )

  const token = createToken()
  await store.transact((tx) => {
    if (isNew) {
      trust(tx, { did: owner.did, name: person.name, ceiling: 'override', clearance: { level: 'sealed', tags: ['*'] } })
      const grant = sign({
        to: { name, did: node.did },
        maxDepth: 2,
        lease: { ...everything, locations: [`nas://*/${home}`], max_children: 1000 },
      })
      tx.putJson(key('meta', 'node-grant'), storeGrant(tx, { chain: [grant] }))
    }
    const command = sign({ to: person, audience: [node.did], lease: everything })
    storeGrant(tx, { chain: [command], tokenHash: tokenHash(token) })
  })

  const background = new Set<Promise<unknown>>()
  const logged: string[] = []
  const parts: Parts = {
    store,
    clock,
    key: node,
    identity: {
      v: 1,
      name,
      did: node.did,
      peer_id: node.peerId,
      owner: person,
      home,
      created_at: clock.now(),
      memory_level_map: { hot: 'hot', warm: 'warm', cold: 'cold' },
      memory_storage: 'files',
      delegations: [],
    },
    config: init.config ?? {},
    peers: init.network?.peersOf(node) ?? noPeers(),
    log: (_level, event, fields) => logged.push(`${event} ${JSON.stringify(fields ?? {})}`),
    version: '0.0.0',
    httpUrl: () => 'http://127.0.0.1:7480',
    agentEnvironment: { PATH: process.env['PATH'] ?? '' },
    runs: createRuns(),
    background: (work) => {
      const kept = work.catch((error: unknown) => logged.push(`background ${String(error)}`))
      background.add(kept)
      void kept.finally(() => background.delete(kept))
    },
  }
  const service = createService(parts)
  init.network?.join(node.did, service)
  const owning: Caller = { kind: 'bearer', token, door: 'http' }
  const idle = async () => {
    for (const run of parts.runs.active.values()) run.abort.abort()
    while (background.size > 0) await Promise.allSettled(background)
  }
  onTestFinished(async () => {
    await idle()
    await service.close()
    if (store.db.status === 'open') await store.close()
    await rm(folder, { recursive: true, force: true })
  })

  const owned = <T>(operation: string, input: object = {}) => service.perform(owning, operation, input) as Promise<T>

  return {
    name,
    key: node,
    owner,
    home,
    clock,
    store,
    parts,
    service,
    logged,
    owning,
    idle,
    forget: async (ids, reason) => {
      const card = await cardFor(owned('memory.forget', { ids, ...(reason === undefined ? {} : { reason }) }), owned)
      const now = clock.now()
      return owned('gate.approve', {
        card: card.id,
        approval: signApproval({ card, decision: 'approve', shownAt: now, now }, owner),
      })
    },
    leased: async (lease = {}, grant = {}) => {
      const made = createToken()
      const signed = sign({
        to: { name: 'agent', did: createKeyPair().did },
        audience: [node.did],
        type: 'scoped',
        scope: ['lease'],
        ttlMs: HOUR,
        lease: { ...everything, capabilities: [], ...lease },
        ...grant,
      })
      const { hash } = await owned<{ hash: string }>('authority.accept', { grant: signed, token_hash: tokenHash(made) })
      return { kind: 'bearer', token: made, door: 'http', hash }
    },
    reopen: async () => {
      await idle()
      await store.close()
      return createHouse({ ...init, name, owner, key: node, clock, home, folder })
    },
    grant: async (more) => {
      const signed = sign(more)
      await store.transact((tx) => storeGrant(tx, { chain: [signed] }))
      return signed
    },
    owned,
    dump: async (isLeftOut = isOfRecord) => {
      // what is written behind an answer is there as well
      await store.transact(() => undefined)
      const found: Record<string, string> = {}
      for await (const [k, v] of store.db.iterator()) if (!isLeftOut(k)) found[k] = Buffer.from(v).toString('hex')
      return found
    },
    records: async () => {
      const items = await readRecords(store.view(), { limit: 10_000 })
      return items.map(({ header, payload }) => ({
        ...header,
        reads: payload?.reads ?? [],
        effect: { ...payload?.effect },
      }))
    },
  }
}

export type Holder = Caller & { readonly token: string }

/** A lease whose holder's key is made of its token, as the owner's command makes it. */
export async function holdingIn(house: House, lease: Partial<Lease>): Promise<Holder & { readonly hash: string }> {
  const token = createToken()
  const grant = await house.grant({
    type: 'scoped',
    scope: ['lease'],
    ttlMs: HOUR,
    maxDepth: 2,
    to: { name: 'builder', did: holderOf(token).did },
    audience: [house.key.did],
    lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${house.home}`], actions: ['list'], ...lease },
  })
  const { hash } = await house.owned<{ hash: string }>('authority.accept', { grant, token_hash: tokenHash(token) })
  return { kind: 'bearer', token, door: 'http', hash }
}

/** The card that a refused wish opened. */
export async function cardFor(wish: Promise<unknown>, owned: House['owned']): Promise<Card> {
  const error = await wish.then(
    () => fail('INTERNAL', { reason: 'nothing was asked' }),
    (thrown: unknown) => thrown,
  )
  if (!isNodeError(error, 'GATE_REQUIRED')) throw error
  return (await owned<{ card: Card }>('gate.show', { card: error.details['card'] })).card
}

export const visitor = (did: string): Caller => ({ kind: 'peer', did, door: 'libp2p' })
export const nobody: Caller = { kind: 'nobody', door: 'http' }

/** Attach the test agent. */
export async function attach(house: House, more: Partial<AgentsAttach> = {}): Promise<void> {
  await house.owned('agents.attach', {
    id: 'clerk',
    name: 'Clerk',
    description: 'does what the first word says',
    command: [process.execPath, AGENT],
    skills: [{ id: 'report.write', name: 'Report', description: 'writes' }],
    accept: 'anyone',
    ...more,
  })
}

export type Task = {
  readonly id: string
  readonly contextId: string
  readonly status: { readonly state: string; readonly message?: { readonly parts: { readonly text?: string }[] } }
  readonly metadata?: Record<string, Record<string, unknown>>
  readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[]
}

export const messageOf = (text: string, more: object = {}) => ({
  messageId: newId('message', NOW),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})

/** What the agent showed of itself: its environment and its input. */
export function shownBy(task: Task): { env: Record<string, string>; input: Record<string, unknown> } {
  const text =
    task.artifacts
      ?.at(-1)
      ?.parts.map((part) => part.text ?? '')
      .join('') ?? '{}'
  return JSON.parse(text) as { env: Record<string, string>; input: Record<string, unknown> }
}

export const wordsOf = (task: Task): string => task.status.message?.parts.map((part) => part.text).join('') ?? ''

/** Wait until the task is in that state. */
export const taskIn = (house: House, owner: string, id: string, state: string): Promise<Task> =>
  until(
    async () => {
      const task = (await getTask(house.store.view(), owner, id)) as unknown as Task
      return task.status.state === state ? task : undefined
    },
    30_000,
    `${id} is ${state}`,
  )

/** The code something failed with, or `done`. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    return isNodeError(error) ? error.code : String(error)
  }
}

function noPeers(): Parts['peers'] {
  const records: AgentRecord[] = []
  return {
    addresses: () => [],
    list: async () => [],
    dial: async () => '',
    // eslint-disable-next-line require-yield
    request: async function* () {
      throw new Error('no network')
    },
    card: async () => ({}),
    findRecord: async () => undefined,
    findProviders: async () => [],
    publish: async (record) => void records.push(record),
    onConnect: () => () => undefined,
    session: async () => Promise.reject(new Error('no network')),
  }
}

export type { FakeClock }
