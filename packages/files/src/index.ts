export { createHome, findHome, getHome, listHomes, MEMORY, type Home } from './homes.ts'
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
export { commitFiles, setLabel, type CommitFiles, type CommitWords } from './change.ts'
export { listFiles, readFile, readLog } from './read.ts'
export { validateBranch, validatePath } from './paths.ts'
export { erasedBlobs, eraseVersions, type ErasedBlob, type LiveCopy } from './erasure.ts'
export { applyRelabel, previewRelabel, type Relabel, type RelabelPreview } from './relabel.ts'
export { commitsBetween } from './commits-between.ts'
