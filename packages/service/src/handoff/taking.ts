/**
 * Taking work in: a package whose chain leads from an origin this node trusts, run by an agent of this node under what
 * is left of its lease, answered with a signed result. Nothing of this node's own home is within its reach.
 * @clause L4.4
 */
import { LIMITS, delay, fail, toNodeError, type Grant, type Handoff, type Lease } from '@csb/core'
import { getAgent, type AgentResult, type AttachedAgent } from '@csb/agents'
import {
  checkFresh,
  effectiveNow,
  isAtMost,
  isRevoked,
  meet,
  storeGrant,
  takeStatuses,
  trusted,
  verifyChain,
} from '@csb/authority'
import { checkFiles, createResult, handoffBranch, handoffHash, openHandoff } from '@csb/sync'
import { key } from '@csb/store'
import { handedFooting, whileHeld } from '../revocation/freshness.ts'
import { locationOf, type Context } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { visitorCeiling } from '../runs/lease.ts'
import { withRun } from '../runs/command.ts'

/** Well below the silence that ends a stream. */
const WORKING_MS = 20_000

/** The other side: check the package, run the agent under what is left of its lease, sign what came of it. */
export async function takeHandoff(context: Context, _input: unknown, port: MessagePort): Promise<void> {
  const from = context.principal.did ?? fail('UNAUTHENTICATED')
  const now = effectiveNow(context.view, context.clock.now())
  const handoff = openHandoff(await port.receive(), from, context.key.did, { level: 'sealed', tags: ['*'] }, now)
  const agent = getAgent(context.view, handoff.agent)
  await context.store.transact((tx) => takeStatuses(tx, handoff.status, checkedChain(context, handoff, now).chain, now))
  const { lease, leafHash, chain } = accept(context, handoff, agent, now)
  await context.write(
    (tx) => {
      // a package works once, also when its first run was cut short; and no peer writes over what this node offered
      if (tx.has(key('handoff', handoff.id))) fail('REPLAYED', { handoff: handoff.id })
      tx.putJson(key('handoff', handoff.id), { id: handoff.id, from, state: 'running', hash: handoffHash(handoff) })
      // it pays for the run: what it may use at this node was carved out for it where it came from
      if (lease.budget !== undefined) storeGrant(tx, { chain })
    },
    () => ({ handoff: handoff.id, from, agent: agent.id, lease: leafHash }),
  )
  const { result, failure } = await whileTelling(port, work(context, handoff, { lease, leafHash, chain }))
  const { seq, value } = await context.tell(
    (tx) => {
      const told = { outcome: failure === null ? ('completed' as const) : ('failed' as const), code: failure }
      tx.putJson(key('handoff', handoff.id), { id: handoff.id, from, state: told.outcome })
      return told
    },
    (told) => ({ handoff: handoff.id, to: from, ...told }),
  )
  await port.send(
    createResult(
      {
        handoff: handoff.id,
        to: from,
        outcome: value.outcome,
        code: value.code,
        text: result.text ?? '',
        files: value.outcome === 'completed' ? [...(result.files ?? [])] : [],
        lease: leafHash,
        record: { seq: seq.seq, leaf: `sha256:${seq.leaf}` },
        finished_at: context.clock.now(),
      },
      context.key,
    ),
  )
  await port.close()
}

/** The chain must lead from an origin that is trusted here to this node; the lease it ends in is met with the ceiling. */
function accept(context: Context, handoff: Handoff, agent: AttachedAgent, now: number): Accepted {
  const verified = checkedChain(context, handoff, now)
  checkFresh(context.view, verified.chain, { self: context.key.did, now })
  const { leaf } = verified
  if (leaf.delegation.grantee_key !== context.key.did || leaf.delegation.task !== handoff.id) {
    fail('GRANT_INVALID', { reason: 'holder_mismatch' })
  }
  const origin = trusted(context.view, verified.rootDid)
  if (origin === undefined || !isAtMost('request', origin.ceiling)) fail('DENIED', { reason: 'over_ceiling' })
  if (agent.accept === 'nobody') fail('DENIED', { reason: 'that agent takes no work from other nodes' })
  const given = verified.lease ?? fail('LEASE_REQUIRED', { reason: 'the handoff holds no lease' })
  const ceiling: Lease = {
    type: 'urn:csb:lease:1',
    locations: given.locations,
    actions: ['read', 'propose'],
    paths: ['/'],
    branches: [handoffBranch(handoff.id)],
    labels_max: 'sealed',
    label_tags: ['*'],
  }
  const lease = meet(given, ceiling) ?? fail('SCOPE_EXCEEDED', { field: 'actions' })
  return { lease, leafHash: verified.leafHash, chain: verified.chain }
}

const checkedChain = ({ key: { did: audience }, view }: Context, handoff: Handoff, now: number) =>
  verifyChain({
    chain: handoff.chain,
    now,
    audience,
    isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
    trustedRoot: (did) => trusted(view, did),
  })

/** An agent may take longer than a stream may be silent. */
async function whileTelling<T>(port: MessagePort, done: Promise<T>): Promise<T> {
  const ended = new AbortController()
  const telling = (async () => {
    for (;;) {
      await delay(WORKING_MS, ended.signal)
      await port.send({ working: true })
    }
  })()
  telling.catch(() => undefined) // it ends by being stopped, or with the stream, which the result will meet
  try {
    return await done
  } finally {
    ended.abort()
  }
}

type Accepted = { readonly lease: Lease; readonly leafHash: string; readonly chain: readonly Grant[] }

type Worked = { readonly result: AgentResult; readonly failure: string | null }

async function work(context: Context, handoff: Handoff, { lease, leafHash, chain }: Accepted): Promise<Worked> {
  const agent = getAgent(context.view, handoff.agent)
  let result: AgentResult = {}
  let leave: (() => void) | undefined
  try {
    const footing = handedFooting(context, chain, handoff.from)
    await whileHeld(context, footing, async (over) => {
      const signal = AbortSignal.any([context.signal, over])
      leave = await context.runs.turns.take(context.config.agents?.runs ?? LIMITS.agentRuns, signal)
      // it may have ended before anybody watched
      footing.check()
      const init = {
        agent,
        task: handoff.id,
        input: {
          handoff: { id: handoff.id, from: handoff.from, branch: handoffBranch(handoff.id), paths: lease.paths ?? [] },
          message: { role: 'ROLE_USER', parts: [{ text: handoff.task.text }] },
          files: handoff.files.map(({ path, text }) => ({ path, text })),
        },
        // its reach is the package and its answer: nothing of this node's own home
        payer: lease.budget === undefined ? null : leafHash,
        ceiling: visitorCeiling(locationOf(context, context.identity.home ?? 'none')),
        signal,
      }
      await withRun(context, init, async (run) => {
        for await (const event of run.events()) if (event.kind === 'result') result = event.result
      })
    })
    checkFiles(lease, handoff, result.files ?? [])
    return { result, failure: null }
  } catch (error) {
    return { result: { text: result.text ?? '' }, failure: toNodeError(error).code }
  } finally {
    leave?.()
    context.runs.reads.delete(handoff.id)
  }
}
