export { createWire } from './wire.ts'
export type { Wire, WireConfig } from './wire.ts'
export type { RecordBook } from './discovery.ts'
