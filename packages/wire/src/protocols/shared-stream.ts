/**
 * Many envelopes to one peer on one long-lived stream of `/csb/envelope/1.0.0`, told apart by their ids.
 *
 * A stream per request costs negotiation and two writes to the peer store; this costs a frame. The first request
 * on a connection has a stream of its own, because most peers are asked once. Requests with many answers keep
 * their own stream, where a slow consumer holds up nobody else.
 */
import type { Connection } from '@libp2p/interface'
import { LIMITS, NodeError, fail, type Clock, type Envelope } from '@csb/core'
import type { CallOptions, EnvelopeReply } from '@csb/service'
import { wireError } from '../errors.ts'
import { watchSilence, type Frames } from '../frame.ts'
import { openStream } from '../protocol.ts'
import { ENVELOPE_FRAMES, PROTOCOL_ENVELOPE, askOnce, readReply, type ReplyFrame } from './envelope.ts'

export type EnvelopeDialler = {
  /** @throws PEER_UNREACHABLE, TIMEOUT, PEER_MISBEHAVED, BUSY, or the code that the peer answered with */
  ask(connection: Connection, envelope: Envelope, options: CallOptions): AsyncIterable<EnvelopeReply>
}

type Shared = {
  ask(envelope: Envelope, waitMs: number, options: CallOptions): AsyncIterable<EnvelopeReply>
}

type Contact = { requests: number; shared: Promise<Shared> | undefined }

type Call = {
  readonly replies: EnvelopeReply[]
  readonly waitMs: number
  expiresAt: number
  error: NodeError | undefined
  wake: (() => void) | undefined
}

/** A2A methods that answer in a stream carry one of these words in every version of its method names. */
const STREAMING = /stream|subscribe/i
const SHORTEST_WAIT_MS = 1_000

export function createEnvelopeDialler(clock: Clock): EnvelopeDialler {
  const contacts = new WeakMap<Connection, Contact>()

  const sharedOn = (connection: Connection, contact: Contact): Promise<Shared> => {
    if (contact.shared !== undefined) return contact.shared
    const forget = () => {
      if (contact.shared === opening) contact.shared = undefined
    }
    const opening = openStream(connection, PROTOCOL_ENVELOPE, ENVELOPE_FRAMES).then((frames) =>
      share(frames, clock, forget),
    )
    opening.catch(forget)
    contact.shared = opening
    return opening
  }
  return {
    ask: async function* (connection, envelope, options) {
      const contact = contacts.get(connection) ?? { requests: 0, shared: undefined }
      contacts.set(connection, contact)
      contact.requests++
      const waitMs = waitOf(envelope, clock)
      if (contact.requests === 1 || STREAMING.test(envelope.body.method)) {
        const frames = await openStream(connection, PROTOCOL_ENVELOPE, {
          maxFrameBytes: ENVELOPE_FRAMES.maxFrameBytes,
          ...options,
        })
        yield* askOnce(frames, envelope, waitMs, options)
        return
      }
      const shared = await sharedOn(connection, contact)
      yield* shared.ask(envelope, waitMs, options)
    },
  }
}

/** An answer is worth waiting for as long as its envelope lives. */
function waitOf(envelope: Envelope, clock: Clock): number {
  const left = envelope.sent_at + envelope.ttl - clock.now()
  return Math.min(Math.max(left, SHORTEST_WAIT_MS), LIMITS.agentTimeoutMaxMs)
}

/** @param onOver called before the stream is given up, so that the next request opens a new one */
function share(frames: Frames, clock: Clock, onOver: () => void): Shared {
  const calls = new Map<string, Call>()
  let over = false
  let usedAt = clock.now()

  const settle = (call: Call, error: NodeError): void => {
    call.error ??= error
    call.wake?.()
  }
  const end = (error: NodeError): void => {
    over = true
    onOver()
    for (const call of calls.values()) settle(call, error)
    frames.abort(error)
  }
  const take = ({ id, reply, error }: ReplyFrame): void => {
    const call = calls.get(id)
    if (call === undefined) return // the caller left; the cancel is on its way
    if (error !== undefined) settle(call, error)
    else if (call.replies.length >= LIMITS.repliesQueued)
      settle(call, new NodeError('BUSY', { reason: 'slow consumer' }))
    else if (reply !== undefined) {
      call.replies.push(reply)
      call.expiresAt = clock.now() + call.waitMs
      call.wake?.()
    }
  }
  const readAll = async (): Promise<void> => {
    for (;;) {
      const frame = await frames.receive()
      if (frame === undefined) fail('PEER_UNREACHABLE', { reason: 'the peer ended the stream' })
      take(readReply(frame))
    }
  }
  readAll().catch((thrown: unknown) => end(wireError(thrown)))
  // one timer for all calls: expired ones are given up, an unused stream is closed before the peer would do it
  const sweep = (): number | undefined => {
    const now = clock.now()
    for (const call of calls.values()) if (now >= call.expiresAt) settle(call, new NodeError('TIMEOUT', {}))
    return calls.size > 0 ? undefined : usedAt
  }
  watchSilence(frames, clock, LIMITS.sharedIdleMs, sweep, () => {
    over = true
    onOver()
    frames.close().then(
      () => frames.settle(),
      () => undefined,
    )
  })

  const ask = async function* (
    envelope: Envelope,
    waitMs: number,
    { signal }: CallOptions,
  ): AsyncGenerator<EnvelopeReply> {
    const { id } = envelope
    if (calls.has(id)) fail('INVALID_INPUT', { reason: 'that envelope is under way', id })
    const call: Call = { replies: [], waitMs, expiresAt: clock.now() + waitMs, error: undefined, wake: undefined }
    const onAbort = () => settle(call, wireError(signal?.reason))
    if (signal?.aborted === true) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    calls.set(id, call)
    let answered = false
    try {
      await frames.send(envelope)
      while (!answered) {
        const reply = call.replies.shift()
        if (reply !== undefined) {
          answered = reply.done
          yield reply
        } else if (call.error !== undefined) throw call.error
        else
          await new Promise<void>((resolve) => {
            call.wake = resolve
          })
      }
    } finally {
      signal?.removeEventListener('abort', onAbort)
      calls.delete(id)
      usedAt = clock.now()
      if (!answered && !over) frames.send({ cancel: id }).catch(() => undefined)
    }
  }
  return { ask }
}
