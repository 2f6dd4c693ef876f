/**
 * `/csb/envelope/1.0.0`: A2A messages between nodes, many of them on one stream where that pays.
 *
 * Each envelope goes to `agents.deliver` as it came. Who may send what is decided there.
 * @clause A2A-017
 */
import { LIMITS, NodeError, deadline, errorFromJSON, fail, toNodeError, type Clock, type Envelope } from '@csb/core'
import type { CallOptions, EnvelopeReply, Service } from '@csb/service'
import type { Admission } from '../admission.ts'
import { errorIn, watchSilence, type Frames } from '../frame.ts'
import type { Host } from '../host.ts'
import { serve, type Log, type Visit } from '../protocol.ts'

export const PROTOCOL_ENVELOPE = '/csb/envelope/1.0.0'

/** Envelope frames in both directions; replies of streams come in many. */
export const ENVELOPE_FRAMES = { maxFrameBytes: LIMITS.envelopeBytes, gather: true } as const

/** Frames of the answering side: a reply, or the error that an envelope was refused with. */
export type ReplyFrame = { readonly id: string; readonly reply?: EnvelopeReply; readonly error?: NodeError }

export type EnvelopeServer = {
  readonly host: Host
  readonly service: Pick<Service, 'open'>
  readonly admission: Admission
  readonly clock: Clock
  readonly log: Log
}

/** Answer envelopes until the node stops. */
export async function serveEnvelopes(server: EnvelopeServer): Promise<void> {
  const turns = createTurns(LIMITS.envelopesInFlight)
  const options = { ...ENVELOPE_FRAMES, protocol: PROTOCOL_ENVELOPE, admission: server.admission, log: server.log }
  await serve(server.host, options, (visit) => answerAll(visit, server, turns))
}

/**
 * One envelope on a stream of its own.
 * @param waitMs how long to wait for each answer
 */
export async function* askOnce(
  frames: Frames,
  envelope: Envelope,
  waitMs: number,
  { signal }: CallOptions,
): AsyncGenerator<EnvelopeReply> {
  let done = false
  try {
    await frames.send(envelope)
    await frames.close(deadline(waitMs, signal))
    while (!done) {
      const frame = await frames.receive(deadline(waitMs, signal))
      const { id, reply, error } = readReply(frame)
      if (id !== envelope.id) fail('PEER_MISBEHAVED', { reason: 'an answer to something else' })
      done = error !== undefined || reply?.done === true
      if (error !== undefined) throw error
      if (reply !== undefined) yield reply
    }
  } finally {
    if (done) void frames.settle()
    else frames.abort(new NodeError('TIMEOUT', { reason: 'the caller left' }))
  }
}

/**
 * Read a frame of the answering side.
 * @throws the error of an error frame of the whole stream; PEER_MISBEHAVED for anything else than a reply
 */
export function readReply(frame: unknown): ReplyFrame {
  if (frame === undefined) fail('PEER_MISBEHAVED', { reason: 'the peer ended without an answer' })
  const broken = errorIn(frame)
  if (broken !== undefined) throw broken
  const { id, body, done, error } = frame as { id?: unknown; body?: unknown; done?: unknown; error?: unknown }
  if (typeof id !== 'string') return fail('PEER_MISBEHAVED', { reason: 'not a reply frame' })
  if (error !== undefined) return { id, error: errorFromJSON(error) }
  if (typeof done !== 'boolean' || body === undefined) return fail('PEER_MISBEHAVED', { reason: 'not a reply frame' })
  return { id, reply: { id, body, done } }
}

async function answerAll(visit: Visit, server: EnvelopeServer, turns: Turns): Promise<void> {
  const { frames } = visit
  const running = new Map<string, AbortController>()
  const jobs = new Set<Promise<void>>()
  let movedAt = server.clock.now()
  const stopAll = (reason: unknown) => {
    for (const controller of running.values()) controller.abort(reason)
  }
  frames.gone.addEventListener('abort', () => stopAll(frames.gone.reason), { once: true })
  watchSilence(
    frames,
    server.clock,
    LIMITS.streamIdleMs,
    () => (running.size > 0 ? undefined : movedAt),
    (error) => frames.abort(error),
  )

  try {
    for (let frame = await visit.first(); frame !== undefined; frame = await frames.receive()) {
      movedAt = server.clock.now()
      const cancelled = cancelIn(frame)
      if (cancelled !== undefined) {
        running.get(cancelled)?.abort(new NodeError('TIMEOUT', { reason: 'the caller left' }))
        continue
      }
      const id = envelopeId(frame)
      if (running.has(id)) fail('MALFORMED', { reason: 'that envelope is being answered', id })
      const leave = await turns.enter(visit.did)
      const controller = new AbortController()
      running.set(id, controller)
      const job = deliver(visit, server.service, frame, id, controller.signal).finally(() => {
        leave()
        running.delete(id)
        jobs.delete(job)
        movedAt = server.clock.now()
      })
      jobs.add(job)
    }
  } catch (error) {
    stopAll(error)
    throw error
  }
  await Promise.all(jobs)
}

/** Never rejects: what goes wrong is told to the peer, under the id of the envelope. */
async function deliver(
  { caller, frames }: Visit,
  service: Pick<Service, 'open'>,
  envelope: unknown,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    let done = false
    for await (const answer of service.open(caller, 'agents.deliver', { envelope }, { signal, requestId: id })) {
      const reply = answer as EnvelopeReply
      done = reply.done
      await frames.send({ id, body: reply.body, done })
    }
    if (!done) fail('INTERNAL', { reason: 'the answer has no end' })
  } catch (thrown) {
    if (frames.gone.aborted) return
    await frames.send({ id, error: toNodeError(thrown).toJSON() }).catch(() => undefined)
  }
}

function envelopeId(frame: unknown): string {
  const id = (frame as { id?: unknown } | null)?.id
  return typeof id === 'string' && id.length <= 128 ? id : fail('MALFORMED', { reason: 'an envelope has an id' })
}

function cancelIn(frame: unknown): string | undefined {
  const cancel = (frame as { cancel?: unknown } | null)?.cancel
  return typeof cancel === 'string' ? cancel : undefined
}

type Turns = { enter(did: string): Promise<() => void> }

/** At most `limit` at work per peer, over all its streams; who waits does not read, and so the peer waits too. */
function createTurns(limit: number): Turns {
  const places = new Map<string, { taken: number; readonly waiting: (() => void)[] }>()
  return {
    enter: async (did) => {
      const place = places.get(did) ?? { taken: 0, waiting: [] }
      places.set(did, place)
      if (place.taken >= limit) await new Promise<void>((resolve) => place.waiting.push(resolve))
      else place.taken++
      return () => {
        const next = place.waiting.shift()
        if (next !== undefined) next()
        else if (--place.taken === 0) places.delete(did)
      }
    },
  }
}
