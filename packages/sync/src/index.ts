export { takeArrival, type Arrival } from './arrival.ts'
export { syncSession, type SyncReport } from './session.ts'
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
} from './handoff.ts'
