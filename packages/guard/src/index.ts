export { applyTombstone, forgetNote, putRemembered } from './forget.ts'
export { finishErasures } from './erasures.ts'
export { isForgotten, isVisible, listTombstones } from './tombstones.ts'
