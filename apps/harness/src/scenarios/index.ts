import { mainJob } from './main-job.ts'
import type { Scenario } from '../stage.ts'

/** Every scenario: to add one, write a file beside this one and name it here. */
export const SCENARIOS: readonly Scenario[] = [mainJob]
