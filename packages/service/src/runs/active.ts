/** The runs that are going on now, in memory only: to cancel them, to note what they read, to wake who waits. */
import { createTaskBus, type TaskBus } from '@csb/agents'
import { delay } from '@csb/core'
import type { RunReads } from '@csb/authority'
import { createHolds, type Holds } from '../git/holds.ts'
import { createProjecting, type Projecting } from '../git/projecting.ts'
import { createPackCache, type PackCache } from '../git/pack-cache.ts'
import { createTurns, type Turns } from './turns.ts'

export type Runs = {
  readonly bus: TaskBus
  /** by task id, those that wait for their turn too */
  readonly active: Map<string, ActiveRun>
  /** reads of a run that its own requests make, by run id */
  readonly reads: Map<string, RunReads>
  /** by lease: names of what its holder read that is kept, or on its way to be: what is read again and again is kept once */
  readonly unlisted: Map<string, Set<string>>
  readonly turns: Turns
  /** rings when a right may have ended */
  readonly bell: Bell
  /** packs of the git view that were sent lately */
  readonly packs: PackCache
  /** what the git view is sending */
  readonly holds: Holds
  /** long histories that are projected just now */
  readonly projecting: Projecting
}

export type ActiveRun = {
  readonly agent: string
  /** did of who sent the task */
  readonly owner: string
  /** root of the authority it runs under, and its scope; null for an ordinary message */
  readonly origin: string | null
  readonly scope: readonly string[]
  /** hashes of grants that it ends with: the sender's lease here, the delegation that came along */
  readonly heldBy: readonly string[]
  /** @throws where it may change nothing now */
  checkWriting(): void
  readonly abort: AbortController
}

export type Bell = {
  ring(): void
  /**
   * Wait until it rings, `ms` at most.
   * @throws the signal's reason where it fires first
   */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export const createRuns = (): Runs => ({
  bus: createTaskBus(),
  active: new Map(),
  reads: new Map(),
  unlisted: new Map(),
  turns: createTurns(),
  bell: createBell(),
  packs: createPackCache(),
  holds: createHolds(),
  projecting: createProjecting(),
})

function createBell(): Bell {
  const waiting = new Set<() => void>()
  return {
    ring: () => {
      for (const wake of waiting) wake()
    },
    wait: async (ms, signal) => {
      const rung = Promise.withResolvers<void>()
      const over = new AbortController()
      waiting.add(rung.resolve)
      try {
        await Promise.race([rung.promise, delay(ms, AbortSignal.any([signal, over.signal]))])
      } finally {
        waiting.delete(rung.resolve)
        over.abort()
      }
    },
  }
}
