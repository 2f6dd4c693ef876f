export { createHome, findHome, getHome, listHomes, MAIN, MEMORY, type Home } from './homes.ts'
export {
  objectSize,
  readBlob,
  readCommit,
  readTree,
  writeBlob,
  writeCommit,
  writeTree,
  type HashName,
} from './objects.ts'
export { streamBlob, writeBlobStream } from './blob-stream.ts'
export { dropObject } from './stored.ts'
export { getRef, listRefs, moveRef } from './refs.ts'
export { labelsOn } from './agent-label.ts'
export { marksBehind } from './words-behind.ts'
export { commitFiles, setLabel, type CommitFiles, type CommitWords, type Committed } from './change.ts'
export { labelAt, listFiles, readFile, readForDiff, readLog } from './read.ts'
export { validateBranch, validatePath } from './paths.ts'
export {
  erasedBlobs,
  eraseVersions,
  findVersions,
  lookThrough,
  type ErasedBlob,
  type LiveCopy,
  type Looked,
} from './erasure.ts'
export { LABELS_PATH, readLabels } from './labels.ts'
export { applyRelabel, previewRelabel, type RelabelPreview } from './relabel.ts'
export { commitsBetween } from './commits-between.ts'
export { isNearlyProjected, projectCommit, projectWithin } from './project.ts'
export { type LabelRule } from './project-tree.ts'
export { seesEverything, type Sight } from './sight.ts'
export {
  applyProjected,
  newestSeenAs,
  placeBeside,
  type AppliedProjected,
  type ApplyProjected,
} from './project-back.ts'
export { epochOf, staleProjections } from './projection-memo.ts'
export { applyMerge, previewMerge, type MergeBranches, type MergePreview } from './merge.ts'
export { branchSide, mergeSides, type SideReader } from './merge-sides.ts'
export { unifiedDiff } from './diff-text.ts'
export { manifestDigest, manifestOf, type ManifestEntry } from './diff-manifest.ts'
export { listRecycled, recycledOf, removeBranch, restoreBranch, restoreRecycled, type Recycled } from './recycle.ts'
export { createSnapshot } from './snapshots.ts'
export { pinObjects, unpin } from './pins.ts'
export { collectGarbage, type Collected } from './collect.ts'
export { checkHome } from './check.ts'
export { checkTips, receivePack, type IncomingPack } from './push.ts'
export { groundOf, stepsOf, type PushedStep } from './push-steps.ts'
export { type PushedHistory, type PushRules } from './push-check.ts'
export { commonOf, hasForgotten, isEnough, planFetch, type FetchRequest } from './fetch-plan.ts'
export { packBytes, packFor, type PackStart } from './pack-write.ts'
export { createHistory } from './history.ts'
export { branchesHolding } from './holding.ts'
export { createObjectView } from './object-view.ts'
export {
  HEAD_REF,
  changeRef,
  checkRef,
  checkWhole,
  currentOid,
  listGitRefs,
  parseGitName,
  type GitName,
  type RefChange,
} from './git-refs.ts'
export { listTags } from './tags.ts'
export { beginExport, resumeExport, streamExport, type Export, type ExportSources } from './archive-export.ts'
export { importArchive, type Imported } from './archive-import.ts'
export { isErased } from './objects.ts'
export { isBlob } from './tree.ts'
export { entryAt } from './walk.ts'
