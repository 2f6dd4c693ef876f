/**
 * Serving a protocol and opening a stream of it, the same way for all: admission per peer, a deadline for the
 * first frame, an error frame before the end, and a stream that is always closed or broken off.
 */
import type { Connection, Stream } from '@libp2p/interface'
import { LIMITS, deadline, didFromPeerId, fail, toNodeError } from '@csb/core'
import type { CallOptions, Caller } from '@csb/service'
import type { Admission } from './admission.ts'
import { openBytes } from './bytes.ts'
import { dialError } from './errors.ts'
import { createFrames, type FrameOptions, type Frames } from './frame.ts'
import { STREAMS_PER_CONNECTION, type Host } from './host.ts'

/** What happened at the door: a name and plain values, never content. */
export type Log = (event: string, details: Readonly<Record<string, unknown>>) => void

export type Visit = {
  readonly did: string
  readonly caller: Caller
  readonly frames: Frames
  /**
   * The first frame.
   * @throws TIMEOUT after {@link LIMITS.requestTimeoutMs}, PEER_MISBEHAVED where the peer ended without one
   */
  first(): Promise<unknown>
}

export type ProtocolOptions = FrameOptions & {
  /** protocol id, `/csb/<name>/<major.minor.patch>` */
  readonly protocol: string
  readonly admission: Admission
  readonly log: Log
  /** how long the peer may take to end its side after the answer; default {@link LIMITS.closeGraceMs} */
  readonly graceMs?: number
}

/**
 * Answer streams of one protocol until the node stops.
 * @param answer works on one stream; what it throws goes to the peer as an error frame
 */
export async function serve(
  host: Host,
  options: ProtocolOptions,
  answer: (visit: Visit) => Promise<void>,
): Promise<void> {
  const visit = (stream: Stream, connection: Connection) => attend(stream, connection, options, answer)
  await host.libp2p.handle(options.protocol, visit, {
    maxInboundStreams: STREAMS_PER_CONNECTION,
    maxOutboundStreams: STREAMS_PER_CONNECTION,
  })
}

/**
 * A stream of a protocol on an open connection. The caller closes it or breaks it off.
 * @throws VERSION_MISMATCH where the peer does not speak it, PEER_UNREACHABLE, TIMEOUT, BUSY
 */
export async function openStream(
  connection: Connection,
  protocol: string,
  options: FrameOptions & CallOptions = {},
): Promise<Frames> {
  try {
    const stream = await connection.newStream(protocol, {
      signal: deadline(LIMITS.requestTimeoutMs, options.signal),
      negotiateFully: false,
      maxOutboundStreams: STREAMS_PER_CONNECTION,
    })
    return createFrames(openBytes(stream, connection), options)
  } catch (thrown) {
    throw dialError(thrown)
  }
}

async function attend(
  stream: Stream,
  connection: Connection,
  options: ProtocolOptions,
  answer: (visit: Visit) => Promise<void>,
): Promise<void> {
  const frames = createFrames(openBytes(stream, connection), options)
  const peerId = connection.remotePeer.toString()
  let leave: (() => void) | undefined
  try {
    const did = didFromPeerId(peerId)
    leave = options.admission.enter(did)
    await answer({ did, caller: { kind: 'peer', did, door: 'libp2p' }, frames, first: () => firstFrame(frames) })
    await frames.close(deadline(LIMITS.closeGraceMs))
  } catch (thrown) {
    const error = toNodeError(thrown)
    options.log('wire.refused', { protocol: options.protocol, peerId, code: error.code })
    if (frames.gone.aborted) frames.abort(error)
    else await frames.refuse(error)
  } finally {
    leave?.()
  }
  await frames.settle(options.graceMs)
}

async function firstFrame(frames: Frames): Promise<unknown> {
  const frame = await frames.receive(deadline(LIMITS.requestTimeoutMs))
  if (frame === undefined) fail('PEER_MISBEHAVED', { reason: 'ended without a frame' })
  return frame
}
