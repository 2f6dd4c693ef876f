/** The eight steps of DEL-003 3.2 as a walk: in order, up to the first that fails. @clause DEL-003.3.2 */
import { LIMITS } from '@csb/core'
import { reasonOf, type Reason } from './reasons.ts'

/** The steps by number, from 1. The eighth is what a failure of the others leads to. */
const STEPS = ['attached', 'received', 'trusted', 'scope', 'level', 'expiry', 'accepted', 'downgraded'] as const

export type StepName = (typeof STEPS)[number]

/** It claims authority that does not hold: treat it as an ordinary message, and say so. */
export type Downgraded = {
  readonly kind: 'downgraded'
  /** number of the step that failed, 1 to 7 */
  readonly step: number
  readonly stepName: StepName
  readonly reason: Reason
  /** steps that passed */
  readonly steps: readonly StepName[]
}

export type Step = readonly [StepName, () => void | Promise<void>]

/**
 * @param time `told`: what the clock says, `now`: what it can not be before; ms since epoch
 * @returns how it ended, or the steps that passed: all of them
 */
export async function walk(
  steps: readonly Step[],
  { told, now }: { readonly told: number; readonly now: number },
): Promise<Downgraded | readonly StepName[]> {
  const passed: StepName[] = []
  for (const [stepName, run] of steps) {
    try {
      await run()
      passed.push(stepName)
    } catch (error) {
      const found = reasonOf(error)
      if (found === undefined) throw error
      const isClockBehind = found === 'expired' && told + LIMITS.clockSkewMs < now
      const reason = isClockBehind ? 'clock_suspect' : found
      return { kind: 'downgraded', step: STEPS.indexOf(stepName) + 1, stepName, reason, steps: passed }
    }
  }
  return passed
}
