export { TABLES, key, prefix, tail, type Table } from './keyspace.ts'
export { createReadList, type RangeOptions, type ReadEntry, type Transaction, type View } from './view.ts'
export { FORMAT, openStore, type Db, type Store } from './store.ts'
export { eraseKeys, scanFiles, type EraseReport } from './erase.ts'
