/** A2A requests to an agent on another node: an envelope, and authority on it where the caller asked for it. */
import { deadline, fail, newId, LIMITS, type Envelope } from '@csb/core'
import { createEnvelope, readRequest, type JsonObject, type Request } from '@csb/agents'
import { findGrant, payloadDigest, signAuthority, type Claim, type Rank } from '@csb/authority'
import { refreshStatuses, statusesFor } from '../revocation/freshness.ts'
import { showing } from '../revocation/spreading.ts'
import type { Context, Effect } from '../operation.ts'

/** A blocking message may take as long as an agent commonly does. */
const ENVELOPE_MS = 10 * 60_000

/** How long an authority lives: long enough to be delivered, short enough to be of no use later. */
const AUTHORITY_MS = 5 * 60_000

export type Outbound = {
  readonly did: string
  readonly agent: string
  /** as it came: it goes on as it is, since what was signed of it was signed so */
  readonly body: Request
  /** delegation id or grant hash to speak with */
  readonly delegation?: string
  readonly level?: Rank
  readonly scope?: readonly string[]
}

/** Send and give the answers as they come: JSON-RPC results. */
export async function* sendOut(context: Context, outbound: Outbound): AsyncGenerator<unknown> {
  const request = readRequest(outbound.body, context.clock.now())
  const envelope = await envelopeOf(context, outbound, request)
  await note(context, outbound, envelope.id)
  for await (const reply of context.peers.request(envelope, {
    signal: deadline(LIMITS.agentTimeoutMaxMs, context.signal),
  })) {
    const { result } = (reply.body ?? {}) as { result?: unknown }
    if (result !== undefined) yield result
    if (reply.done) return
  }
}

/** One answer. @throws PEER_MISBEHAVED where none came */
export async function askOut(context: Context, outbound: Outbound): Promise<unknown> {
  for await (const result of sendOut(context, outbound)) return result
  return fail('PEER_MISBEHAVED', { reason: 'no answer' })
}

/**
 * Record that another node is asked, before anything leaves: what happens there may be done although no answer comes, and
 * a question is words that go out.
 * @param effect to whom and by what; no content
 * @clause L1.5
 */
export const noteAsked = (context: Context, effect: Effect & { readonly to: string }): Promise<void> =>
  context.write(
    () => undefined,
    () => effect,
  )

const note = (context: Context, { did, agent, body, delegation }: Outbound, envelope: string): Promise<void> =>
  noteAsked(context, {
    method: body.method,
    to: did,
    agent,
    envelope,
    ...(delegation === undefined ? {} : { delegation }),
  })

async function envelopeOf(context: Context, outbound: Outbound, request: Request): Promise<Envelope> {
  const { clock, key } = context
  const { did, agent, body } = outbound
  const { delegation } = outbound
  const authority =
    delegation === undefined ? claimOf(context, outbound) : await authorityOf(context, outbound, delegation)
  const message = (request.params['message'] ?? {}) as JsonObject
  return createEnvelope(
    {
      from: key.did,
      ttl: ENVELOPE_MS,
      to: did,
      agent,
      context: typeof message['contextId'] === 'string' && message['contextId'] !== '' ? message['contextId'] : null,
      ...(authority === undefined ? {} : { authority }),
      body: { jsonrpc: '2.0', id: newId('request', clock.now()), method: body.method, params: { ...body.params } },
    },
    clock.now(),
  )
}

/**
 * A level or a scope without a delegation is claimed: it counts where the other owner was told of it, and wrote it down.
 * @clause DEL-003.3.3
 */
function claimOf({ identity, clock }: Context, { level, scope }: Outbound): Claim | undefined {
  if (level === undefined && scope === undefined) return undefined
  const { name } = identity.owner
  return { delegated_by: name, scope: scope ?? ['*'], level: level ?? 'request', issued_at: clock.now() }
}

/** @throws NOT_FOUND where there is no such delegation, GRANT_INVALID where this node is not its holder */
async function authorityOf(context: Context, { did, body, level, scope }: Outbound, delegation: string) {
  const chain = findGrant(context.view, delegation)
  const leaf = chain.at(-1) ?? fail('NOT_FOUND', { grant: delegation })
  if (leaf.delegation.grantee_key !== context.key.did) fail('GRANT_INVALID', { reason: 'holder_mismatch' })
  await showing(context, did, chain)
  const speaksAt = level ?? leaf.delegation.level
  // what must be done is done only on a young word, and what is asked for changes nothing without one
  if (speaksAt !== 'inform') await refreshStatuses(context, chain)
  const init = {
    chain,
    payload: payloadDigest(body),
    level: speaksAt,
    scope: scope ?? leaf.delegation.scope,
    audience: did,
    now: context.clock.now(),
    ttlMs: AUTHORITY_MS,
    status: await statusesFor(context, chain),
  }
  return signAuthority(init, context.key)
}
