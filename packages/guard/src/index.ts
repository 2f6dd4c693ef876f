export {
  applyTombstone,
  forgetNote,
  putRemembered,
  type Applied,
  type ApplyTombstone,
  type Forgotten,
  type ForgetNote,
} from './forget.ts'
export { finishErasures, type ErasePlan, type ForgetReport, type NotCovered } from './erasures.ts'
export { isForgotten, isVisible, listTombstones } from './tombstones.ts'
