export { TABLES, key, prefix, tail } from './keyspace.ts'
export { createReadList, type RangeOptions, type ReadEntry, type Transaction, type View } from './view.ts'
export { FORMAT, openStore, type Store } from './store.ts'
export { eraseKeys, scanFiles } from './erase.ts'
