/**
 * Running an attached agent: under a lease of its own, minted by this node as a child of the owner's grant to
 * it, so that every commit leads from run to lease to owner. What the agent writes lands on its own branch;
 * what the lease does not reach is refused and told.
 * @clause L0.1, L1.2, L1.5
 */
import {
  EXTENSIONS,
  LIMITS,
  NodeError,
  fail,
  joinLabels,
  newId,
  toNodeError,
  utf8,
  type Label,
  type Lease,
} from '@csb/core'
import {
  appendTaskEvent,
  createReply,
  endedUpdate,
  failureUpdate,
  runCommand,
  type AgentEvent,
  type AgentResult,
  type AttachedAgent,
  type TaskUpdate,
  type Usage,
} from '@csb/agents'
import {
  allows,
  charge,
  createRunReads,
  createToken,
  dropToken,
  grantHash,
  leftOf,
  refund,
  type Principal,
} from '@csb/authority'
import { commitFiles, validatePath } from '@csb/files'
import type { ReadEntry, Transaction } from '@csb/store'
import { whileHeld } from '../revocation/freshness.ts'
import { labelOfSession } from '../session/taint.ts'
import { locationOf, type Context } from '../operation.ts'
import { checkLeft, leftIn, spendUsage } from '../session/metering.ts'
import { endOfRight, type RunFooting } from './footing.ts'
import { mintRunLease, runBranch } from './lease.ts'

const AGENT_PRIVATE: Label = { level: 'private', integrity: 'agent', tags: [] }

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
  readonly lease: Lease
  readonly leaseHash: string
  /** what the agent has said it used so far */
  readonly used: Readonly<Used>
  /** @throws SCOPE_EXCEEDED with `budget.<unit>` where the agent used more than there is */
  events(): AsyncGenerator<AgentEvent>
}

type Used = { tokens?: number; cost_micro?: number }

function addUsage(used: Used, usage: Usage): void {
  for (const unit of ['tokens', 'cost_micro'] as const) {
    const amount = usage[unit]
    if (amount !== undefined) used[unit] = Math.min((used[unit] ?? 0) + amount, Number.MAX_SAFE_INTEGER)
  }
}

/**
 * Mint the run's lease and make its command ready.
 * @throws SCOPE_EXCEEDED where nothing is left of the ceiling
 */
export async function prepareRun(context: Context, init: RunInit): Promise<PreparedRun> {
  const { store, config, key: nodeKey } = context
  const mostMs = init.agent.timeout_ms ?? config.agents?.timeout_ms ?? 120_000
  if (init.payer !== null) checkLeft(context, init.payer)
  const leftMs = init.payer === null ? mostMs : leftOf(context.store.view(), init.payer, 'wall_ms')
  const timeoutMs = Math.min(mostMs, leftMs)
  // a run that may reach nothing gets no way to ask either
  const token = (init.ceiling.paths ?? []).length > 0 ? createToken() : undefined
  const minted = await store.transact((tx) => mintRunLease(tx, context, init, timeoutMs, token))
  const leaseHash = grantHash(minted.grant)
  const principal: Principal = {
    kind: 'agent',
    did: nodeKey.did,
    name: init.agent.name,
    lease: minted.lease,
    leaseHash,
    chain: minted.chain,
  }
  const left = leftIn(context, leaseHash, minted.lease)
  const used: Used = {}
  const run = init.task
  const reads = context.runs.reads.get(run) ?? createRunReads()
  context.runs.reads.set(run, reads)
  const told = {
    v: 1,
    run,
    agent: init.agent.id,
    branch: runBranch(init.task),
    lease: {
      actions: minted.lease.actions,
      paths: minted.lease.paths ?? [],
      labels_max: minted.lease.labels_max ?? 'public',
      ...(left === undefined ? {} : { budget: left }),
    },
    ...init.input,
  }
  return {
    context: context.become(principal, run, init.basis),
    lease: minted.lease,
    leaseHash,
    used,
    events: async function* () {
      const command = runCommand(init.agent, told, {
        signal: init.signal,
        timeoutMs,
        outputBytes: init.agent.output_bytes ?? config.agents?.output_bytes ?? 4_194_304,
        env: {
          ...context.agentEnvironment,
          CSB_RUN: run,
          ...(token === undefined ? {} : { CSB_URL: context.httpUrl(), CSB_TOKEN: token }),
        },
      })
      const began = context.clock.now()
      try {
        for await (const event of command) {
          if (event.kind === 'usage') {
            addUsage(used, event.usage)
            await spendUsage(context, leaseHash, event.usage)
          } else yield event
        }
      } finally {
        const leftOver = timeoutMs - Math.max(0, context.clock.now() - began)
        await store.transact((tx) => {
          // what a run was given to ask with ends with the run, not with its lease
          if (token !== undefined) dropToken(tx, token)
          if (init.payer !== null && leftOver > 0) refund(tx, init.payer, { wall_ms: leftOver })
        })
      }
    },
  }
}

/** Commit an agent's files to its branch: those the lease reaches, or none. @throws SCOPE_EXCEEDED */
export function commitResult(tx: Transaction, context: Context, task: string, files: AgentResult['files']) {
  const { principal, clock, identity } = context
  if (files === undefined || files.length === 0) return undefined
  context.runs.active.get(task)?.checkWriting()
  const home = identity.home ?? fail('SCOPE_EXCEEDED', { field: 'locations', reason: 'this node has no home' })
  const branch = runBranch(task)
  for (const { path } of files) {
    const request = {
      location: locationOf(context, home),
      action: 'write' as const,
      path: `/${validatePath(path)}`,
      branch,
    }
    const verdict = principal.lease === null ? { ok: false as const, field: 'lease' } : allows(principal.lease, request)
    if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, path, branch })
  }
  const bytes = files.reduce((sum, { text }) => sum + utf8(text).byteLength, 0)
  if (principal.leaseHash !== null) charge(tx, principal.leaseHash, { bytes_written: bytes })
  const done = commitFiles(tx, {
    home,
    branch,
    changes: files.map(({ path, text }) => ({ path, bytes: utf8(text) })),
    // derived from what the run read, by an agent
    labels: files.map(({ path }) => ({
      path,
      label: joinLabels([AGENT_PRIVATE, labelOfSession(context, tx), ...context.reads().map(({ label }) => label)]),
    })),
    author: { name: principal.name, did: principal.did ?? context.key.did },
    message: `work of ${principal.name}`,
    trailers: { 'Csb-Run': context.run, ...(principal.leaseHash === null ? {} : { 'Csb-Lease': principal.leaseHash }) },
    now: clock.now(),
  })
  return { home, branch, commit: done.commit }
}

export type TaskRun = RunInit & {
  /** did of who sent the task */
  readonly owner: string
  /** goes into every status of the task, so that whoever follows it sees under whose authority it ran */
  readonly mark: Readonly<Record<string, unknown>>
  /** said with the last status */
  readonly note: string
  readonly origin: string | null
  readonly scope: readonly string[]
  /** what it rests on, and ends with */
  readonly footing: RunFooting
}

/** Run an agent for a task to its end. Never throws: how it ended is in the task and in the record. */
export async function runTask(context: Context, init: Omit<TaskRun, 'signal'>): Promise<void> {
  const { runs, store, clock } = context
  const abort = new AbortController()
  const { origin, scope, owner, footing } = init
  const { heldBy, checkWriting } = footing
  runs.active.set(init.task, { agent: init.agent.id, owner, origin, scope, heldBy, checkWriting, abort })
  const append = async (updates: readonly TaskUpdate[]) => {
    await store.transact((tx) => {
      for (const update of updates) appendTaskEvent(tx, init.task, marked(update, init.mark), clock.now())
    })
    runs.bus.changed(init.task)
  }
  let acting = context
  let used: Readonly<Used> = {}
  let leave: (() => void) | undefined
  try {
    await whileHeld(context, footing, async (over) => {
      const signal = AbortSignal.any([abort.signal, over])
      leave = await runs.turns.take(context.config.agents?.runs ?? LIMITS.agentRuns, signal)
      const prepared = await prepareRun(context, { ...init, endsAt: footing.endsAt, signal })
      acting = prepared.context
      used = prepared.used
      await append([{ statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } }])
      const reply = createReply()
      let told = 0
      for await (const event of prepared.events()) {
        const updates = reply.updates(event, clock.now())
        const read = acting.reads().length
        if (event.kind === 'result') await finish(acting, init, event.result, { updates, used })
        else if (read === told) await append(updates)
        else await tellReads(acting, init, updates)
        told = read
      }
    })
  } catch (error) {
    await conclude(acting, init, error, used)
  } finally {
    leave?.()
    runs.active.delete(init.task)
    runs.reads.delete(init.task)
    runs.bus.changed(init.task)
  }
}

/**
 * What an agent says on its way may rest on what it has read since it spoke last, and goes to whoever sent the task:
 * the reads are in the record before it can be heard.
 * @clause L1.5
 */
async function tellReads(
  acting: Context,
  init: Omit<TaskRun, 'signal'>,
  updates: readonly TaskUpdate[],
): Promise<void> {
  await acting.write(
    (tx) => {
      for (const update of updates) appendTaskEvent(tx, init.task, marked(update, init.mark), acting.clock.now())
    },
    () => ({ task: init.task, agent: init.agent.id, said: updates.length }),
  )
  acting.runs.bus.changed(init.task)
}

/** The end of a run that went well: its commit, its last events and its record in one batch. */
async function finish(
  acting: Context,
  init: Omit<TaskRun, 'signal'>,
  result: AgentResult,
  { updates, used }: { readonly updates: readonly TaskUpdate[]; readonly used: Readonly<Used> },
): Promise<void> {
  await acting.write(
    (tx) => {
      const committed = commitResult(tx, acting, init.task, result.files)
      for (const update of updates) {
        appendTaskEvent(
          tx,
          init.task,
          marked(withNote(update, init.note, committed, acting), init.mark),
          acting.clock.now(),
        )
      }
      return committed
    },
    (committed) => ({ task: init.task, agent: init.agent.id, from: init.owner, ...usedIn(used), ...committed }),
  )
}

const usedIn = (used: Readonly<Used>) => (Object.keys(used).length === 0 ? {} : { used })

/**
 * The end of a run that did not: refused, failed, ended with what it rested on, or canceled by somebody who has said so
 * in the task already.
 * @clause L1.3
 */
async function conclude(
  acting: Context,
  init: Omit<TaskRun, 'signal'>,
  error: unknown,
  used: Readonly<Used>,
): Promise<void> {
  const reason = toNodeError(error)
  // how a command ended is for the people of this node, not for whoever sent the message
  const isOwn = init.owner === acting.identity.owner.did
  const ended = endOfRight(reason)
  acting.log('warn', ended === undefined ? 'agent run failed' : 'agent run ended with its right', {
    task: init.task,
    agent: init.agent.id,
    code: reason.code,
  })
  const now = acting.clock.now()
  const update =
    ended === undefined
      ? marked(failureUpdate(reason, now, { details: isOwn }), init.mark)
      : marked(endedUpdate(reason, ended, now), endedMark(init.mark, ended))
  const told = { task: init.task, agent: init.agent.id, ...usedIn(used), ...(ended === undefined ? {} : { ended }) }
  await acting
    .note(reason, told, (tx) => void appendTaskEvent(tx, init.task, update, now))
    .catch((late: unknown) => {
      // the task had ended before: what ended it stands
      if (!(late instanceof NodeError) || late.code !== 'UNSUPPORTED_OPERATION') throw late
    })
}

/** Whoever follows the task sees that its authority was taken, and that it ended. */
function endedMark(mark: TaskRun['mark'], ended: string): TaskRun['mark'] {
  const authority = mark[EXTENSIONS.authority]
  return authority === undefined ? mark : { ...mark, [EXTENSIONS.authority]: { ...(authority as object), ended } }
}

function marked(update: TaskUpdate, mark: Readonly<Record<string, unknown>>): TaskUpdate {
  if (!('statusUpdate' in update)) return update
  return { statusUpdate: { ...update.statusUpdate, metadata: { ...update.statusUpdate.metadata, ...mark } } }
}

type Committed = ReturnType<typeof commitResult>

/** The last status says under what authority it was done, and which commit came of it. @clause DEL-002.2.4 */
function withNote(update: TaskUpdate, note: string, committed: Committed, { clock }: Context): TaskUpdate {
  if (!('statusUpdate' in update) || update.statusUpdate.status.state !== 'TASK_STATE_COMPLETED') return update
  const message = {
    messageId: newId('message', clock.now()),
    role: 'ROLE_AGENT' as const,
    parts: [{ text: note }],
    ...(committed === undefined ? {} : { metadata: { [EXTENSIONS.commit]: committed } }),
  }
  return { statusUpdate: { ...update.statusUpdate, status: { ...update.statusUpdate.status, message } } }
}
