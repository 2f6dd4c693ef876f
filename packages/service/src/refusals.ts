/**
 * Refusals are records too. A flood of the same refusal is folded: the first is written at once, those that
 * follow within the window are counted and told in the next one, so that a stranger can't fill the disk.
 * @clause L1.1
 */
import type { Clock } from '@csb/core'

const WINDOW_MS = 10_000
const KEPT = 1024

export type Folding = {
  /** @returns undefined where this one is only counted; else how many were counted since the last written one */
  admit(who: string): number | undefined
}

export function createFolding(clock: Clock): Folding {
  const seen = new Map<string, { until: number; counted: number }>()
  return {
    admit: (who) => {
      const now = clock.now()
      const entry = seen.get(who)
      if (entry !== undefined && now < entry.until) {
        entry.counted++
        return undefined
      }
      seen.delete(who)
      if (seen.size >= KEPT) seen.delete([...seen.keys()].at(0) ?? '')
      seen.set(who, { until: now + WINDOW_MS, counted: 0 })
      return entry?.counted ?? 0
    },
  }
}
