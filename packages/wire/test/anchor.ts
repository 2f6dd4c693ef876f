/** A plain js-libp2p node with the defaults of its parts: what the benchmark compares this door with. */
import { noise } from '@chainsafe/libp2p-noise'
import { identify } from '@libp2p/identify'
import type { Connection, Stream } from '@libp2p/interface'
import { ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import { lpStream } from '@libp2p/utils'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p, type Libp2p } from 'libp2p'
import { openBytes, receiveBulk, sendBulk } from '../src/bytes.ts'

export type { Connection }

const ECHO = '/bench/echo/1.0.0'
const RAW_BULK = '/bench/bulk/1.0.0'
const OUR_BULK = '/csb/bench-bulk/1.0.0'
const ANSWER_BYTES = 1024
const STREAMS = { maxInboundStreams: 100, maxOutboundStreams: 100 }

type Node = Pick<Libp2p, 'handle' | 'dial'>

export const startPlain = () =>
  createLibp2p({
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionMonitor: { enabled: false },
    services: { identify: identify(), ping: ping() },
  })

export const dialPlain = (node: Node, address: string): Promise<Connection> => node.dial(multiaddr(address))

/** Answer what {@link askPlain}, {@link sendPlain} and {@link sendPaced} ask. */
export async function answerPlain(node: Node): Promise<void> {
  const echo = async (stream: Stream) => {
    const lp = lpStream(stream)
    await lp.read()
    await lp.write(Buffer.alloc(ANSWER_BYTES, 1))
    await stream.close()
  }
  const swallow = (stream: Stream) => {
    stream.addEventListener('message', () => undefined)
    stream.addEventListener('remoteCloseWrite', () => void stream.close())
  }
  const read = async (stream: Stream, connection: Connection) => {
    const bytes = openBytes(stream, connection)
    for await (const _ of receiveBulk(bytes)) continue
    await bytes.close()
  }
  await node.handle(ECHO, echo, STREAMS)
  await node.handle(RAW_BULK, swallow, STREAMS)
  await node.handle(OUR_BULK, read, STREAMS)
}

/** A new stream, a question, an answer of 1 KiB. */
export async function askPlain(connection: Connection, question: Uint8Array): Promise<void> {
  const stream = await connection.newStream(ECHO, { maxOutboundStreams: 100 })
  const lp = lpStream(stream)
  await lp.write(question)
  await lp.read()
  await stream.close()
}

/** Push bytes as fast as a raw stream takes them. */
export async function sendPlain(connection: Connection, chunks: Iterable<Uint8Array>): Promise<void> {
  const stream = await connection.newStream(RAW_BULK)
  const answered = nextEvent(stream, 'remoteCloseWrite')
  for (const chunk of chunks) if (!stream.send(chunk)) await nextEvent(stream, 'drain')
  await stream.close()
  await answered
}

/** The same with the byte stream of this door. */
export async function sendPaced(connection: Connection, chunks: Iterable<Uint8Array>): Promise<void> {
  const bytes = openBytes(await connection.newStream(OUR_BULK), connection)
  await sendBulk(bytes, chunks)
  await bytes.close()
  await bytes.read()
}

const nextEvent = (stream: Stream, name: 'drain' | 'remoteCloseWrite'): Promise<unknown> =>
  new Promise((resolve) => stream.addEventListener(name, resolve, { once: true }))
