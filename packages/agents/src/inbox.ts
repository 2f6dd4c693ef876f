/** What came in for the agents of this node, whoever sent it: for the owner, who sees all of it. */
import { EXTENSIONS } from '@csb/core'
import { prefix, tail, type View } from '@csb/store'
import type { JsonObject, TaskState } from './a2a.ts'
import { foldTask, type TaskHead } from './task-log.ts'

/** A message that became a task. */
export type Received = {
  /** id of the task */
  readonly task: string
  readonly agent: string
  /** did of the sender */
  readonly from: string
  /** ms since epoch: of its last status */
  readonly at: number
  readonly state: TaskState
  /** its words; what is no text is left out. Nobody vouches for them */
  readonly text: string
  /** how its authority was judged; null where it claimed none */
  readonly authority: JsonObject | null
}

/** Newest first. */
export async function listReceived(view: View, limit: number): Promise<Received[]> {
  const received: Received[] = []
  // ids of tasks begin with their time
  for await (const [fullKey] of view.range({ prefix: prefix('task'), reverse: true, limit })) {
    const head = view.getJson<TaskHead>(fullKey)
    if (head === undefined || head.id !== tail(fullKey, 'task')) continue
    const { history, metadata } = await foldTask(view, head)
    const mark = metadata?.[EXTENSIONS.authority]
    received.push({
      task: head.id,
      agent: head.agent,
      from: head.owner,
      at: head.statusAt,
      state: head.state,
      text: (history?.[0]?.parts ?? []).map(({ text }) => (typeof text === 'string' ? text : '')).join(' '),
      authority: typeof mark === 'object' && mark !== null ? (mark as JsonObject) : null,
    })
  }
  return received
}
