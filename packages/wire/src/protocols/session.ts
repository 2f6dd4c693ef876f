/**
 * `/csb/sync/1.0.0`, `/csb/handoff/1.0.0`, `/csb/delegation/1.0.0`, `/csb/witness/1.0.0`: sessions between nodes.
 *
 * The opening frame names the version and carries the input of the operation that attends; what follows is the
 * session's own talk, which this door does not read.
 * @clause L4.1
 */
import type { Connection } from '@libp2p/interface'
import { LIMITS, NodeError, fail, type Clock } from '@csb/core'
import type { CallOptions, MessagePort, Service, SessionKind } from '@csb/service'
import type { Admission } from '../admission.ts'
import { wireError } from '../errors.ts'
import { portOf } from '../frame.ts'
import type { Host } from '../host.ts'
import { openStream, serve, type Log } from '../protocol.ts'

/** Major version must be equal; a higher minor one may add members. */
export const SESSION_VERSION = '1.0'

/** The protocol of each kind of session, and the operation that attends it. */
export const SESSIONS = {
  sync: { protocol: '/csb/sync/1.0.0', operation: 'sync.serve' },
  handoff: { protocol: '/csb/handoff/1.0.0', operation: 'handoff.receive' },
  delegation: { protocol: '/csb/delegation/1.0.0', operation: 'authority.receive' },
  witness: { protocol: '/csb/witness/1.0.0', operation: 'witness.serve' },
} as const satisfies Record<SessionKind, { protocol: string; operation: string }>

/** A handoff comes whole in one frame; the other sessions page their talk. */
const FRAMES: Record<SessionKind, { readonly maxFrameBytes: number }> = {
  sync: { maxFrameBytes: LIMITS.frameBytes },
  handoff: { maxFrameBytes: LIMITS.handoffBytes },
  delegation: { maxFrameBytes: LIMITS.chainBytes },
  witness: { maxFrameBytes: LIMITS.chainBytes },
}

export type SessionServer = {
  readonly host: Host
  readonly service: Pick<Service, 'attend'>
  readonly admission: Admission
  readonly clock: Clock
  readonly log: Log
}

/** Attend sessions of every kind until the node stops. */
export async function serveSessions({ host, service, admission, clock, log }: SessionServer): Promise<void> {
  for (const kind of Object.keys(SESSIONS) as SessionKind[]) {
    const { protocol, operation } = SESSIONS[kind]
    const options = { ...FRAMES[kind], protocol, admission, log, graceMs: LIMITS.streamIdleMs }
    await serve(host, options, async ({ caller, frames, first }) => {
      const input = readOpening(await first())
      await service.attend(caller, operation, input, portOf(frames, clock), { signal: frames.gone })
    })
  }
}

/**
 * Open a session with the node at the other end. A refusal comes from the first `receive`.
 * @param input what the attending operation takes
 * @throws PEER_UNREACHABLE, VERSION_MISMATCH, TIMEOUT, TOO_LARGE
 */
export async function openSession(
  connection: Connection,
  kind: SessionKind,
  input: unknown,
  clock: Clock,
  options: CallOptions = {},
): Promise<MessagePort> {
  const frames = await openStream(connection, SESSIONS[kind].protocol, { ...FRAMES[kind], ...options })
  const onAbort = () => frames.abort(wireError(options.signal?.reason))
  options.signal?.addEventListener('abort', onAbort, { once: true })
  frames.gone.addEventListener('abort', () => options.signal?.removeEventListener('abort', onAbort), { once: true })
  try {
    await frames.send({ v: SESSION_VERSION, input })
  } catch (error) {
    frames.abort(wireError(error))
    throw error
  }
  return portOf(frames, clock)
}

function readOpening(frame: unknown): unknown {
  const { v, input } = (frame ?? {}) as { v?: unknown; input?: unknown }
  if (typeof v !== 'string' || !/^\d{1,4}\.\d{1,4}$/.test(v)) {
    throw new NodeError('MALFORMED', { reason: 'the opening frame names a version' })
  }
  if (v.split('.')[0] !== SESSION_VERSION.split('.')[0]) fail('VERSION_MISMATCH', { asked: v, spoken: SESSION_VERSION })
  if (input === undefined) fail('MALFORMED', { reason: 'the opening frame has an input' })
  return input
}
