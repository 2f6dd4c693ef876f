/** A network that joins services directly: the border `Peers` as it is, with JSON text between the two sides. */
import { NodeError, canonicalize, errorFromJSON, toNodeError, type AgentRecord, type KeyPair } from '@csb/core'
import type { Caller, EnvelopeReply, MessagePort, Peers, Service } from '../src/index.ts'

const OPERATIONS = {
  sync: 'sync.serve',
  handoff: 'handoff.receive',
  delegation: 'authority.receive',
  witness: 'witness.serve',
} as const

export type Network = {
  join(did: string, service: Service): void
  peersOf(key: KeyPair): Peers
  /** what was published, newest last */
  readonly published: AgentRecord[]
  /** texts that crossed a session, with who said them */
  readonly heard: { readonly from: string; readonly text: string }[]
  /** whatever went out of a node, whether anybody was there to hear it: sessions, envelopes, cards, searches, dials */
  readonly sent: { readonly from: string; readonly text: string }[]
  /** dids that can not be reached */
  readonly away: Set<string>
  /** somebody can be reached again: everybody hears that it has come, and it hears of them */
  back(did: string): void
}

export function createNetwork(): Network {
  const services = new Map<string, Service>()
  const published: AgentRecord[] = []
  const heard: { from: string; text: string }[] = []
  const sent: { from: string; text: string }[] = []
  const away = new Set<string>()
  const heeding = new Map<string, Set<(did: string) => void>>()
  const tellOf = (did: string, who: string) => {
    for (const listener of heeding.get(did) ?? []) listener(who)
  }

  const reach = (from: string, did: string): Service => {
    const found = services.get(did)
    if (found === undefined || away.has(did) || away.has(from)) throw new NodeError('PEER_UNREACHABLE', { did })
    return found
  }
  const caller = (did: string): Caller => ({ kind: 'peer', did, door: 'libp2p' })

  return {
    published,
    heard,
    sent,
    away,
    back: (did) => {
      away.delete(did)
      for (const other of heeding.keys()) if (other !== did) tellOf(other, did)
      for (const other of services.keys()) if (other !== did) tellOf(did, other)
    },
    join: (did, service) => void services.set(did, service),
    peersOf: ({ did, peerId }) => {
      const send = (what: object) => void sent.push({ from: did, text: canonicalize(what) })
      return {
        addresses: () => [`/ip4/127.0.0.1/tcp/1/p2p/${peerId}`],
        list: async () =>
          [...services.keys()]
            .filter((other) => other !== did)
            .map((other) => ({ did: other, peerId: '', addresses: [], connected: true })),
        dial: async (address) => {
          send({ dial: address })
          throw new NodeError('PEER_UNREACHABLE')
        },
        request: async function* (envelope) {
          send(envelope)
          const target = reach(did, envelope.to)
          const arrived: unknown = JSON.parse(canonicalize(envelope))
          try {
            for await (const reply of target.open(caller(did), 'agents.deliver', { envelope: arrived }))
              yield reply as EnvelopeReply
          } catch (error) {
            throw told(error)
          }
        },
        card: async (to, agent) => {
          send({ card: agent, to })
          return reach(did, to)
            .perform(caller(did), 'agents.card', { agent })
            .catch((error: unknown) => {
              throw told(error)
            })
        },
        findRecord: async (to) => {
          send({ find: to })
          return published.findLast((record) => record.did === to)
        },
        findProviders: async (capability) => {
          send({ find: capability })
          return published.filter((record) => record.capabilities.includes(capability))
        },
        publish: async (record) => void published.push(record),
        onConnect: (listener) => {
          const listeners = heeding.get(did) ?? new Set()
          heeding.set(did, listeners.add(listener))
          return () => listeners.delete(listener)
        },
        session: async (to, kind, input) => {
          send({ session: kind, to, input })
          const target = reach(did, to)
          const { mine, theirs } = createPorts(did, to, heard)
          void target.attend(caller(did), OPERATIONS[kind], input, theirs).then(
            () => theirs.close(),
            (error: unknown) => mine.broken(toNodeError(error)),
          )
          return mine
        },
      }
    },
  }
}

/** An error as it arrives: the other side said it. */
const told = (error: unknown): NodeError => errorFromJSON(toNodeError(error).toJSON())

type Item = { readonly text: string } | { readonly error: NodeError } | 'end'

function createPorts(left: string, right: string, heard: { from: string; text: string }[]) {
  const end = (from: string, inbox: Queue, outbox: Queue): MessagePort & { broken(error: NodeError): void } => ({
    send: async (message) => {
      const text = canonicalize(message)
      heard.push({ from, text })
      outbox.push({ text })
    },
    receive: async () => {
      const item = await inbox.next()
      if (item === 'end') return undefined
      if ('error' in item) throw told(item.error)
      return JSON.parse(item.text) as unknown
    },
    close: async () => outbox.push('end'),
    abort: (reason) => outbox.push({ error: toNodeError(reason) }),
    broken: (error) => inbox.push({ error }),
  })
  const toLeft = createQueue()
  const toRight = createQueue()
  return { mine: end(left, toLeft, toRight), theirs: end(right, toRight, toLeft) }
}

type Queue = ReturnType<typeof createQueue>

function createQueue() {
  const items: Item[] = []
  const wakers: (() => void)[] = []
  return {
    push: (item: Item) => {
      items.push(item)
      wakers.shift()?.()
    },
    next: async (): Promise<Item> => {
      for (;;) {
        const item = items.shift()
        if (item !== undefined) {
          // an end stays an end
          if (item === 'end' || 'error' in item) items.unshift(item)
          return item
        }
        const { promise, resolve } = Promise.withResolvers<void>()
        wakers.push(resolve)
        await promise
      }
    },
  }
}
