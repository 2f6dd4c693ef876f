export { syncSession, type Arrival, type Port, type SyncReport, type SyncSide } from './session.ts'
export type { CompartmentSummary, Row, SyncMessage } from './messages.ts'
export { holdingsFor, rootOf, summarize, type Holdings } from './summary.ts'
export {
  checkFiles,
  createHandoff,
  createResult,
  handoffBranch,
  handoffHash,
  newHandoffId,
  openHandoff,
  openResult,
  type HandoffFile,
  type HandoffInit,
} from './handoff.ts'
