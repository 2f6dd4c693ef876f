import { afterAll, describe, expect, test } from 'vitest'
import { LIMITS, canonicalize, createKeyPair, systemClock, until, utf8, type AgentRecord } from '@csb/core'
import { createDirectory } from '../src/directory.ts'
import { createDiscovery, recordRules } from '../src/discovery.ts'
import type { Host } from '../src/host.ts'
import { createBook, recordOf, startHost, startNode, stopAll } from './rig.ts'

afterAll(stopAll)

const keyOf = (did: string): Uint8Array => utf8(`/csb-agent/${did}`)

/** A node with the rules of records and its own view of the DHT. */
async function startMember(validate?: (record: AgentRecord) => void) {
  const book = createBook()
  const directory = createDirectory(systemClock)
  const rules = recordRules(book, directory)
  const host = await startHost({
    ...rules,
    ...(validate === undefined
      ? {}
      : { validateRecord: (_key, value) => validate(JSON.parse(Buffer.from(value).toString()) as AgentRecord) }),
  })
  return { host, book, discovery: createDiscovery(host, book, directory) }
}

type Member = Awaited<ReturnType<typeof startMember>>

async function connectAll(members: readonly Member[]): Promise<void> {
  for (const a of members) {
    for (const b of members) {
      if (a !== b && a.host.libp2p.getConnections(b.host.libp2p.peerId).length === 0) {
        await a.host.libp2p.dial(b.host.libp2p.getMultiaddrs())
      }
    }
  }
  const full = () => members.every(({ host }) => host.routingPeers() === members.length - 1)
  await until(full, 30_000, 'routing tables fill')
}

/** Put a value as a stranger would: whatever it is, without asking our rules. */
async function putRaw(host: Host, did: string, value: Uint8Array): Promise<void> {
  for await (const event of host.libp2p.services.dht.put(keyOf(did), value, { signal: AbortSignal.timeout(30_000) }))
    void event
}

const bytesOf = (record: unknown): Uint8Array => utf8(canonicalize(record))

describe('records in the DHT', () => {
  test('A2A-012 a record is found by did, and its providers by capability', async () => {
    const members = await Promise.all([startMember(), startMember(), startMember(), startMember()])
    await connectAll(members)
    const [publisher, , , seeker] = members
    const key = createKeyPair()
    const record = recordOf(key, { seq: 3, capabilities: ['math.solve', 'chess'] })
    expect(await publisher?.discovery.put(record)).toBe(3)
    expect(await seeker?.discovery.findRecord(key.did)).toEqual(record)
    expect(await seeker?.discovery.findRecord(createKeyPair().did)).toBeUndefined()
  })

  test('a capability leads to nodes that still offer it, and to no other', async () => {
    const nodes = [await startNode(), await startNode(), await startNode(), await startNode()]
    for (const a of nodes) for (const b of nodes) if (a !== b) await b.wire.peers.dial(a.address())
    const [first, second, third, seeker] = nodes
    if (first === undefined || second === undefined || third === undefined || seeker === undefined) throw new Error()
    const routing = async () => (await seeker.wire.peers.list()).filter(({ connected }) => connected).length === 3
    await until(routing, 30_000, 'all are connected')
    for (const node of [first, second, third])
      await node.wire.peers.publish(recordOf(node.key, { capabilities: ['chess'] }))
    await until(
      async () => (await seeker.wire.peers.findProviders('chess', 10)).length === 3,
      30_000,
      'three providers are found',
    )
    expect(await seeker.wire.peers.findProviders('chess', 2)).toHaveLength(2)
    expect(await seeker.wire.peers.findProviders('go', 5)).toEqual([])
    await first.wire.peers.publish(recordOf(first.key, { seq: 2, capabilities: ['go'] }))
    await second.wire.peers.publish(recordOf(second.key, { seq: 2, withdrawn: true }))
    await until(
      async () => (await seeker.wire.peers.findProviders('chess', 5)).map(({ did }) => did).join() === third.wire.did,
      30_000,
      'only the one that still offers it is left',
    )
  })

  test('an old record does not replace a newer one, and forged and oversize ones are refused', async () => {
    const [server, stranger] = [await startMember(), await startMember(() => undefined)]
    await connectAll([server, stranger])
    const key = createKeyPair()
    await putRaw(stranger.host, key.did, bytesOf(recordOf(key, { seq: 5 })))
    expect(server.book.highest(key.did)?.seq).toBe(5)
    await putRaw(stranger.host, key.did, bytesOf(recordOf(key, { seq: 4, name: 'old' })))
    await putRaw(stranger.host, key.did, bytesOf({ ...recordOf(key, { seq: 9 }), name: 'forged' }))
    await putRaw(stranger.host, key.did, bytesOf(recordOf(createKeyPair(), { seq: 9 })))
    const wide = recordOf(key, { seq: 9, addresses: Array.from({ length: 16 }, () => 'x'.repeat(256)) })
    expect(bytesOf(wide).byteLength).toBeGreaterThan(LIMITS.agentRecordBytes)
    await putRaw(stranger.host, key.did, bytesOf(wide))
    const expired = recordOf(key, { seq: 9, issued_at: Date.now() - 100_000, expires_at: Date.now() - 1 })
    await putRaw(stranger.host, key.did, bytesOf(expired))
    expect(server.book.highest(key.did)?.seq).toBe(5)
    // what the server hands out is still the fifth
    const reader = await startMember()
    await reader.host.libp2p.dial(server.host.libp2p.getMultiaddrs())
    await until(() => reader.host.routingPeers() >= 1, 30_000, 'the reader knows the server')
    expect((await reader.discovery.findRecord(key.did))?.seq).toBe(5)
  })

  test('a key of another namespace is not stored', async () => {
    const [server, stranger] = [await startMember(), await startMember(() => undefined)]
    await connectAll([server, stranger])
    const refused = async () => {
      const errors: string[] = []
      const put = stranger.host.libp2p.services.dht.put(utf8('/other/key'), utf8('x'), {
        signal: AbortSignal.timeout(30_000),
      })
      for await (const event of put) if (event.name === 'QUERY_ERROR') errors.push(event.name)
      return errors.length
    }
    expect(await refused()).toBeGreaterThan(0)
  })

  test('a peer that serves an old record and refuses the new one does not break the lookup', async () => {
    const key = createKeyPair()
    const [old, fresh] = [recordOf(key, { seq: 1 }), recordOf(key, { seq: 2 })]
    const stale = await startMember((record) => {
      if (record.seq > 1) throw new Error('no')
    })
    // fewer than the quorum, so that the query runs to its end and tries to correct the old record
    const members = [stale, await startMember()]
    await connectAll(members)
    await putRaw(stale.host, key.did, bytesOf(old))
    await members[1]?.discovery.put(fresh).catch(() => undefined)
    // a seeker that has seen nothing yet, so that the old record passes its own rule too
    const seeker = await startMember()
    for (const { host } of members) await seeker.host.libp2p.dial(host.libp2p.getMultiaddrs())
    await until(() => seeker.host.routingPeers() === 2, 30_000, 'the seeker knows all')
    expect((await seeker.discovery.findRecord(key.did))?.seq).toBe(2)
  })

  test('a provider whose peer entry is gone does not break the question for its capability', async () => {
    const [server, ghost, seeker] = [await startMember(), await startMember(), await startMember()]
    await connectAll([server, ghost, seeker])
    const live = createKeyPair()
    await ghost.discovery.put(recordOf(live, { capabilities: ['chess'] }))
    // the ghost goes, and the server and the seeker forget where it lives
    await ghost.host.stop()
    await until(() => server.host.libp2p.getConnections().length === 1, 30_000, 'the ghost has left')
    await server.host.libp2p.peerStore.delete(ghost.host.libp2p.peerId)
    const late = await startMember()
    await late.host.libp2p.dial(server.host.libp2p.getMultiaddrs())
    await until(() => late.host.routingPeers() >= 1, 30_000, 'the newcomer knows the server')
    const errors: unknown[] = []
    const { cid } = await providerKey('chess')
    for await (const event of late.host.libp2p.services.dht.findProviders(cid, {
      signal: AbortSignal.timeout(30_000),
    })) {
      if (event.name === 'QUERY_ERROR' && event.from.equals(server.host.libp2p.peerId)) errors.push(event.error)
    }
    expect(errors).toEqual([])
    expect(await late.discovery.findProviders('chess', 3)).toEqual([])
  })

  test('with nobody in the routing table a lookup says at once that it found nothing', async () => {
    const alone = await startMember()
    const start = performance.now()
    expect(await alone.discovery.findRecord(createKeyPair().did)).toBeUndefined()
    expect(await alone.discovery.findProviders('chess', 3)).toEqual([])
    // neither waited for an answer until its time was over
    expect(performance.now() - start).toBeLessThan(LIMITS.dhtTimeoutMs)
  })

  test('a record is put again when the first peers come after it was published', async () => {
    const early = await startNode()
    const record = recordOf(early.key)
    await early.wire.peers.publish(record)
    const late = await startNode()
    await late.wire.peers.dial(early.address())
    await until(() => late.book.highest(early.wire.did)?.seq === 1, 30_000, 'the record arrives')
    const wasPut = () => early.events.some(({ event, details }) => event === 'wire.published' && details['peers'] === 1)
    await until(wasPut, 30_000, 'it is in the DHT too, and not only announced')
  })

  test('a peer of which only a record is known is dialled at the addresses of the record', async () => {
    const server = await startNode({
      answers: { perform: async () => ({ name: 'echo' }) },
    })
    const client = await startNode()
    const middle = await startNode()
    await client.wire.peers.dial(middle.address())
    await server.wire.peers.dial(middle.address())
    await server.wire.peers.publish(recordOf(server.key, { addresses: [server.address()] }))
    await until(() => middle.book.highest(server.wire.did) !== undefined, 30_000, 'the record arrives')
    expect(await client.wire.peers.card(server.wire.did, 'echo', null)).toEqual({ name: 'echo' })
  })
})

async function providerKey(capability: string) {
  const { CID } = await import('multiformats/cid')
  const raw = await import('multiformats/codecs/raw')
  const { sha256 } = await import('multiformats/hashes/sha2')
  return { cid: CID.createV1(raw.code, await sha256.digest(utf8(`csb-capability:${capability}`))) }
}
