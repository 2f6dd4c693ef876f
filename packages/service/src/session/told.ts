/**
 * What a session is told by agents of this node: a task whose run has read from outside taints whoever sees what came of
 * it. What another node answers is from outside by itself: an operation that asks there says so.
 * @clause L1.7
 */
import { parseLabel } from '@csb/core'
import { taintOf } from '@csb/authority'
import { isSession } from './session.ts'
import type { Context } from '../operation.ts'

type Told = {
  readonly id?: unknown
  readonly task?: { readonly id?: unknown }
  readonly tasks?: readonly { readonly id?: unknown }[]
  readonly statusUpdate?: { readonly taskId?: unknown }
  readonly artifactUpdate?: { readonly taskId?: unknown }
}

/** Take in an answer, or an event of one, before it is given. @returns the same */
export function takeInAnswer<T>(context: Context, answer: T): T {
  if (!isSession(context)) return answer
  const view = context.store.view()
  for (const task of tasksIn(answer)) {
    for (const { label, ...read } of taintOf(view, task)?.reads ?? [])
      context.outside.push({ ...read, label: parseLabel(label) })
  }
  return answer
}

function tasksIn(answer: unknown): string[] {
  const { id, task, tasks, statusUpdate, artifactUpdate } = (answer ?? {}) as Told
  const ids = [id, task?.id, statusUpdate?.taskId, artifactUpdate?.taskId, ...(tasks ?? []).map((one) => one.id)]
  return ids.filter((one) => typeof one === 'string')
}
