/**
 * The run of a task, from its turn to its end: what the agent says becomes events of the task, what it wrote a commit,
 * and how it ended a record, each in one batch.
 * @clause L1.3, L1.5
 */
import { EXTENSIONS, LIMITS, NodeError, newId, toNodeError } from '@csb/core'
import {
  appendTaskEvent,
  createReply,
  endedUpdate,
  failureUpdate,
  type AgentResult,
  type TaskUpdate,
} from '@csb/agents'
import { isSameOwner } from '@csb/authority'
import type { Context } from '../operation.ts'
import { whileHeld } from '../revocation/freshness.ts'
import { withRun, type RunInit, type Used } from './command.ts'
import { endOfRight, type RunFooting } from './footing.ts'
import { commitResult } from './result.ts'

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
  let used: Used = {}
  let leave: (() => void) | undefined
  try {
    await whileHeld(context, footing, async (over) => {
      const signal = AbortSignal.any([abort.signal, over])
      leave = await runs.turns.take(context.config.agents?.runs ?? LIMITS.agentRuns, signal)
      await withRun(context, { ...init, endsAt: footing.endsAt, signal }, async (run) => {
        acting = run.context
        used = run.used
        await append([{ statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } }])
        const reply = createReply()
        let told = 0
        for await (const event of run.events()) {
          const updates = reply.updates(event, clock.now())
          const read = acting.reads().length
          if (event.kind === 'result') await finish(acting, init, event.result, { updates, used })
          else if (read === told) await append(updates)
          else await tellReads(acting, init, updates)
          told = read
        }
      })
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
  { updates, used }: { readonly updates: readonly TaskUpdate[]; readonly used: Used },
): Promise<void> {
  await acting.write(
    (tx) => {
      const committed = commitResult(tx, acting, init.task, result.files)
      for (const update of updates) {
        appendTaskEvent(tx, init.task, marked(withNote(update, init, committed, acting), init.mark), acting.clock.now())
      }
      return committed
    },
    (committed) => ({ task: init.task, agent: init.agent.id, from: init.owner, ...usedIn(used), ...committed }),
  )
}

const usedIn = (used: Used) => (Object.keys(used).length === 0 ? {} : { used })

/**
 * The end of a run that did not: refused, failed, ended with what it rested on, or canceled by somebody who has said so
 * in the task already.
 * @clause L1.3
 */
async function conclude(acting: Context, init: Omit<TaskRun, 'signal'>, error: unknown, used: Used): Promise<void> {
  const reason = toNodeError(error)
  const isOwn = isSentByOwner(acting, init)
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

/** How it ended in detail, and ids of all that lies on its branch, are for the owner's own people. */
const isSentByOwner = ({ store, identity }: Context, { owner }: Pick<TaskRun, 'owner'>): boolean =>
  isSameOwner(store.view(), identity.owner.did, owner)

/** The last status says under what authority it was done, and where what came of it lies. @clause DEL-002.2.4 */
function withNote(
  update: TaskUpdate,
  init: Pick<TaskRun, 'note' | 'owner'>,
  committed: Committed,
  acting: Context,
): TaskUpdate {
  if (!('statusUpdate' in update) || update.statusUpdate.status.state !== 'TASK_STATE_COMPLETED') return update
  const message = {
    messageId: newId('message', acting.clock.now()),
    role: 'ROLE_AGENT' as const,
    parts: [{ text: init.note }],
    ...(committed === undefined ? {} : { metadata: { [EXTENSIONS.commit]: placeOf(committed, init, acting) } }),
  }
  return { statusUpdate: { ...update.statusUpdate, status: { ...update.statusUpdate.status, message } } }
}

/** An id of a commit is a digest of all that its branch holds, what the sender may not see too. */
function placeOf({ home, branch, commit }: NonNullable<Committed>, init: Pick<TaskRun, 'owner'>, acting: Context) {
  return { home, branch, ...(isSentByOwner(acting, init) ? { commit } : {}) }
}
