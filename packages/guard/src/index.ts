export { applyTombstone, forgetNote, putRemembered } from './forget.ts'
export { finishErasures } from './erasures.ts'
export { isForgotten, isVisible, listTombstones } from './tombstones.ts'
export { labelOfFile, type LabelledFile } from './file-label.ts'
