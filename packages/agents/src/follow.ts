/**
 * Following a task: streams only read its log. A stream that ends, breaks or is slow touches neither the task
 * nor other streams, and what it gives is on the disk already.
 */
import { fail } from '@csb/core'
import type { Store } from '@csb/store'
import { isInterrupted, isTerminal, type StreamResponse, type Task } from './a2a.ts'
import { foldTask, readEvents, readHead, type Owner } from './task-log.ts'

/** Wakes those who wait for a task to change. Holds no events. */
export type TaskBus = {
  /** Say that events of a task are durable now. */
  changed(taskId: string): void
  /** Arm before reading, so that nothing is missed in between. */
  arm(taskId: string): { readonly changed: Promise<void>; readonly cancel: () => void }
}

export type FollowOptions = {
  readonly owner: Owner
  readonly id: string
  readonly agent?: string
  /** events after this generation, the task itself is not given; omitted: the task first, as A2A subscribe does */
  readonly after?: number
  /** ends the stream quietly */
  readonly signal?: AbortSignal
}

export function createTaskBus(): TaskBus {
  const waiting = new Map<string, Set<() => void>>()
  return {
    changed: (taskId) => {
      const wakers = waiting.get(taskId)
      waiting.delete(taskId)
      for (const wake of wakers ?? []) wake()
    },
    arm: (taskId) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const wakers = waiting.get(taskId) ?? new Set()
      waiting.set(taskId, wakers.add(resolve))
      const cancel = () => {
        resolve()
        wakers.delete(resolve)
        if (wakers.size === 0 && waiting.get(taskId) === wakers) waiting.delete(taskId)
      }
      return { changed: promise, cancel }
    },
  }
}

/**
 * Give the events of a task as they become durable, without gap or repetition, until it ends or asks for input.
 * @throws NOT_FOUND; UNSUPPORTED_OPERATION where `after` is omitted and the task has ended
 * @clause A2A-OP-3.1.2, A2A-OP-3.1.6
 */
export async function* followTask(store: Store, bus: TaskBus, options: FollowOptions): AsyncGenerator<StreamResponse> {
  const { owner, id, agent, signal } = options
  const head = readHead(store.view(), owner, id, agent)
  let seen = options.after ?? head.generation
  if (options.after === undefined) {
    if (isTerminal(head.state)) fail('UNSUPPORTED_OPERATION', { reason: 'the task has ended', state: head.state })
    yield { task: await foldTask(store.view(), head) }
  }
  for (;;) {
    if (signal?.aborted === true) return
    const alarm = bus.arm(id)
    signal?.addEventListener('abort', alarm.cancel, { once: true })
    try {
      for await (const { generation, event } of readEvents(store.view(), id, seen)) {
        seen = generation
        if (!('message' in event)) yield event
        if ('statusUpdate' in event && isLast(event.statusUpdate.status.state)) return
      }
      // nothing follows a task that had ended before, as one that is sent again may have
      const now = readHead(store.view(), owner, id)
      if (isTerminal(now.state) && seen >= now.generation) return
      if (!isTerminal(now.state)) await alarm.changed
    } finally {
      signal?.removeEventListener('abort', alarm.cancel)
      alarm.cancel()
    }
  }
}

/**
 * Wait until a task ends or waits for its owner: what a blocking send answers with.
 * @throws NOT_FOUND; the signal's reason where it fires first
 */
export async function waitForTask(
  store: Store,
  bus: TaskBus,
  { owner, id, signal }: { readonly owner: Owner; readonly id: string; readonly signal?: AbortSignal },
): Promise<Task> {
  for (;;) {
    signal?.throwIfAborted()
    const alarm = bus.arm(id)
    signal?.addEventListener('abort', alarm.cancel, { once: true })
    try {
      const head = readHead(store.view(), owner, id)
      if (isTerminal(head.state) || isInterrupted(head.state)) return await foldTask(store.view(), head)
      await alarm.changed
    } finally {
      signal?.removeEventListener('abort', alarm.cancel)
      alarm.cancel()
    }
  }
}

/** A stream stays open while the task waits for authorization, which comes by another way. */
const isLast = (state: Task['status']['state']): boolean => isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'
