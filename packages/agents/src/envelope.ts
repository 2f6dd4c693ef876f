/**
 * Envelopes: one A2A JSON-RPC body on its way between two nodes, with its context, priority and time to live.
 *
 * An envelope is not signed: the Noise stream proves who sends it, and it is never passed on.
 * @clause A2A-017
 */
import { LIMITS, fail, newId, validate, type Envelope } from '@csb/core'

/** What this node writes and, of the same major number, reads. */
export const ENVELOPE_VERSION = '1.0'

export type EnvelopeInput = Pick<Envelope, 'from' | 'to' | 'agent' | 'body'> & {
  readonly context?: string | null
  /** 0 lowest, 9 highest; default 5 */
  readonly priority?: number
  /** ms, default {@link LIMITS.envelopeTtlMs} */
  readonly ttl?: number
  readonly authority?: Envelope['authority']
}

/** What the receiver knows for itself. */
export type EnvelopeExpectation = {
  /** did of the other end of the stream */
  readonly peer: string
  /** did of this node */
  readonly self: string
  /** ms since epoch */
  readonly now: number
}

/**
 * @param now ms since epoch
 * @throws INVALID_INPUT
 */
export function createEnvelope(input: EnvelopeInput, now: number): Envelope {
  return validate('Envelope', {
    version: ENVELOPE_VERSION,
    id: newId('envelope', now),
    from: input.from,
    to: input.to,
    agent: input.agent,
    context: input.context ?? null,
    priority: input.priority ?? 5,
    ttl: input.ttl ?? LIMITS.envelopeTtlMs,
    sent_at: now,
    ...(input.authority === undefined ? {} : { authority: input.authority }),
    body: input.body,
  })
}

/**
 * Check what came on a stream, in this order: version, shape, sender, receiver, time.
 * @throws VERSION_MISMATCH, MALFORMED, SENDER_MISMATCH, NOT_FOUND where it is for another node, EXPIRED
 * @clause A2A-011
 */
export function checkEnvelope(value: unknown, { peer, self, now }: EnvelopeExpectation): Envelope {
  checkVersion(value)
  const envelope = validate('Envelope', value, 'MALFORMED')
  if (envelope.from !== peer) fail('SENDER_MISMATCH', { from: envelope.from, peer })
  if (envelope.to !== self) fail('NOT_FOUND', { to: envelope.to })
  if (envelope.sent_at > now + LIMITS.clockSkewMs)
    fail('EXPIRED', { reason: 'sent in the future', sentAt: envelope.sent_at })
  if (envelope.sent_at + envelope.ttl <= now) fail('EXPIRED', { sentAt: envelope.sent_at, ttlMs: envelope.ttl })
  return envelope
}

/** Before the shape: another major version may look different altogether. */
function checkVersion(value: unknown): void {
  const version = (value as { version?: unknown } | null)?.version
  if (typeof version !== 'string' || !/^[0-9]{1,4}\.[0-9]{1,4}$/.test(version))
    fail('MALFORMED', { reason: 'no version' })
  if (version.split('.')[0] !== ENVELOPE_VERSION.split('.')[0])
    fail('VERSION_MISMATCH', { version, understood: ENVELOPE_VERSION })
}
