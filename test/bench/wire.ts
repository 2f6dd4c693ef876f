/**
 * The libp2p door against its anchors, side by side in one run: two processes on this machine, loopback TCP.
 *
 * Bulk: raw TCP, a raw js-libp2p stream, our byte stream. Requests: libp2p ping, a new raw js-libp2p stream per
 * request, our envelopes on a stream each and on the shared stream. CPU is of both processes, per operation.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKeyPair, exportSeed, newId, systemClock, type Envelope } from '@csb/core'
import type { EnvelopeReply } from '@csb/service'
import { openStore } from '@csb/store'
import { createWire, type Wire } from '@csb/wire'
import { createHost, type Host } from '../../packages/wire/src/host.ts'
import {
  answerPlain,
  askPlain,
  dialPlain,
  sendPaced,
  sendPlain,
  startPlain,
  type Connection,
} from '../../packages/wire/test/anchor.ts'

const REQUEST_MS = 2_000
const WARM_UP_MS = 400
const BULK_BYTES = 256 * 1024 * 1024
/** The first round warms the code and opens the windows. */
const BULK_ROUNDS = 4
const CHUNK = Buffer.alloc(64 * 1024, 7)
const ANSWER = 'x'.repeat(1024 - 100)
const QUESTION = 'q'.repeat(100)

type Addresses = {
  readonly raw: string
  readonly host: string
  readonly wire: string
  readonly did: string
  readonly tcpPort: number
}
type Row = {
  readonly what: string
  readonly perSecond: number
  readonly unit: string
  readonly cpuUs: number
  readonly p50Ms?: number
}

/** Run everything and print one table; about 40 s. */
export async function benchWire(): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ['serve'], { execArgv: ['--conditions=csb-source'] })
  try {
    const [addresses] = (await once(child, 'message')) as [Addresses]
    const raw = await startPlain()
    const { wire, close } = await startWire()
    const { host, stopHost } = await startHost()
    const connection = await dialPlain(raw, addresses.raw)
    const ours = await dialPlain(host.libp2p, addresses.host)
    await wire.peers.dial(addresses.wire)
    print('bulk over loopback', await benchBulk(child, addresses, connection, ours), 1)
    const pings = await measure(child, 'libp2p ping', 1, () => raw.services.ping.ping(connection.remotePeer))
    const one = await benchRequests(child, addresses, connection, wire, 1)
    print('about 300 B there, 1 KiB back, 1 in flight', [...one, pings], 0)
    print('the same, 16 in flight', await benchRequests(child, addresses, connection, wire, 16), 0)
    print('small requests beside a bulk transfer on the same connection', await benchBeside(child, connection, ours), 0)
    await close()
    await stopHost()
    await raw.stop()
  } finally {
    child.kill()
  }
}

async function benchRequests(
  child: ChildProcess,
  to: Addresses,
  connection: Connection,
  wire: Wire,
  inFlight: number,
): Promise<Row[]> {
  return [
    await measure(child, 'a new raw js-libp2p stream each', inFlight, () => askRaw(connection)),
    await measure(child, 'envelope, a stream each', inFlight, () => ask(wire, to.did, 'SendStreamingMessage')),
    await measure(child, 'envelope, shared stream', inFlight, () => ask(wire, to.did, 'SendMessage')),
  ]
}

async function ask(wire: Wire, did: string, method: string): Promise<void> {
  const now = Date.now()
  const envelope: Envelope = {
    version: '1.0',
    id: newId('envelope', now),
    from: wire.did,
    to: did,
    agent: 'echo',
    context: null,
    priority: 5,
    ttl: 30_000,
    sent_at: now,
    body: { jsonrpc: '2.0', id: 1, method, params: { text: QUESTION } },
  }
  for await (const reply of wire.peers.request(envelope)) if (!reply.done) throw new Error('one answer is expected')
}

const askRaw = (connection: Connection): Promise<void> => askPlain(connection, Buffer.from(QUESTION.repeat(3)))

async function benchBulk(child: ChildProcess, to: Addresses, connection: Connection, ours: Connection): Promise<Row[]> {
  const measureOnce = async (what: string, send: () => Promise<void>): Promise<Row> => {
    const before = await cpu(child)
    const start = performance.now()
    await send()
    const seconds = (performance.now() - start) / 1000
    const megabytes = BULK_BYTES / 1e6
    return { what, perSecond: megabytes / seconds, unit: 'MB/s', cpuUs: ((await cpu(child)) - before) / megabytes }
  }
  const runs: Row[] = [await measureOnce('raw TCP', () => sendTcp(to.tcpPort))]
  for (let n = 0; n < BULK_ROUNDS; n++) {
    runs.push(await measureOnce('raw js-libp2p stream', () => sendPlain(connection, chunks())))
    runs.push(await measureOnce('our byte stream, paced', () => sendPaced(ours, chunks())))
  }
  // other work on the machine only ever makes a run slower: the best of each is nearest to what it costs
  const best = new Map<string, Row>()
  for (const row of runs) {
    const other = best.get(row.what)
    if (other === undefined || row.perSecond > other.perSecond) best.set(row.what, row)
  }
  return [...best.values()]
}

function* chunks(): Generator<Uint8Array> {
  for (let sent = 0; sent < BULK_BYTES; sent += CHUNK.byteLength) yield CHUNK
}

async function sendTcp(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  for (const chunk of chunks()) if (!socket.write(chunk)) await once(socket, 'drain')
  socket.end()
  socket.resume()
  await once(socket, 'close')
}

async function benchBeside(child: ChildProcess, connection: Connection, ours: Connection): Promise<Row[]> {
  const rows: Row[] = []
  for (const [what, link, send] of [
    ['raw js-libp2p', connection, sendPlain],
    ['our settings, paced', ours, sendPaced],
  ] as const) {
    rows.push(await measure(child, `${what}: a stream each, idle connection`, 1, () => askRaw(link)))
    const going = new AbortController()
    const bulk = (async () => {
      while (!going.signal.aborted) await send(link, chunks())
    })()
    rows.push(await measure(child, `${what}: a stream each, beside bulk`, 1, () => askRaw(link)))
    going.abort('measured')
    await bulk
  }
  return rows
}

/** Run `operation` again and again, `inFlight` at once, for {@link REQUEST_MS}. */
async function measure(
  child: ChildProcess,
  what: string,
  inFlight: number,
  operation: () => Promise<unknown>,
): Promise<Row> {
  const run = async (ms: number): Promise<number[]> => {
    const times: number[] = []
    const end = performance.now() + ms
    const worker = async () => {
      while (performance.now() < end) {
        const start = performance.now()
        await operation()
        times.push(performance.now() - start)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, worker))
    return times
  }
  await run(WARM_UP_MS)
  const before = await cpu(child)
  const start = performance.now()
  const times = await run(REQUEST_MS)
  const seconds = (performance.now() - start) / 1000
  const used = (await cpu(child)) - before
  times.sort((a, b) => a - b)
  return {
    what,
    perSecond: times.length / seconds,
    unit: 'per s',
    cpuUs: used / times.length,
    p50Ms: times[Math.floor(times.length / 2)] ?? 0,
  }
}

/** Microseconds of CPU of both processes so far. */
async function cpu(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [theirs] = (await once(child, 'message')) as [number]
  const { user, system } = process.cpuUsage()
  return user + system + theirs
}

/** @param anchor index of the row that is 1.00 */
function print(title: string, rows: readonly Row[], anchor: number): void {
  const base = rows[anchor]?.perSecond ?? 1
  const out = [`\n${title}`]
  for (const { what, perSecond, unit, cpuUs, p50Ms } of rows) {
    const cost = unit === 'MB/s' ? `${(cpuUs / 1000).toFixed(2)} CPU-ms per MB` : `${cpuUs.toFixed(0)} CPU-us each`
    const cells = [
      `${perSecond.toFixed(0).padStart(7)} ${unit.padEnd(5)}`,
      (perSecond / base).toFixed(2).padStart(6),
      cost.padStart(20),
      p50Ms === undefined ? '' : `p50 ${p50Ms.toFixed(2)} ms`,
    ]
    out.push(`  ${what.padEnd(52)} ${cells.join('  ')}`)
  }
  process.stdout.write(`${out.join('\n')}\n`)
}

async function startHost(): Promise<{ host: Host; stopHost(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-host-'))
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
  })
  await host.start()
  return {
    host,
    stopHost: async () => {
      await host.stop()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startWire(): Promise<{ wire: Wire; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-wire-'))
  const store = await openStore(join(folder, 'db'))
  const wire = await createWire({
    seed: exportSeed(createKeyPair()),
    db: store.db,
    config: {
      listen: ['/ip4/127.0.0.1/tcp/0'],
      bootstrap: [],
      mdns: false,
      maxConnections: 100,
      profile: 'loopback',
      // the check stays in the path; the bench opens more streams a second than a peer may
      admission: { perSecond: 1e6, burst: 1e6 },
    },
    records: { verify: () => undefined, accept: () => true },
    cards: { verify: () => true },
    clock: systemClock,
    log: () => undefined,
  })
  await wire.listen({
    perform: async () => undefined,
    attend: async () => undefined,
    open: async function* (_caller, _operation, input): AsyncGenerator<EnvelopeReply> {
      const { envelope } = input as { envelope: Envelope }
      yield { id: envelope.id, body: { jsonrpc: '2.0', id: 1, result: ANSWER }, done: true }
    },
  })
  return {
    wire,
    close: async () => {
      await wire.stop()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The other process: answers everything that is measured. */
async function serve(): Promise<void> {
  const raw = await startPlain()
  const { host } = await startHost()
  for (const node of [raw, host.libp2p]) await answerPlain(node)
  const { wire } = await startWire()
  const sink = createServer((socket) => {
    socket.on('end', () => socket.end())
    socket.resume()
  })
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  const addresses: Addresses = {
    raw: raw.getMultiaddrs()[0]?.toString() ?? '',
    host: host.libp2p.getMultiaddrs()[0]?.toString() ?? '',
    wire: wire.peers.addresses()[0] ?? '',
    did: wire.did,
    tcpPort: (sink.address() as { port: number }).port,
  }
  process.send?.(addresses)
}

if (process.argv[2] === 'serve' && process.send !== undefined) await serve()
