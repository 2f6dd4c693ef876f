/** Whether a commit is part of some history: first its heads, then as far back as it takes. */
import type { View } from '@csb/store'
import { walkCommits } from './walk.ts'

/**
 * @param heads commits
 * @returns asks for one commit after another; what was walked once is remembered
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function createHistory(view: View, home: string, heads: readonly string[]): (oid: string) => boolean {
  const reached = new Set(heads)
  const rest = walkCommits(view, home, heads)
  return (oid) => {
    if (reached.has(oid)) return true
    for (let step = rest.next(); step.done !== true; step = rest.next()) {
      reached.add(step.value.oid)
      if (step.value.oid === oid) return true
    }
    return false
  }
}
