/**
 * What is being sent just now, in memory only: garbage collection leaves it, whatever becomes of the branches meanwhile.
 * A fetch ends with the process that serves it, so nothing of this has to outlive it, and reading writes nothing.
 */
import type { Store } from '@csb/store'

export type Holds = {
  /**
   * Hold objects and all they lead to. A collection that is in the middle of a step has ended when this resolves.
   * @returns lets them go
   */
  take(store: Store, home: string, oids: readonly string[]): Promise<() => void>
  /** What is held of a home now. */
  of(home: string): readonly string[]
}

export function createHolds(): Holds {
  const held = new Set<{ readonly home: string; readonly oids: readonly string[] }>()
  return {
    take: async (store, home, oids) => {
      const hold = { home, oids }
      held.add(hold)
      // transactions are serial: what comes behind this one has seen the hold
      await store.transact(() => undefined)
      return () => {
        held.delete(hold)
      }
    },
    of: (home) => [...held].flatMap((hold) => (hold.home === home ? hold.oids : [])),
  }
}
