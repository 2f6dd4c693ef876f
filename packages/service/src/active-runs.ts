/** The runs that are going on now, in memory only: to cancel them, to note what they read, to wake who waits. */
import { createTaskBus, type TaskBus } from '@csb/agents'
import type { ReadEntry } from '@csb/store'

export type Runs = {
  readonly bus: TaskBus
  readonly active: Map<string, ActiveRun>
  /** reads of a run that its own requests make, by run id */
  readonly reads: Map<string, ReadList>
}

type ReadList = { noteRead(entry: ReadEntry): void; readonly reads: readonly ReadEntry[] }

export type ActiveRun = {
  readonly agent: string
  /** root of the authority it runs under, and its scope; null for an ordinary message */
  readonly origin: string | null
  readonly scope: readonly string[]
  readonly abort: AbortController
}

export const createRuns = (): Runs => ({ bus: createTaskBus(), active: new Map(), reads: new Map() })
