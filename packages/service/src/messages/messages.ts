/**
 * Taking in an A2A message for an agent of this node: by whose authority it speaks, whether the agent takes it,
 * the task it becomes, and the run that works on it. A message whose authority fails a check is not refused: it is
 * treated as the ordinary message it is, and the answer says which step failed and why.
 * @clause DEL-001, DEL-002, DEL-003.3.2
 */
import { EXTENSIONS, LIMITS, fail, isNodeError, newId, type Clearance, type Lease } from '@csb/core'
import {
  appendTaskEvent,
  cancelTask,
  continueTask,
  createTask,
  getAgent,
  isTerminal,
  type Accepted,
  type AttachedAgent,
  type JsonObject,
  type Owner,
  type Request,
  type TaskUpdate,
} from '@csb/agents'
import {
  isAtMost,
  isScopeWithin,
  keysUntil,
  meet,
  storeGrant,
  trusted,
  verifyAuthority,
  type Accepted as Authorized,
  type Outcome,
} from '@csb/authority'
import type { Transaction } from '@csb/store'
import { homeOf, locationOf, type Context } from '../operation.ts'
import { footingOf } from '../runs/footing.ts'
import { ownCeiling, runCeiling, visitorCeiling } from '../runs/lease.ts'
import { runTask, type TaskRun } from '../runs/task.ts'
import { heard } from '../session/taint.ts'

export type Arrival = {
  readonly agent: string
  /** whose task it becomes: did of the sender */
  readonly owner: string
  /** as it came: what was signed of it was signed so */
  readonly body: Request
  /** the same, read */
  readonly request: Request
  /** ms since epoch: nobody listens for an answer after that */
  readonly until?: number
  /** authority beside the message, in the envelope */
  readonly beside?: unknown
}

/** How a message is treated, and the words for it. */
type Standing = {
  readonly outcome: Outcome
  /** goes into the metadata of every status of the task */
  readonly mark: Readonly<Record<string, unknown>>
  readonly note: string
}

/**
 * Judge the message, make its task, and begin its run where it has one.
 * @returns the task as it stands now
 * @throws NOT_FOUND, INVALID_INPUT, REPLAYED, BUSY
 */
export async function acceptMessage(context: Context, arrival: Arrival): Promise<Accepted> {
  const { clock, runs } = context
  const agent = getAgent(context.view, arrival.agent)
  checkRoom(context, arrival.owner)
  const message = (arrival.request.params['message'] ?? null) as JsonObject | null
  const { accepted, standing, refusal } = await context.write(
    async (tx) => {
      const judged = await judge(tx, context, arrival)
      const input = { owner: keysUntil(tx, arrival.owner), agent: agent.id, message, now: clock.now() }
      const isFollowUp = typeof message?.['taskId'] === 'string' && message['taskId'] !== ''
      const task = await (isFollowUp ? continueTask(tx, input) : createTask(tx, input))
      const reason = task.duplicate ? undefined : refusalOf(context, agent, arrival, judged)
      // kept, so that what is done on its word can be explained by it
      if (isDocumented(judged.outcome)) storeGrant(tx, { chain: judged.outcome.chain })
      if (!task.duplicate) appendTaskEvent(tx, task.task.id, firstUpdate(judged, reason, clock.now()), clock.now())
      return { accepted: task, standing: judged, refusal: reason }
    },
    (done) => ({
      task: done.accepted.task.id,
      agent: agent.id,
      owner: arrival.owner,
      authority: summaryOf(done.standing.outcome),
      ...(done.refusal === undefined ? {} : { refused: done.refusal }),
    }),
  )
  runs.bus.changed(accepted.task.id)
  if (accepted.duplicate || refusal !== undefined || isInformed(standing.outcome)) return accepted
  const { outcome } = standing
  context.background(
    carryOut(context, outcome, {
      agent,
      owner: arrival.owner,
      task: accepted.task.id,
      input: inputOf(arrival, accepted, message, standing),
      ceiling: ceilingOf(context, arrival, accepted.task.id, outcome),
      payer: payerOf(context, outcome),
      // whatever was read where it was written, nothing is told of that here
      ...(context.caller.kind === 'peer' ? { outside: [heard(context, `message of ${arrival.owner}`)] } : {}),
      footing: footingOf(context, { outcome, owner: arrival.owner }),
      mark: standing.mark,
      note: standing.note,
      origin: outcome.kind === 'accepted' ? outcome.root : null,
      scope: outcome.kind === 'accepted' ? outcome.scope : [],
      ...(isDocumented(outcome) ? { basis: outcome.leafHash } : {}),
    }),
  )
  return accepted
}

/** What a person told this node stands in its trust list; anything else in a chain that came along. */
const isDocumented = (outcome: Outcome): outcome is Authorized =>
  outcome.kind === 'accepted' && outcome.chain.length > 0

/** Runs wait for their turn, but not without number, and no sender takes all the room. @throws BUSY */
function checkRoom({ runs, view }: Context, owner: string): void {
  const dids = keysUntil(view, owner)
  const own = [...runs.active.values()].filter((run) => dids.includes(run.owner)).length
  if (runs.active.size >= LIMITS.agentRunsWaiting || own >= LIMITS.agentRunsPerSender) {
    fail('BUSY', { waiting: runs.active.size, yours: own })
  }
}

/** The task exists: whatever becomes of those an override sets aside, its run begins. */
async function carryOut(context: Context, outcome: Outcome, run: Omit<TaskRun, 'signal'>): Promise<void> {
  try {
    if (outcome.kind === 'accepted' && outcome.level === 'override') await override(context, run.agent, outcome)
  } finally {
    await runTask(context, run)
  }
}

/** Judge the authority of the message, wherever in it or beside it that stands, and find the words for it. */
async function judge(tx: Transaction, context: Context, { body, beside, owner }: Arrival): Promise<Standing> {
  const outcome = await verifyAuthority(tx, {
    body,
    copies: [beside],
    ...(context.caller.kind === 'peer' ? { sender: owner } : {}),
    self: context.key.did,
    now: context.clock.now(),
  })
  if (outcome.kind === 'absent') return { outcome, mark: {}, note: ordinaryNote(context) }
  if (outcome.kind === 'downgraded') {
    const { step, stepName, reason } = outcome
    const mark = { accepted: false, step, step_name: stepName, reason }
    return { outcome, mark: { [EXTENSIONS.authority]: mark }, note: `processed without authority: ${reason}` }
  }
  const { level, delegatedBy, scope, isStale } = outcome
  const mark = { accepted: true, level, delegated_by: delegatedBy, scope, ...(isStale ? { stale: true } : {}) }
  // nobody has said lately whether it was revoked
  const note = `with authority from ${delegatedBy}${isStale ? ', not confirmed lately' : ''}`
  return { outcome, mark: { [EXTENSIONS.authority]: mark }, note }
}

/** A message from elsewhere claimed nothing; one from here needs no authority but its own lease. */
const ordinaryNote = ({ caller, principal }: Context): string =>
  caller.kind === 'peer' ? 'processed without authority: absent' : `asked by ${principal.name}`

/** Why the agent does not take the message; undefined where it does. */
function refusalOf(
  context: Context,
  agent: AttachedAgent,
  { owner }: Arrival,
  { outcome }: Standing,
): string | undefined {
  if (context.caller.kind !== 'peer') return undefined
  // what must be done is done; a request of a delegated sender may still be refused by an agent that takes none
  if (outcome.kind === 'accepted' && (isAtMost('execute', outcome.level) || agent.accept !== 'nobody')) return undefined
  const isKnown = trusted(context.view, owner) !== undefined
  if (agent.accept === 'nobody') return 'this agent takes no messages from other nodes'
  // who attaches a command and says nothing has not asked strangers in
  if ((agent.accept ?? 'granted') === 'granted' && !isKnown) return 'this agent takes messages of granted senders only'
  if (context.config.visitors?.messages === 'refuse' && !isKnown) return 'this node takes no messages of strangers'
  return undefined
}

function firstUpdate(standing: Standing, refusal: string | undefined, now: number): TaskUpdate {
  const said = (text: string) => ({ messageId: newId('message', now), role: 'ROLE_AGENT' as const, parts: [{ text }] })
  if (refusal !== undefined) {
    return {
      statusUpdate: { status: { state: 'TASK_STATE_REJECTED', message: said(refusal) }, metadata: standing.mark },
    }
  }
  if (isInformed(standing.outcome)) {
    const message = said(`noted, ${standing.note}`)
    return { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED', message }, metadata: standing.mark } }
  }
  return { statusUpdate: { status: { state: 'TASK_STATE_SUBMITTED' }, metadata: standing.mark } }
}

/** A message at level inform is kept and shown; nothing runs. */
const isInformed = (outcome: Outcome): boolean => outcome.kind === 'accepted' && outcome.level === 'inform'

/** What an override sets aside: running tasks of the same origin, agent and scope. They are canceled and say so. */
async function override(context: Context, agent: AttachedAgent, outcome: Authorized): Promise<void> {
  for (const [task, run] of context.runs.active) {
    if (run.agent !== agent.id || run.origin !== outcome.root || !isScopeWithin(run.scope, outcome.scope)) continue
    const canceled: TaskUpdate = { statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } }
    await context
      .write(
        (tx) => appendTaskEvent(tx, task, canceled, context.clock.now()),
        () => ({ task, canceled_by: 'override' }),
      )
      .catch((late: unknown) => {
        // it had ended before: what ended it stands
        if (!isNodeError(late, 'UNSUPPORTED_OPERATION')) throw late
      })
    run.abort.abort()
    context.runs.bus.changed(task)
  }
}

function inputOf({ owner }: Arrival, { task }: Accepted, message: JsonObject | null, { outcome, note }: Standing) {
  const authority =
    outcome.kind === 'accepted'
      ? { level: outcome.level, delegated_by: outcome.delegatedBy, scope: outcome.scope }
      : null
  return { task: { id: task.id, context: task.contextId }, from: owner, message, authority, note }
}

/** How far the run may reach: the caller's own lease here, or what the owner allows that origin, or nothing. */
function ceilingOf(context: Context, { owner }: Arrival, task: string, outcome: Outcome): Lease {
  const location = locationOf(context, homeOf({}, context))
  const { principal } = context
  if (outcome.kind === 'accepted' && isAtMost('request', outcome.level)) {
    const origin = trusted(context.view, outcome.root)
    const clearance: Clearance = origin?.clearance ?? { level: 'public', tags: [] }
    const reach = runCeiling(location, task, clearance)
    // it may have been revoked: nothing is changed on its word
    const ceiling = outcome.isStale
      ? { ...reach, actions: reach.actions.filter((action) => action !== 'write') }
      : reach
    // a lease that came along can only narrow what the origin may reach here
    return outcome.lease === null
      ? ceiling
      : (meet({ ...outcome.lease, locations: [location] }, ceiling) ?? visitorCeiling(location))
  }
  if (context.caller.kind !== 'peer' && principal.lease !== null && principal.did === owner) {
    return meet(principal.lease, ownCeiling(location, task, context.clearance)) ?? visitorCeiling(location)
  }
  return visitorCeiling(location)
}

/** Who sends it from here pays, or the lease that came along: however many messages come under it, once in all. */
function payerOf({ principal }: Context, outcome: Outcome): string | null {
  if (principal.leaseHash !== null) return principal.leaseHash
  return isDocumented(outcome) && outcome.lease !== null ? outcome.leafHash : null
}

function summaryOf(outcome: Outcome): Readonly<Record<string, unknown>> {
  if (outcome.kind === 'absent') return { accepted: false, reason: 'absent' }
  if (outcome.kind === 'downgraded') return { accepted: false, step: outcome.step, reason: outcome.reason }
  const { level, root, leafHash: grant, isStale } = outcome
  return { accepted: true, level, root, grant, ...(isStale ? { stale: true } : {}) }
}

/** End a task at its owner's wish, and its run with it. */
export async function cancelRun(context: Context, owner: Owner, agent: string, id: string) {
  const task = await context.write(
    (tx) => cancelTask(tx, owner, id, context.clock.now(), agent),
    (done) => ({ task: done.id, canceled: isTerminal(done.status.state) }),
  )
  context.runs.active.get(id)?.abort.abort()
  context.runs.bus.changed(id)
  return task
}
