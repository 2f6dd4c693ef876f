export { REASONS } from './reasons.ts'
export { isAtMost, isScopeWithin, type Rank } from './rank.ts'
export { allows, clearanceOfLease, isSubset, locationOf, meet, type LeaseRequest } from './lease.ts'
export {
  draftGrant,
  grantHash,
  leaseOf,
  readGrant,
  signGrant,
  type GrantBody,
  type GrantInit,
  type Party,
} from './grant.ts'
export { verifyChain, type ChainCheck } from './chain.ts'
export { createChainCache, type ChainCache } from './chain-cache.ts'
export { attachAuthority, authorityCopies, payloadDigest, signAuthority, type AuthorityInit } from './message.ts'
export { verifyAuthority, type Accepted, type AuthorityCheck, type Outcome } from './message-check.ts'
export { checkSpoken, type Claim } from './spoken.ts'
export {
  currentKey,
  endOfKey,
  inOrder,
  isSameOwner,
  isTrustedOwner,
  keysUntil,
  listKeyStatements,
  recoveryDigest,
  recoveryOf,
  statementsOn,
  stepOf,
  subjectOf,
} from './key-line.ts'
export { signCompromise, signKeyChange, takeKeyStatement, takeKeyStatements, type Hearing } from './key-statement.ts'
export { signRecovered, signRecovery } from './key-recovery.ts'
export { listTrust, trust, trusted, untrust, type Spoken } from './trust.ts'
export { isRevoked, revoke, signRevocation } from './revocation.ts'
export {
  checkFresh,
  issueStatus,
  latestStatus,
  signStatus,
  staleAt,
  statusKeysOf,
  takeStatus,
  takeStatuses,
} from './status.ts'
export {
  markTold,
  noteShown,
  noteUntold,
  noteUntoldBefore,
  revocationsOf,
  untoldPeers,
  untoldTo,
  wasShown,
} from './shown.ts'
export {
  chainOfToken,
  chainsOfHolder,
  createToken,
  dropToken,
  findGrant,
  grantsNamed,
  hasGrant,
  listGrants,
  storeGrant,
  tokenHash,
} from './stored-grants.ts'
export { keepGrant, readOwnerGrant } from './node-grant.ts'
export { checkHeld, isOver, principalOf, type Principal } from './principal.ts'
export { charge, countChild, isMetered, leftOf, payFor, refund, spend, usedOf, type Unit } from './budget.ts'
export { declaredBefore, noteDeclared, setDeclared } from './declared.ts'
export { attenuate, childOf, holderOf, type Attenuation } from './attenuate.ts'
export { PASSED_MS, passOn, type Passing } from './pass-on.ts'
export { rightsOf, takeCredential, verifyCredential, type Rights } from './rights.ts'
export {
  appendRecord,
  checkNotHeld,
  effectiveNow,
  payloadsThatMention,
  readRecords,
  heldOf,
  holdRecord,
  logNumber,
  recordSize,
  type Held,
  type RecordEntry,
} from './record.ts'
export type { RecordHeader } from './record-row.ts'
export { recordEnding } from './meanwhile.ts'
export { keepReads, takeReads, unlistedLeases, unlistedThatMention } from './unlisted.ts'
export { createRunReads, groupsOf, type RunReads } from './read-list.ts'
export { proveConsistency, proveInclusion, verifyConsistency, verifyInclusion, verifyRecord } from './record-check.ts'
export { readCheckpoint, signCheckpoint, type SignedCheckpoint } from './checkpoint.ts'
export {
  addCosignatures,
  checkCheckpoints,
  cosignedBy,
  makeCheckpoint,
  resumeRecord,
  rootAt,
  signedHead,
  witnessState,
  type WitnessState,
} from './checkpoints.ts'
export {
  addCheckpoint,
  addCheckpointBody,
  contradict,
  listContradictions,
  listWitnessed,
  type Contradiction,
  type WitnessedLog,
} from './witness.ts'
export { comparable, compareNote, keepUnproved, notesOf, type Gap } from './compare.ts'
export { verifyProof, writeProof, type ProvedRecord } from './record-proof.ts'
export { explainCommit, explainRun } from './explain.ts'
export { signApproval, type Decision } from './approval.ts'
export { madeAfterReading } from './derived.ts'
export { isLowered, policyDigest, type GateChange, type Risk } from './gate-risks.ts'
export { cardDigest, changesDigest, type Card, type GateKind, type GateSubject } from './gate-card.ts'
export { linksOf, type CardLease, type CardMaker } from './gate-people.ts'
export { hexOf, type DerivedFacts, type ForgetFacts, type MintFacts } from './gate-plan.ts'
export { grownTaint, inheritTaint, isExternal, taintLease, taintOf } from './taint.ts'
export {
  changesOf,
  decide,
  getCard,
  collectGate,
  givePass,
  listCards,
  openCard,
  quickApprovals,
  takePass,
  type Decided,
  type GateEntry,
  type GateRequest,
  type OpenCard,
} from './gate.ts'
export { openSeed, sealSeed, type SealedSeed } from './custody.ts'
export { checkEvidence, evidenceOf, importedThatMention } from './record-evidence.ts'
