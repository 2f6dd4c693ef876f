/**
 * Running an attached agent: under a lease of its own, minted by this node as a child of the owner's grant to it, so that
 * every commit leads from run to lease to owner.
 * @clause L1.2
 */
import type { Lease } from '@csb/core'
import { runCommand, type AgentEvent, type AttachedAgent, type Usage } from '@csb/agents'
import { createRunReads, createToken, dropToken, grantHash, leftOf, refund, type Principal } from '@csb/authority'
import type { ReadEntry } from '@csb/store'
import type { Context } from '../operation.ts'
import { checkLeft, leftIn, spendUsage } from '../session/metering.ts'
import { mintRunLease, runBranch, type Minted } from './lease.ts'

export type RunInit = {
  readonly agent: AttachedAgent
  /** id of the A2A task, or of the handoff, that this run works on */
  readonly task: string
  /** what the agent is given as `input` besides its run and lease */
  readonly input: Readonly<Record<string, unknown>>
  /** the most its lease may reach */
  readonly ceiling: Lease
  /** hash of the grant on whose word it runs, where that is another's */
  readonly basis?: string
  /** hash of the lease on whose account it is done; null where nobody's */
  readonly payer: string | null
  /** ms since epoch: nothing is done under it after that; absent or null: as long as its agent may take */
  readonly endsAt?: number | null
  /** what it is given from outside to begin with */
  readonly outside?: readonly ReadEntry[]
  readonly signal: AbortSignal
}

/** A run that may begin: the context in which it acts, and what the agent is told. */
export type PreparedRun = {
  readonly context: Context
  /** what the agent has said it used so far */
  readonly used: Used
  /**
   * Start its command, once, and give what it says as it comes.
   * @throws SCOPE_EXCEEDED with `budget.<unit>` where the agent used more than there is
   */
  events(): AsyncGenerator<AgentEvent>
}

/** What an agent said it used. */
export type Used = Readonly<Counted>

type Counted = { tokens?: number; cost_micro?: number }

function addUsage(used: Counted, usage: Usage): void {
  for (const unit of ['tokens', 'cost_micro'] as const) {
    const amount = usage[unit]
    if (amount !== undefined) used[unit] = Math.min((used[unit] ?? 0) + amount, Number.MAX_SAFE_INTEGER)
  }
}

/**
 * Mint the run's lease, make its command ready and do `work` with it. However that ends, what the run was given to ask
 * with is gone afterwards, and the time that it did not take is given back.
 * @throws SCOPE_EXCEEDED where nothing is left of the ceiling
 */
export async function withRun<T>(context: Context, init: RunInit, work: (run: PreparedRun) => Promise<T>): Promise<T> {
  const { store } = context
  const timeoutMs = timeOf(context, init)
  // a run that may reach nothing gets no way to ask either
  const token = (init.ceiling.paths ?? []).length > 0 ? createToken() : undefined
  const minted = await store.transact((tx) => mintRunLease(tx, context, init, timeoutMs, token))
  const { run, spentMs } = prepare(context, init, { minted, token, timeoutMs })
  try {
    return await work(run)
  } finally {
    const leftMs = timeoutMs - spentMs()
    await store.transact((tx) => {
      // with the run, not with its lease
      if (token !== undefined) dropToken(tx, token)
      if (init.payer !== null && leftMs > 0) refund(tx, init.payer, { wall_ms: leftMs })
    })
  }
}

/** The most a run may take, in ms. @throws SCOPE_EXCEEDED with `budget.<unit>` where nothing is left of what pays for it */
function timeOf(context: Context, { agent, payer }: RunInit): number {
  const mostMs = agent.timeout_ms ?? context.config.agents?.timeout_ms ?? 120_000
  if (payer === null) return mostMs
  checkLeft(context, payer)
  return Math.min(mostMs, leftOf(context.store.view(), payer, 'wall_ms'))
}

type Given = { readonly minted: Minted; readonly token: string | undefined; readonly timeoutMs: number }

function prepare(context: Context, init: RunInit, { minted, token, timeoutMs }: Given) {
  const { config, key: nodeKey, clock } = context
  const { agent, task: id } = init
  const { lease, chain } = minted
  const leaseHash = grantHash(minted.grant)
  const principal: Principal = { kind: 'agent', did: nodeKey.did, name: agent.name, lease, leaseHash, chain }
  const left = leftIn(context, leaseHash, lease)
  const used: Counted = {}
  const reads = context.runs.reads.get(id) ?? createRunReads()
  context.runs.reads.set(id, reads)
  const told = {
    v: 1,
    run: id,
    agent: agent.id,
    branch: runBranch(id),
    lease: {
      actions: lease.actions,
      paths: lease.paths ?? [],
      labels_max: lease.labels_max ?? 'public',
      ...(left === undefined ? {} : { budget: left }),
    },
    ...init.input,
  }
  let spent = 0
  const run: PreparedRun = {
    context: context.become(principal, id, init.basis),
    used,
    events: async function* () {
      const command = runCommand(agent, told, {
        signal: init.signal,
        timeoutMs,
        outputBytes: agent.output_bytes ?? config.agents?.output_bytes ?? 4_194_304,
        env: {
          ...context.agentEnvironment,
          CSB_RUN: id,
          ...(token === undefined ? {} : { CSB_URL: context.httpUrl(), CSB_TOKEN: token }),
        },
      })
      const began = clock.now()
      try {
        for await (const event of command) {
          if (event.kind === 'usage') {
            addUsage(used, event.usage)
            await spendUsage(context, leaseHash, event.usage)
          } else yield event
        }
      } finally {
        spent = Math.max(0, clock.now() - began)
      }
    },
  }
  return { run, spentMs: () => spent }
}
