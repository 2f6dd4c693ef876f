import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Connection, Stream } from '@libp2p/interface'
import { multiaddr } from '@multiformats/multiaddr'
import { LIMITS, NodeError, canonicalize, systemClock, until } from '@csb/core'
import fc from 'fast-check'
import { openBytes, receiveBulk, sendBulk, type ByteStream } from '../src/bytes.ts'
import { createFrames, portOf, type FrameOptions } from '../src/frame.ts'
import type { Host } from '../src/host.ts'
import { startHost, stopAll } from './rig.ts'

const MiB = 1024 * 1024
const PROTOCOL = '/csb/test/1.0.0'

let left: Host
let right: Host
let connection: Connection
const arrived: ((stream: Stream) => void)[] = []

beforeAll(async () => {
  left = await startHost()
  right = await startHost()
  await right.libp2p.handle(PROTOCOL, (stream) => {
    arrived.shift()?.(stream)
  })
  connection = await left.libp2p.dial(right.libp2p.getMultiaddrs())
})

afterAll(stopAll)

/** Two raw ends of one stream; nobody reads yet. */
async function rawPair(): Promise<{ near: Stream; far: Stream }> {
  const far = new Promise<Stream>((resolve) => arrived.push(resolve))
  const near = await connection.newStream(PROTOCOL)
  return { near, far: await far }
}

async function bytePair(): Promise<{ near: ByteStream; far: ByteStream; nearStream: Stream; farStream: Stream }> {
  const { near, far } = await rawPair()
  return { near: openBytes(near, connection), far: openBytes(far, connection), nearStream: near, farStream: far }
}

async function framePair(options: FrameOptions = {}) {
  const { near, far } = await bytePair()
  return { near: createFrames(near, options), far: createFrames(far, options), nearBytes: near }
}

/** Any JSON but a `__proto__` member, which is refused. */
const frameable = fc.jsonValue({ maxDepth: 5 }).filter((value) => !JSON.stringify(value).includes('__proto__'))

const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)])
const frameOf = (text: string): Uint8Array =>
  Buffer.concat([Buffer.from(varint(Buffer.byteLength(text))), Buffer.from(text)])

describe('bytes', () => {
  test('what was sent and ended before the reader attached is read whole', async () => {
    const { near, far } = await rawPair()
    const writer = openBytes(near, connection)
    await writer.write(Buffer.alloc(100_000, 7))
    await writer.close()
    await until(() => far.remoteWriteStatus === 'closed', 30_000, 'the end arrives')
    let total = 0
    for await (const chunk of receiveBulk(openBytes(far, connection))) total += chunk.byteLength
    expect(total).toBe(100_000)
  })

  test('an end without a byte before the reader attached is an end', async () => {
    const { near, far } = await rawPair()
    await openBytes(near, connection).close()
    await until(() => far.remoteWriteStatus === 'closed', 30_000, 'the end arrives')
    expect(await openBytes(far, connection).read()).toBeUndefined()
  })

  test('A2A-018 a reader that takes nothing stops the sender, and no buffer grows beyond its bound', async () => {
    const { near, far, nearStream, farStream } = await bytePair()
    let sent = 0
    let largest = 0
    const piece = Buffer.alloc(64 * 1024, 1)
    const sending = (async () => {
      for (; sent < 50 * MiB; sent += piece.byteLength) {
        await near.write(piece)
        largest = Math.max(largest, nearStream.writeBufferLength)
      }
    })()
    sending.catch(() => undefined)
    // the sender stands still when the count no longer moves
    let last = -1
    await until(() => (sent === last ? true : void (last = sent)), 30_000, 'the sender stops', 200)
    expect(sent).toBeLessThan(4 * MiB)
    expect(largest).toBeLessThanOrEqual(LIMITS.sendBufferBytes + piece.byteLength)
    expect(farStream.readBufferLength).toBeLessThanOrEqual(2 * MiB)
    near.abort(new Error('enough'))
    await expect(sending).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    far.abort(new Error('enough'))
  })

  test('one large write does not fill the buffer either', async () => {
    const { near, far, nearStream } = await bytePair()
    let largest = 0
    const writing = near.write(Buffer.alloc(16 * MiB))
    writing.catch(() => undefined)
    await until(
      () => {
        largest = Math.max(largest, nearStream.writeBufferLength)
        return nearStream.writeBufferLength >= LIMITS.sendBufferBytes
      },
      30_000,
      'the sender stops',
      1,
    )
    expect(largest).toBeLessThanOrEqual(LIMITS.sendBufferBytes + LIMITS.bulkChunkBytes)
    near.abort(new Error('enough'))
    await expect(writing).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    far.abort(new Error('enough'))
  })

  test('a large transfer through a reader that pauses again and again arrives whole and is not reset', async () => {
    const { near, far } = await bytePair()
    const size = 24 * MiB
    const sending = sendBulk(near, [Buffer.alloc(size, 3)]).then(() => near.close())
    let total = 0
    let reads = 0
    for await (const chunk of receiveBulk(far)) {
      total += chunk.byteLength
      if (++reads % 50 === 0) await until(() => true, 30_000, 'a pause')
      if (reads % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await sending
    expect(total).toBe(size)
  })

  test('a writer learns that the other side broke the stream', async () => {
    const { near, far } = await bytePair()
    far.abort(new Error('no more'))
    const endless = async () => {
      for (;;) await near.write(Buffer.alloc(60_000))
    }
    await expect(endless()).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(near.gone.aborted).toBe(true)
  })

  test('a connection that is lost is no orderly end', async () => {
    const other = await startHost()
    const lost = new Promise<Stream>((resolve) => arrived.push(resolve))
    const link = await other.libp2p.dial(right.libp2p.getMultiaddrs())
    const stream = await link.newStream(PROTOCOL)
    const reader = openBytes(await lost, connection)
    await openBytes(stream, link).write(Buffer.from('half'))
    expect((await reader.read())?.byteLength).toBe(4)
    link.abort(new Error('cable'))
    await expect(reader.read()).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await other.stop()
  })

  test('a socket that closes without a word is no orderly end', async () => {
    const target = right.libp2p.getMultiaddrs()[0]?.toString() ?? ''
    const sockets: Socket[] = []
    const proxy = createServer((socket) => {
      const onward = connect(Number(/tcp\/(\d+)/.exec(target)?.[1]), '127.0.0.1')
      socket.pipe(onward)
      onward.pipe(socket)
      for (const end of [socket, onward]) end.on('error', () => undefined)
      sockets.push(socket, onward)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.address() as AddressInfo
    const other = await startHost()
    const arrival = new Promise<Stream>((resolve) => arrived.push(resolve))
    const link = await other.libp2p.dial(multiaddr(target.replace(/tcp\/\d+/, `tcp/${port}`)))
    const writer = openBytes(await link.newStream(PROTOCOL), link)
    const reader = openBytes(await arrival, connection)
    await writer.write(Buffer.from('half'))
    expect((await reader.read())?.byteLength).toBe(4)
    for (const socket of sockets) socket.end()
    await expect(reader.read()).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    proxy.close()
  })

  test('a side that never ends is broken off after the other did, and can still read what was sent', async () => {
    const { near, far, nearStream, farStream } = await bytePair()
    await near.write(Buffer.alloc(480_000, 5))
    await near.close()
    const settled = near.settle()
    expect(farStream.status).toBe('open')
    await settled
    await until(() => farStream.status !== 'open', 30_000, 'the stream is gone on the other side too')
    expect(connection.streams.filter(({ protocol, id }) => protocol === PROTOCOL && id === nearStream.id)).toEqual([])
    let total = 0
    for await (const chunk of receiveBulk(far)) total += chunk.byteLength
    expect(total).toBe(480_000)
  })
})

describe('frames', () => {
  test('any JSON value that is sent arrives equal, whatever the pieces it travels in', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(frameable, { minLength: 1, maxLength: 8 }), fc.boolean(), async (values, gather) => {
        const { near, far } = await framePair({ gather })
        const sending = Promise.all(values.map((value) => near.send(value))).then(() => near.close())
        for (const value of values) expect(canonicalize(await far.receive())).toBe(canonicalize(value))
        expect(await far.receive()).toBeUndefined()
        await far.close()
        await sending
      }),
      { numRuns: 60 },
    )
  })

  test('a frame larger than the bound is not sent at all', async () => {
    const { near } = await framePair({ maxFrameBytes: 1000 })
    await expect(near.send('x'.repeat(1000))).rejects.toMatchObject({ code: 'TOO_LARGE' })
    near.abort(new Error('done'))
  })

  test('an oversize frame is refused at its length, before its body comes', async () => {
    const { near, far } = await bytePair()
    await near.write(Uint8Array.from(varint(LIMITS.frameBytes + 1)))
    await expect(createFrames(far).receive()).rejects.toMatchObject({ code: 'TOO_LARGE' })
    far.abort(new Error('done'))
  })

  test('a length that never ends is MALFORMED', async () => {
    const { near, far } = await bytePair()
    await near.write(new Uint8Array(16).fill(0xff))
    await expect(createFrames(far).receive()).rejects.toMatchObject({
      code: expect.stringMatching(/^(MALFORMED|TOO_LARGE)$/),
    })
    far.abort(new Error('done'))
  })

  for (const [what, body] of [
    ['text that is no JSON', '{"a":'],
    ['a key that stands twice', '{"a":1,"a":2}'],
    ['an empty body', ''],
    ['nesting without end', `${'['.repeat(200)}${']'.repeat(200)}`],
  ] as const) {
    test(`${what} is MALFORMED, and stays so`, async () => {
      const { near, far } = await bytePair()
      await near.write(frameOf(body))
      await near.write(frameOf('1'))
      const frames = createFrames(far)
      await expect(frames.receive()).rejects.toMatchObject({ code: 'MALFORMED' })
      await expect(frames.receive()).rejects.toMatchObject({ code: 'MALFORMED' })
      far.abort(new Error('done'))
    })
  }

  test('bytes that are not UTF-8 are MALFORMED', async () => {
    const { near, far } = await bytePair()
    await near.write(Uint8Array.of(3, 0x22, 0xff, 0x22))
    await expect(createFrames(far).receive()).rejects.toMatchObject({ code: 'MALFORMED' })
    far.abort(new Error('done'))
  })

  test('a frame cut short is PEER_MISBEHAVED', async () => {
    const { near, far } = await bytePair()
    await near.write(frameOf('"a whole frame"').subarray(0, 6))
    await near.close()
    await expect(createFrames(far).receive()).rejects.toMatchObject({ code: 'PEER_MISBEHAVED' })
    far.abort(new Error('done'))
  })

  test('a receive that gave up loses nothing', async () => {
    const { near, far } = await framePair()
    await expect(far.receive(AbortSignal.timeout(5))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await near.send({ late: true })
    expect(await far.receive()).toEqual({ late: true })
    near.abort(new Error('done'))
  })

  test('a refusal is thrown by the port of the other side with its code', async () => {
    const { near, far } = await framePair()
    const port = portOf(near, systemClock)
    await far.refuse(new NodeError('CLEARANCE', { level: 'public' }))
    await expect(port.receive()).rejects.toMatchObject({ code: 'CLEARANCE', details: { level: 'public' } })
    await port.close()
  })

  test('silence breaks a session that waits', async () => {
    const { near, far } = await framePair()
    const port = portOf(near, systemClock, 40)
    await expect(port.receive()).rejects.toMatchObject({ code: 'TIMEOUT' })
    await until(() => far.gone.aborted, 30_000, 'the other side is told')
  })

  test('frames of one turn travel in one write', async () => {
    const { near, far } = await bytePair()
    const writes: number[] = []
    const counted: ByteStream = {
      ...near,
      write: (chunk) => {
        writes.push(chunk.byteLength)
        return near.write(chunk)
      },
    }
    const frames = createFrames(counted, { gather: true })
    await Promise.all(Array.from({ length: 50 }, (_, n) => frames.send({ n })))
    expect(writes).toHaveLength(1)
    const received = createFrames(far)
    for (let n = 0; n < 50; n++) expect(await received.receive()).toEqual({ n })
    far.abort(new Error('done'))
  })
})
