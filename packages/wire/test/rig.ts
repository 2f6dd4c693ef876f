/** Real nodes on 127.0.0.1 with a small real service behind them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  canonicalize,
  createKeyPair,
  exportSeed,
  fail,
  newId,
  signDocument,
  systemClock,
  validate,
  verifyDocument,
  LIMITS,
  type AgentRecord,
  type Clock,
  type Envelope,
  type KeyPair,
} from '@csb/core'
import type { Caller, EnvelopeReply, MessagePort, PerformOptions, Service } from '@csb/service'
import { openStore } from '@csb/store'
import { createHost, type Host, type HostInit } from '../src/host.ts'
import { createWire, type RecordBook, type Wire, type WireConfig } from '../src/index.ts'

export type Answers = {
  perform?(caller: Caller, operation: string, input: unknown, options: PerformOptions): Promise<unknown>
  deliver?(caller: Caller, envelope: Envelope, options: PerformOptions): AsyncIterable<EnvelopeReply>
  attend?(caller: Caller, operation: string, input: unknown, port: MessagePort, options: PerformOptions): Promise<void>
}

export type Node = {
  readonly wire: Wire
  readonly key: KeyPair
  readonly book: RecordBook & { highest(did: string): AgentRecord | undefined }
  readonly events: { event: string; details: Readonly<Record<string, unknown>> }[]
  readonly address: () => string
  stop(): Promise<void>
}

export type NodeOptions = Partial<WireConfig> & {
  readonly answers?: Answers
  readonly key?: KeyPair
  readonly clock?: Clock
  readonly directory?: string
  readonly card?: (card: unknown, did: string, hash: string | null) => boolean
}

const opened = new Set<{ stop(): Promise<void> }>()

export async function startNode(options: NodeOptions = {}): Promise<Node> {
  const { answers = {}, key = createKeyPair(), clock = systemClock, directory, card, ...config } = options
  const folder = directory ?? (await mkdtemp(join(tmpdir(), 'csb-wire-')))
  const store = await openStore(join(folder, 'db'))
  const book = createBook(clock)
  const events: Node['events'] = []
  const clear = async () => {
    await store.close()
    if (directory === undefined) await rm(folder, { recursive: true, force: true })
  }
  const wire = await createWire({
    seed: exportSeed(key),
    db: store.db,
    config: {
      listen: ['/ip4/127.0.0.1/tcp/0'],
      bootstrap: [],
      mdns: false,
      maxConnections: 300,
      profile: 'loopback',
      ...config,
    },
    records: book,
    cards: { verify: card ?? (() => true) },
    clock,
    log: (event, details) => events.push({ event, details }),
  }).catch(async (error: unknown) => {
    await clear()
    throw error
  })
  await wire.listen(serviceOf(answers))
  const node: Node = {
    wire,
    key,
    book,
    events,
    address: () => wire.peers.addresses()[0] ?? fail('INTERNAL'),
    stop: async () => {
      opened.delete(node)
      await wire.stop()
      await clear()
    },
  }
  opened.add(node)
  return node
}

export async function stopAll(): Promise<void> {
  await Promise.all([...opened].map((node) => node.stop()))
}

export function envelopeTo(to: Node, from: Node, body: Partial<Envelope['body']> = {}, ttl = 30_000): Envelope {
  return {
    version: '1.0',
    id: newId('envelope', Date.now()),
    from: from.wire.did,
    to: to.wire.did,
    agent: 'echo',
    context: null,
    priority: 5,
    ttl,
    sent_at: Date.now(),
    body: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: {}, ...body },
  }
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Answers with what it was asked. */
export const echo: Answers = {
  deliver: async function* (_caller, envelope) {
    yield { id: envelope.id, body: { jsonrpc: '2.0', id: 1, result: envelope.body.params }, done: true }
  },
}

export function recordOf(key: KeyPair, fields: Partial<AgentRecord> = {}): AgentRecord {
  const now = Date.now()
  const body = {
    v: 1 as const,
    did: key.did,
    name: 'an agent',
    seq: 1,
    issued_at: now,
    expires_at: now + LIMITS.agentRecordTtlMs,
    withdrawn: false,
    capabilities: ['math.solve'],
    addresses: [],
    agents: [],
    ...fields,
  }
  const { signature: _, ...rest } = body as AgentRecord
  return { ...rest, signature: signDocument('agentRecord', rest, key) }
}

export type HostOptions = Partial<Pick<HostInit, 'validateRecord' | 'selectRecord' | 'profile' | 'db'>>

/** A libp2p node of ours without the door: for what a stranger may do. */
export async function startHost(options: HostOptions = {}): Promise<Host> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-host-'))
  const store = await openStore(join(folder, 'db'))
  const host = await createHost({
    seed: exportSeed(createKeyPair()),
    db: store.db,
    clock: systemClock,
    listen: ['/ip4/127.0.0.1/tcp/0'],
    bootstrap: [],
    mdns: false,
    maxConnections: 100,
    profile: 'loopback',
    validateRecord: () => undefined,
    selectRecord: () => 0,
    ...options,
  })
  await host.start()
  const stop = host.stop
  const started: Host = {
    ...host,
    stop: async () => {
      opened.delete(started)
      await stop()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
  opened.add(started)
  return started
}

export function createBook(clock: Clock = systemClock): Node['book'] {
  const kept = new Map<string, AgentRecord>()
  return {
    verify: (value, did) => {
      try {
        const record = validate('AgentRecord', value)
        const { signature, ...body } = record
        if (record.did !== did || record.expires_at <= clock.now()) return undefined
        if (canonicalize(record).length > LIMITS.agentRecordBytes) return undefined
        return verifyDocument('agentRecord', body, signature, did) ? record : undefined
      } catch {
        return undefined
      }
    },
    accept: (record) => {
      const highest = kept.get(record.did)
      if (highest !== undefined && highest.seq > record.seq) return false
      kept.set(record.did, record)
      return true
    },
    highest: (did) => kept.get(did),
  }
}

function serviceOf(answers: Answers): Pick<Service, 'perform' | 'open' | 'attend'> {
  return {
    perform: async (caller, operation, input, options = {}) =>
      answers.perform === undefined ? fail('UNKNOWN_OPERATION') : answers.perform(caller, operation, input, options),
    open: (caller, operation, input, options = {}) => {
      if (answers.deliver === undefined || operation !== 'agents.deliver') fail('UNKNOWN_OPERATION')
      return answers.deliver(caller, (input as { envelope: Envelope }).envelope, options)
    },
    attend: async (caller, operation, input, port, options = {}) => {
      if (answers.attend === undefined) fail('UNKNOWN_OPERATION')
      await answers.attend(caller, operation, input, port, options)
    },
  }
}
