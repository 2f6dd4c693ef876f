export { VERSION, startNode, type RunningNode } from './create-node.ts'
export { initNode, type Initialised, type InitOptions } from './init-node.ts'
export { openOwner, readOwner, sealOwner, type Custody, type Owner } from './owner.ts'
export { FILES, pathOf, readJson, readText } from './data-folder.ts'
export {
  DEFAULT_PORT,
  defaultDirectory,
  isPlain,
  passphraseOf,
  readSettings,
  type Flags,
  type Settings,
} from './config.ts'
export { connect, createClient, type Client } from './client.ts'
export { importNotes, type ImportProgress, type ImportReport } from './import-notes.ts'
export { delegateTo, leaseFor, revokeGrant, shareWith, type Desk } from './authorise.ts'
export { connectCloud } from '@csb/http'
