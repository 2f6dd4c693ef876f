/** Every operation of the node, by name. What is not here does not exist: no operation deletes a snapshot. */
import type { Operation } from './operation.ts'
import { agentOperations } from './operations/agents.ts'
import { archiveOperations } from './operations/archive.ts'
import { authorityOperations } from './operations/authority.ts'
import { branchOperations } from './operations/branches.ts'
import { filesOperations } from './operations/files.ts'
import { gateOperations } from './operations/gate.ts'
import { gitOperations } from './operations/git.ts'
import { handoffOperations } from './operations/handoff.ts'
import { keyOperations } from './operations/keys.ts'
import { labelOperations } from './operations/labels.ts'
import { memoryOperations } from './operations/memory.ts'
import { mergeOperations } from './operations/merge.ts'
import { nodeOperations } from './operations/node.ts'
import { passingOperations } from './operations/passing.ts'
import { recordOperations } from './operations/record.ts'
import { revokingOperations } from './operations/revoking.ts'
import { syncOperations } from './operations/sync.ts'
import { taskOperations } from './operations/tasks.ts'
import { trustingOperations } from './operations/trusting.ts'
import { upkeepOperations } from './operations/upkeep.ts'
import { witnessOperations } from './operations/witness.ts'

export const OPERATIONS: ReadonlyMap<string, Operation> = new Map(
  [
    ...nodeOperations,
    ...filesOperations,
    ...branchOperations,
    ...mergeOperations,
    ...upkeepOperations,
    ...archiveOperations,
    ...memoryOperations,
    ...agentOperations,
    ...taskOperations,
    ...authorityOperations,
    ...revokingOperations,
    ...passingOperations,
    ...trustingOperations,
    ...keyOperations,
    ...recordOperations,
    ...witnessOperations,
    ...syncOperations,
    ...handoffOperations,
    ...labelOperations,
    ...gateOperations,
    ...gitOperations,
  ].map((operation) => [operation.name, operation]),
)
