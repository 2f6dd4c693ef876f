export { REASONS, reasonOf, type Reason } from './reasons.ts'
export { LEVEL_RANKS, isAtMost, lowerOf, isScopeWithin, type Rank } from './rank.ts'
export {
  allows,
  clearanceOfLease,
  isSubset,
  locationOf,
  meet,
  type LeaseAction,
  type LeaseRequest,
  type Verdict,
} from './lease.ts'
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
export { verifyChain, type ChainCheck, type RevocationCheck, type VerifiedChain } from './chain.ts'
export {
  AUTHORITY_KEY,
  attachAuthority,
  authorityCopies,
  payloadDigest,
  signAuthority,
  type AuthorityInit,
} from './message.ts'
export {
  STEPS,
  verifyAuthority,
  type Absent,
  type Accepted,
  type AuthorityCheck,
  type Downgraded,
  type Outcome,
  type StepName,
} from './message-check.ts'
export { listTrust, trust, trusted, untrust, type TrustEntry, type TrustInput } from './trust.ts'
export { isRevoked, revoke, signRevocation, type RevocationInit } from './revocation.ts'
export {
  chainsOfHolder,
  createToken,
  findGrant,
  hasGrant,
  listGrants,
  storeGrant,
  tokenHash,
  type StoreGrantInit,
} from './stored-grants.ts'
export { checkHeld, principalOf, type Evidence, type Principal, type PrincipalOptions } from './principal.ts'
export { rightsOf, verifyCredential, type Rights } from './rights.ts'
export {
  appendRecord,
  effectiveNow,
  payloadsThatMention,
  readRecords,
  recordSize,
  type ReadRecordsOptions,
  type RecordEntry,
  type RecordHeader,
  type RecordItem,
  type RecordPayload,
} from './record.ts'
export {
  proveConsistency,
  proveInclusion,
  verifyConsistency,
  verifyInclusion,
  verifyRecord,
  type ConsistencyProof,
  type InclusionProof,
  type RecordReport,
} from './record-check.ts'
export { explainCommit, type Explanation, type ExplainedGrant } from './explain.ts'
export { openSeed, sealSeed, type SealedSeed } from './custody.ts'
