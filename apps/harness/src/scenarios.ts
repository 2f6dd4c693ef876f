/** Every scenario: to add one, write a file in scenarios/ as the ones there are, and name it here. */
import type { Scenario } from './stage.ts'
import { crowd } from './scenarios/crowd.ts'
import { mainJob } from './scenarios/main-job.ts'
import { partition } from './scenarios/partition.ts'
import { powerCut } from './scenarios/power-cut.ts'
import { revocation } from './scenarios/revocation.ts'
import { stranger } from './scenarios/stranger.ts'

export const SCENARIOS: readonly Scenario[] = [mainJob, partition, powerCut, crowd, stranger, revocation]
