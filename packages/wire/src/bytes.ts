/**
 * Bytes over a libp2p stream, with backpressure in both directions. The only file that touches a raw stream.
 *
 * Reading attaches a listener at once (an async iterator would lose what came before, and the end), pauses the
 * stream when enough is unread, and resumes it when that was taken. Writing keeps the stream's own buffer bounded
 * and waits for its events (the promise of `onDrain()` works only once).
 * @clause A2A-018 a fast sender is slowed down
 */
import { scheduler } from 'node:timers/promises'
import type { Connection, Stream, StreamCloseEvent, StreamMessageEvent } from '@libp2p/interface'
import { LIMITS, NodeError, delay, fail } from '@csb/core'
import { wireError } from './errors.ts'

/** What a stream delivers: one array, or a list of them. */
export type Chunk = StreamMessageEvent['data']

export type ByteStream = {
  /**
   * The next bytes, or undefined where the other side has ended.
   * @throws PEER_UNREACHABLE, PEER_MISBEHAVED
   */
  read(): Promise<Chunk | undefined>
  /**
   * Hand bytes to the stream; resolves when no more than {@link LIMITS.sendBufferBytes} wait in it.
   * @throws PEER_UNREACHABLE
   */
  write(bytes: Uint8Array): Promise<void>
  /** End my side after what was written is flushed. */
  close(signal?: AbortSignal): Promise<void>
  /** Wait until the other side has ended too; after `graceMs`, or {@link LIMITS.closeGraceMs}, break the stream off. */
  settle(graceMs?: number): Promise<void>
  /** Break the stream in both directions. */
  abort(reason: Error): void
  /** Fires when the stream is over, in whatever way; its reason is a NodeError where it broke, else a text. */
  readonly gone: AbortSignal
}

/** One Noise message carries 65,519 bytes and a yamux header takes 12: a piece fills exactly one. */
const PIECE_BYTES = Math.min(LIMITS.bulkChunkBytes, 65_507)

/** A reason that costs no stack trace: most streams end this way. */
const ENDED = 'the stream has ended'

/** @param stream a stream that nobody has read from yet */
export function openBytes(stream: Stream, connection: Pick<Connection, 'status'>): ByteStream {
  const gone = new AbortController()
  const input = createInput(stream, connection, gone)
  const output = createOutput(stream)
  return {
    read: input.read,
    write: output.write,
    close: async (signal) => {
      try {
        await output.flushed()
        await stream.close(signal === undefined ? {} : { signal })
      } catch (error) {
        const reason = wireError(error)
        abort(stream, reason)
        throw reason
      }
    },
    settle: async (graceMs = LIMITS.closeGraceMs) => {
      if (gone.signal.aborted) return
      const early = new AbortController()
      gone.signal.addEventListener('abort', () => early.abort(ENDED), { once: true })
      await delay(graceMs, early.signal).catch(() => undefined)
      if (gone.signal.aborted) return
      abort(stream, new NodeError('PEER_MISBEHAVED', { reason: 'the other side did not end the stream' }))
    },
    abort: (reason) => abort(stream, reason),
    gone: gone.signal,
  }
}

/**
 * Send many bytes without making small requests on the same connection wait: the event loop between chunks of
 * about {@link LIMITS.bulkChunkBytes}, never more than the bound in the buffer.
 * @throws PEER_UNREACHABLE
 */
export async function sendBulk(
  bytes: ByteStream,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  for await (const chunk of source) {
    await bytes.write(chunk)
    await scheduler.yield()
  }
}

/** Everything the other side sends until it ends. */
export async function* receiveBulk(bytes: ByteStream): AsyncGenerator<Chunk> {
  for (;;) {
    const chunk = await bytes.read()
    if (chunk === undefined) return
    yield chunk
  }
}

function abort(stream: Stream, reason: Error): void {
  if (stream.status === 'open' || stream.status === 'closing') stream.abort(reason)
}

function createInput(stream: Stream, connection: Pick<Connection, 'status'>, gone: AbortController) {
  const chunks: Chunk[] = []
  let queuedBytes = 0
  let ended = false
  /** the other side said it is done; without that an end is a break */
  let finished = stream.remoteWriteStatus === 'closed' && connection.status === 'open'
  let failure: NodeError | undefined
  let wake: (() => void) | undefined

  const signalReader = () => {
    wake?.()
    wake = undefined
  }
  const broken = (error: unknown): NodeError =>
    wireError(error ?? Object.assign(new Error('ended'), { name: 'StreamClosedError' }))
  const end = (error: unknown) => {
    if (!ended && failure === undefined) {
      if (error === undefined && finished) ended = true
      else failure = broken(error)
    }
    signalReader()
  }
  /** All that was sent is here once the other side has said that it is done, even where it broke off afterwards. */
  const isWhole = (): boolean => finished && stream.status !== 'aborted'

  stream.addEventListener('message', (event: StreamMessageEvent) => {
    chunks.push(event.data)
    queuedBytes += event.data.byteLength
    if (queuedBytes > LIMITS.receiveBufferBytes && stream.readStatus === 'readable') stream.pause()
    signalReader()
  })
  stream.addEventListener('remoteCloseWrite', () => {
    finished = true
  })
  stream.addEventListener('end', () => {
    // a reset or an abort that leaves something unsaid tells its error with `close`
    if (stream.status !== 'aborted' && (finished || stream.status !== 'reset')) end(undefined)
  })
  stream.addEventListener('close', (event: StreamCloseEvent) => {
    if (event.error !== undefined && !isWhole()) end(event.error)
    else if (stream.readBufferLength === 0) end(undefined)
    gone.abort(event.error === undefined && finished ? ENDED : broken(event.error))
  })
  if (stream.readableEnded) end(undefined)
  if (stream.status === 'reset' || stream.status === 'aborted' || stream.status === 'closed') {
    if (stream.readBufferLength === 0) end(stream.status === 'closed' ? undefined : broken(undefined))
    gone.abort(broken(undefined))
  }

  const read = async (): Promise<Chunk | undefined> => {
    for (;;) {
      const chunk = chunks.shift()
      if (chunk !== undefined) {
        queuedBytes -= chunk.byteLength
        if (stream.readStatus === 'paused' && queuedBytes <= LIMITS.receiveBufferBytes) stream.resume()
        return chunk
      }
      if (failure !== undefined) throw failure
      if (ended) return undefined
      if (wake !== undefined) fail('INTERNAL', { reason: 'two readers on one stream' })
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { read }
}

function createOutput(stream: Stream) {
  /** writers go one after another, so that pieces of two frames never mix */
  let turn: Promise<void> | undefined

  const put = (piece: Uint8Array): void => {
    if (stream.writeStatus !== 'writable') fail('PEER_UNREACHABLE', { reason: 'the stream is closed' })
    try {
      stream.send(piece)
    } catch (error) {
      throw wireError(error)
    }
  }
  const putAll = async (bytes: Uint8Array): Promise<void> => {
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) {
      if (at > 0) await scheduler.yield()
      while (stream.writeBufferLength >= LIMITS.sendBufferBytes) await drained(stream)
      put(bytes.subarray(at, at + PIECE_BYTES))
    }
    while (stream.writeBufferLength > LIMITS.sendBufferBytes) await drained(stream)
  }
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (turn === undefined && bytes.byteLength <= PIECE_BYTES && stream.writeBufferLength < LIMITS.sendBufferBytes) {
      put(bytes)
      return
    }
    const before = turn
    const mine = (before === undefined ? Promise.resolve() : before.catch(() => undefined)).then(() => putAll(bytes))
    turn = mine
    try {
      await mine
    } finally {
      if (turn === mine) turn = undefined
    }
  }
  return { write, flushed: async () => turn }
}

/** Resolves when the stream may take more; rejects when it is over. */
function drained(stream: Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    const clear = () => {
      stream.removeEventListener('drain', onRoom)
      stream.removeEventListener('idle', onRoom)
      stream.removeEventListener('close', onClose)
    }
    const onRoom = () => {
      clear()
      resolve()
    }
    const onClose = (event: StreamCloseEvent) => {
      clear()
      reject(wireError(event))
    }
    if (stream.status !== 'open') {
      reject(new NodeError('PEER_UNREACHABLE', { reason: 'the stream is over' }))
      return
    }
    stream.addEventListener('drain', onRoom)
    stream.addEventListener('idle', onRoom)
    stream.addEventListener('close', onClose)
  })
}
