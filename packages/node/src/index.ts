export { VERSION } from './version.ts'
export { connectCloud, startNode } from './start-node.ts'
export type { RunningNode } from './create-node.ts'
export { forgetSecrets, serveNode } from './serve.ts'
export { initNode, type Initialised } from './init-node.ts'
export { openOwner, readOwner, sealOwner, type Custody } from './owner.ts'
export { readText } from './data-folder.ts'
export {
  callerDirectory,
  commandName,
  defaultDirectory,
  isPlain,
  newPassphraseOf,
  passphraseOf,
  readSettings,
  recoveryPassphraseOf,
  sessionOf,
  type Flags,
} from './config.ts'
export { addressOf, connect, createClient, ownerAccess, type Access, type Client } from './client.ts'
export { exportToFile, importFromFile } from './archive-file.ts'
export { exportRecord, readProof } from './record-files.ts'
export { importNotes, type ImportReport } from './import-notes.ts'
export {
  bringTo,
  delegateTo,
  leaseFor,
  narrowLease,
  revokeGrant,
  shareWith,
  type Desk,
  type Leased,
  type Peer,
  type Revoked,
} from './authorise.ts'
export type { LeaseFor } from './leases.ts'
export { passOnFrom, type Passed } from './pass-on.ts'
export { condemnKey, hangingChange, rotateOwner, settleOwner, type Rotated } from './rotate.ts'
export { takeOwner } from './take-owner.ts'
export { nameRecovery, recoverOwner } from './recover.ts'
export { createRecoveryFile, isThere, openRecoveryFile, readRecoveryFile, type RecoveryKey } from './recovery-file.ts'
export {
  askToForget,
  decideCard,
  forgetNotes,
  reviewCard,
  type Decided,
  type Deciding,
  type Review,
  type ShownCard,
} from './decide.ts'
