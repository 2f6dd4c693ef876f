import { afterAll, describe, expect, test } from 'vitest'
import type { Connection } from '@libp2p/interface'
import { multiaddr } from '@multiformats/multiaddr'
import { LIMITS, createFakeClock, createKeyPair, fail, until } from '@csb/core'
import { createAdmission } from '../src/admission.ts'
import { openBytes } from '../src/bytes.ts'
import { createFrames } from '../src/frame.ts'
import { peerOf } from '../src/host.ts'
import { openStream } from '../src/protocol.ts'
import { collect, echo, envelopeTo, startHost, startNode, stopAll, type Node } from './rig.ts'

afterAll(stopAll)

const ENVELOPE = '/csb/envelope/1.0.0'

async function strangerTo(node: Node) {
  const host = await startHost()
  return { host, connection: await host.libp2p.dial(multiaddr(node.address())) }
}

const framesOn = async (connection: Connection, protocol: string) => openStream(connection, protocol)

describe('a stream of a protocol', () => {
  test('an unknown protocol version is VERSION_MISMATCH', async () => {
    const { connection } = await strangerTo(await startNode())
    await expect(openStream(connection, '/csb/envelope/9.0.0')).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })

  test('an oversize frame is answered with TOO_LARGE before its body is read, and the node answers on', async () => {
    const node = await startNode({ answers: echo })
    const { connection } = await strangerTo(node)
    const stream = await connection.newStream(ENVELOPE)
    const bytes = openBytes(stream, connection)
    await bytes.write(Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x01)) // 268,435,456
    expect(await createFrames(bytes).receive()).toMatchObject({ error: { code: 'TOO_LARGE' } })
    bytes.abort(new Error('done'))
    const client = await startNode()
    await client.wire.peers.dial(node.address())
    expect(await collect(client.wire.peers.request(envelopeTo(node, client)))).toHaveLength(1)
  })

  for (const [what, bytes] of [
    ['no JSON', Uint8Array.of(2, 0x7b, 0x7b)],
    ['JSON that is no envelope', Uint8Array.of(2, 0x34, 0x32)],
    ['an envelope without an id', Uint8Array.of(2, 0x7b, 0x7d)],
  ] as const) {
    test(`${what} is answered with MALFORMED`, async () => {
      const { connection } = await strangerTo(await startNode({ answers: echo }))
      const stream = openBytes(await connection.newStream(ENVELOPE), connection)
      await stream.write(bytes)
      expect(await createFrames(stream).receive()).toMatchObject({ error: { code: 'MALFORMED' } })
      stream.abort(new Error('done'))
    })
  }

  test('a peer that ends without a frame is answered with an error and leaves no stream', async () => {
    const { connection } = await strangerTo(await startNode({ answers: echo }))
    const frames = await framesOn(connection, ENVELOPE)
    await frames.close()
    expect(await frames.receive()).toMatchObject({ error: { code: 'PEER_MISBEHAVED' } })
    await until(() => connection.streams.every(({ protocol }) => protocol !== ENVELOPE), 30_000, 'the stream is gone')
  })

  test('no stream is left after answers, refusals and failures', async () => {
    const node = await startNode({
      answers: {
        ...echo,
        perform: async () => fail('NOT_FOUND'),
        attend: async () => {
          throw new TypeError('a fault in the service')
        },
      },
    })
    const { host, connection } = await strangerTo(node)
    const client = await startNode()
    await client.wire.peers.dial(node.address())
    for (let n = 0; n < 20; n++) {
      await collect(client.wire.peers.request(envelopeTo(node, client, { method: 'SendStreamingMessage' })))
      await expect(client.wire.peers.card(node.wire.did, 'echo', null)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      const port = await client.wire.peers.session(node.wire.did, 'sync', { home: 'x' })
      await expect(port.receive()).rejects.toMatchObject({ code: 'INTERNAL' })
      await port.close()
    }
    const frames = await framesOn(connection, ENVELOPE)
    await frames.send(envelopeTo(node, client))
    await frames.receive()
    await frames.close()
    const ours = () => connection.streams.filter(({ protocol }) => /^\/csb\/(?!kad)/.test(protocol))
    await until(() => ours().length === 0, 30_000, 'streams of the stranger are gone')
    // the DHT may have led it to the client meanwhile: what counts is what it has with this node
    expect(host.libp2p.getConnections(peerOf(node.wire.did))).toHaveLength(1)
  })

  test('a stream that the peer leaves open after its answer is broken off', async () => {
    const { connection } = await strangerTo(await startNode({ answers: { perform: async () => ({ name: 'echo' }) } }))
    const frames = await framesOn(connection, '/csb/card/1.0.0')
    await frames.send({ agent: 'echo' })
    expect(await frames.receive()).toEqual({ card: { name: 'echo' } })
    await until(() => frames.gone.aborted, LIMITS.closeGraceMs + 30_000, 'the node ends it')
    expect(connection.streams.filter(({ protocol }) => protocol === '/csb/card/1.0.0')).toEqual([])
  })

  test('a fault inside the service shows the peer its code and nothing of its text', async () => {
    const node = await startNode({
      answers: {
        perform: async () => {
          throw new Error('secret path /home/x')
        },
      },
    })
    const { connection } = await strangerTo(node)
    const frames = await framesOn(connection, '/csb/card/1.0.0')
    await frames.send({ agent: 'echo' })
    const answer = await frames.receive()
    expect(answer).toMatchObject({ error: { code: 'INTERNAL' } })
    expect(JSON.stringify(answer)).not.toContain('secret')
  })
})

describe('admission', () => {
  test('A2A-019 attack 39: streams are counted per peer and not per connection', async () => {
    const node = await startNode({
      admission: { concurrent: 4 },
      answers: {
        attend: async (_caller, _operation, _input, port) => {
          await port.send('in')
          await port.receive()
        },
      },
    })
    const { host, connection } = await strangerTo(node)
    const second = await host.libp2p.dial(multiaddr(node.address()), { force: true })
    expect(second.id).not.toBe(connection.id)
    const open = async (link: Connection) => {
      const frames = await framesOn(link, '/csb/sync/1.0.0')
      await frames.send({ v: '1.0', input: {} })
      return { frames, first: await frames.receive() }
    }
    const inside = [await open(connection), await open(second), await open(connection), await open(second)]
    expect(inside.map(({ first }) => first)).toEqual(['in', 'in', 'in', 'in'])
    expect((await open(second)).first).toMatchObject({ error: { code: 'BUSY' } })
    expect((await open(connection)).first).toMatchObject({ error: { code: 'BUSY' } })
    // another peer is not touched by it
    const other = await strangerTo(node)
    expect((await open(other.connection)).first).toBe('in')
    await inside[0]?.frames.close()
    await until(async () => ((await open(second)).first === 'in' ? true : undefined), 30_000, 'a place is free again')
  })

  test('a bucket of new streams fills with time', () => {
    const clock = createFakeClock()
    const admission = createAdmission({ clock, concurrent: 100, perSecond: 10, burst: 3 })
    const { did } = createKeyPair()
    for (let n = 0; n < 3; n++) admission.enter(did)()
    expect(() => admission.enter(did)).toThrowError(expect.objectContaining({ code: 'BUSY' }))
    clock.advance(100)
    admission.enter(did)()
    expect(() => admission.enter(did)).toThrowError(expect.objectContaining({ code: 'BUSY' }))
    admission.enter(createKeyPair().did)()
  })

  test('who leaves twice frees one place only', () => {
    const admission = createAdmission({ clock: createFakeClock(), concurrent: 2 })
    const { did } = createKeyPair()
    const leave = admission.enter(did)
    admission.enter(did)
    leave()
    leave()
    admission.enter(did)
    expect(() => admission.enter(did)).toThrowError(expect.objectContaining({ code: 'BUSY' }))
  })

  test('a peer that asks for more than is worked on at once waits, and all of it is answered', async () => {
    let working = 0
    let most = 0
    const node = await startNode({
      answers: {
        deliver: async function* (_caller, envelope) {
          most = Math.max(most, ++working)
          await new Promise((resolve) => setImmediate(resolve))
          working--
          yield { id: envelope.id, body: 1, done: true }
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(node.address())
    const asked = Array.from({ length: 400 }, () => collect(client.wire.peers.request(envelopeTo(node, client))))
    expect((await Promise.all(asked)).flat()).toHaveLength(400)
    expect(most).toBeLessThanOrEqual(LIMITS.envelopesInFlight)
    expect(most).toBeGreaterThan(1)
  })
})
