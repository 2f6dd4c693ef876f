/**
 * What a session is told by agents: a task whose run has read from outside taints whoever sees what came of it, and an
 * answer from another node is from outside by itself.
 * @clause L1.7
 */
import { fail, parseLabel, type Label } from '@csb/core'
import { taintOf } from '@csb/authority'
import type { ReadEntry } from '@csb/store'
import { isSession } from './session.ts'
import type { Context } from '../operation.ts'

const EXTERNAL: Label = { level: 'public', integrity: 'external', tags: [] }

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

/**
 * Whatever another node answers is from outside: a lease that takes nothing of that does not ask there.
 * @throws DENIED
 */
export function checkForeign({ principal }: Context, place: string): void {
  if (principal.lease?.external === 'deny')
    fail('DENIED', { reason: 'this lease reads nothing from outside', path: place })
}

/** The same of what another node said. @param place what it is, for people */
export function takeInForeign<T>(context: Context, place: string, answer: T): T {
  if (isSession(context)) context.outside.push(foreign(context, place))
  return answer
}

/** What another node said, as something that was read. @param place what it is, for people */
export const foreign = ({ identity }: Pick<Context, 'identity'>, place: string): ReadEntry => ({
  home: identity.home ?? '',
  path: place,
  oid: '',
  label: EXTERNAL,
})

function tasksIn(answer: unknown): string[] {
  const { id, task, tasks, statusUpdate, artifactUpdate } = (answer ?? {}) as Told
  const ids = [id, task?.id, statusUpdate?.taskId, artifactUpdate?.taskId, ...(tasks ?? []).map((one) => one.id)]
  return ids.filter((one) => typeof one === 'string')
}
