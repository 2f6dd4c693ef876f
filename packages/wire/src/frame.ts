/**
 * Frames: a varint length, then canonical JSON. Every protocol of this door speaks in them.
 *
 * The length is checked before one byte of the body is kept, the body before it is parsed. An error frame is an
 * object whose only member is `error`.
 */
import { scheduler } from 'node:timers/promises'
import { decode, encode } from 'it-length-prefixed'
import { pipe } from 'it-pipe'
import {
  LIMITS,
  NodeError,
  canonicalize,
  deadline,
  delay,
  errorFromJSON,
  fail,
  fromUtf8,
  parseBounded,
  toNodeError,
  utf8,
  type Clock,
} from '@csb/core'
import type { MessagePort } from '@csb/service'
import { receiveBulk, type ByteStream } from './bytes.ts'
import { wireError } from './errors.ts'

export type FrameOptions = {
  /** largest frame in either direction, in bytes; default {@link LIMITS.frameBytes} */
  readonly maxFrameBytes?: number
  /** collect what is sent within one turn of the event loop into one write: for streams of many small frames */
  readonly gather?: boolean
}

export type Frames = {
  /** @throws TOO_LARGE before anything is sent, PEER_UNREACHABLE */
  send(value: unknown): Promise<void>
  /**
   * The next frame, or undefined where the other side has ended. After a failure it fails the same way again.
   * @throws TOO_LARGE, MALFORMED, PEER_MISBEHAVED for a frame cut short, PEER_UNREACHABLE, TIMEOUT
   */
  receive(signal?: AbortSignal): Promise<unknown>
  /** End my side after what was sent is flushed. */
  close(signal?: AbortSignal): Promise<void>
  /** Tell the other side why, end my side. Never throws. */
  refuse(error: NodeError): Promise<void>
  /** Wait for the other side's end, or break the stream off after `graceMs`. */
  settle(graceMs?: number): Promise<void>
  abort(reason: Error): void
  /** Fires when the stream is over. */
  readonly gone: AbortSignal
}

/** @param bytes a stream that nothing was read from yet */
export function createFrames(bytes: ByteStream, options: FrameOptions = {}): Frames {
  const maxFrameBytes = options.maxFrameBytes ?? LIMITS.frameBytes
  const incoming = pipe(receiveBulk(bytes), (source) =>
    decode(source, { maxDataLength: maxFrameBytes, maxLengthLength: 5 }),
  )
  let failure: NodeError | undefined
  /** a frame that is on its way; it outlives a receive that gave up waiting */
  let pending: ReturnType<typeof incoming.next> | undefined
  const output =
    options.gather === true ? createGatherer(bytes) : { write: bytes.write, flushed: async () => undefined }

  const send = async (value: unknown): Promise<void> => {
    const body = utf8(canonicalize(value))
    if (body.byteLength > maxFrameBytes) fail('TOO_LARGE', { maxFrameBytes })
    await output.write(encode.single(body, { maxDataLength: maxFrameBytes }).subarray())
  }
  const close = async (signal?: AbortSignal): Promise<void> => {
    await output.flushed()
    await bytes.close(signal)
  }
  return {
    send,
    close,
    receive: async (signal) => {
      if (failure !== undefined) throw failure
      pending ??= incoming.next()
      if (signal !== undefined) await arrival(pending, signal)
      try {
        const { done, value } = await pending
        pending = undefined
        return done === true ? undefined : readFrame(value.subarray(), maxFrameBytes)
      } catch (error) {
        failure = wireError(error, 'MALFORMED')
        throw failure
      }
    },
    refuse: async (error) => {
      try {
        await send({ error: error.toJSON() })
        await close(deadline(LIMITS.closeGraceMs))
      } catch (thrown) {
        bytes.abort(wireError(thrown))
      }
    },
    settle: bytes.settle,
    abort: bytes.abort,
    gone: bytes.gone,
  }
}

/** The error that an error frame carries, or undefined for any other frame. */
export function errorIn(frame: unknown): NodeError | undefined {
  if (typeof frame !== 'object' || frame === null || !('error' in frame)) return undefined
  return Object.keys(frame).length === 1 ? errorFromJSON(frame.error) : undefined
}

/**
 * A session over frames. `receive` throws what the other side refused with.
 * Silence for `idleMs` while a message or the other side's end is awaited breaks the stream with TIMEOUT.
 * @param idleMs default {@link LIMITS.streamIdleMs}
 */
export function portOf(frames: Frames, clock: Clock, idleMs: number = LIMITS.streamIdleMs): MessagePort {
  let movedAt = clock.now()
  let awaited = 0
  let closed = false
  watchSilence(
    frames,
    clock,
    idleMs,
    () => (awaited > 0 || closed ? movedAt : undefined),
    (error) => frames.abort(error),
  )
  return {
    send: async (message) => {
      await frames.send(message)
      movedAt = clock.now()
    },
    receive: async () => {
      awaited++
      movedAt = clock.now()
      try {
        const frame = await frames.receive()
        const error = errorIn(frame)
        if (error !== undefined) throw error
        return frame
      } finally {
        awaited--
      }
    },
    close: async () => {
      closed = true
      movedAt = clock.now()
      await frames.close(deadline(idleMs))
    },
    abort: (reason) => frames.abort(toNodeError(reason)),
  }
}

/**
 * Call `onSilent` once when nothing moved for `idleMs`; one timer per stream, none per frame.
 * @param movedAt ms since epoch of the last movement, or undefined while silence is allowed
 */
export function watchSilence(
  frames: Frames,
  clock: Clock,
  idleMs: number,
  movedAt: () => number | undefined,
  onSilent: (error: NodeError) => void,
): void {
  const watch = async (): Promise<void> => {
    while (!frames.gone.aborted) {
      await delay(idleMs / 4, frames.gone)
      const last = movedAt()
      if (last !== undefined && clock.now() - last >= idleMs) {
        onSilent(new NodeError('TIMEOUT', { idleMs }))
        return
      }
    }
  }
  watch().catch(() => undefined) // the stream is over
}

/** Resolves when the promise settles; rejects with TIMEOUT when the signal fires first. */
function arrival(frame: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(wireError(signal.reason))
      return
    }
    const onAbort = () => reject(wireError(signal.reason))
    const onSettled = () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    frame.then(onSettled, onSettled)
  })
}

function readFrame(body: Uint8Array, maxBytes: number): unknown {
  const text = fromUtf8(body) ?? fail('MALFORMED', { reason: 'not UTF-8' })
  return parseBounded(text, maxBytes)
}

/** One write for all frames of one turn of the event loop: one Noise message and one system call in place of many. */
function createGatherer(bytes: ByteStream) {
  let gathered: Uint8Array[] = []
  let flushing: Promise<void> | undefined
  const flush = async (): Promise<void> => {
    await scheduler.yield()
    const batch = gathered
    gathered = []
    flushing = undefined
    await bytes.write(batch.length === 1 && batch[0] !== undefined ? batch[0] : Buffer.concat(batch))
  }
  return {
    write: (frame: Uint8Array): Promise<void> => {
      gathered.push(frame)
      flushing ??= flush()
      return flushing
    },
    flushed: async () => {
      await flushing?.catch(() => undefined)
    },
  }
}
