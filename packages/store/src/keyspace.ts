/**
 * The key space: every kind of thing the node keeps, its prefix, its owner. Keys are spelled nowhere else.
 *
 * A key is the prefix and its parts joined by `/`. Only the last part may itself hold a `/`.
 */

export const TABLES = {
  /** name -> JSON: format version, heads */
  meta: 'm',

  /** home / oid -> git object as an entry of a pack, or the list of its pieces (files) */
  object: 'fo',
  /** home / oid / number -> bytes: the deflated stream of a large blob, cut (files) */
  piece: 'fp',
  /** home / oid of a base / oid -> empty: that object is stored as a delta on the base (files) */
  deltaChild: 'fd',
  /** home / branch -> JSON ref (files) */
  ref: 'fr',
  /** home / name -> JSON tag: an object of any kind, most often one of kind tag (files) */
  tag: 'fg',
  /** home / oid, home / `/path` -> empty: a forgotten blob is not read, a forgotten path not written again (files) */
  erased: 'fx',
  /** home / epoch / clearance / `c` commit, `t` tree in its place -> JSON what a reader sees of it (files) */
  projection: 'fj',
  /** home / id -> JSON what an export that may be resumed holds fast (files) */
  export: 'fe',
  /** home -> JSON home (files) */
  home: 'fh',
  /** home / ms until it is kept / commit / path -> JSON what a merge deleted; no path: a removed branch (files) */
  recycle: 'fy',
  /** home / pin id -> JSON objects that stay, or no sweeping at all, while something is under way (files) */
  pin: 'fk',

  /** home / note id -> JSON note state: path, oid, hlc, label, level, type (memory) */
  note: 'nn',
  /** home / level / note id -> empty: list by level (memory) */
  noteByLevel: 'nl',
  /** home / type / note id -> empty: list by type (memory) */
  noteByType: 'nt',
  /** home / label -> JSON how many notes bear it; home -> JSON how many labels there are (memory) */
  noteLabel: 'nb',
  /** home / note id -> JSON signed tombstone, never removed (guard) */
  tombstone: 'nz',

  /** grant hash -> JSON grant (authority) */
  grant: 'ag',
  /** delegation id -> JSON list of grant hashes, oldest first (authority) */
  grantById: 'ai',
  /** did of a grantee -> JSON list of grant hashes, oldest first (authority) */
  grantByHolder: 'ah',
  /** sha256 of a bearer token, hex -> JSON {grant} (authority) */
  token: 'at',
  /** grant hash / did of the revoker -> JSON revocation, never removed (authority) */
  revoked: 'ar',
  /** did of a status key -> JSON its newest status statement (authority) */
  status: 'as',
  /** grant hash / did of a peer -> JSON when it was shown there (authority) */
  shown: 'av',
  /** did of a peer / grant hash -> JSON a revocation that peer has not heard of (authority) */
  untold: 'ax',
  /** grant hash -> JSON what was used of its lease, by itself and all below it (authority) */
  spent: 'ab',
  /** did of the holder / nonce -> ms until which it is kept (authority) */
  nonce: 'an',
  /** grant hash of a single delegation -> JSON where it was used (authority) */
  used: 'au',
  /**
   * did / `change`, `recovery` or `compromise` -> JSON what its owner said of that key; did / `before` -> JSON dids of keys
   * that it followed; digest of a recovery key / `replaced` -> JSON what put another one in its place (authority)
   */
  keyStatement: 'ak',
  /** did -> JSON trusted origin or peer: petname, ceiling, clearance (authority) */
  trust: 'aw',

  /** card id -> JSON gate card and what became of it (authority/gate) */
  gate: 'ac',
  /** card id / page -> JSON changes the card is about (authority/gate) */
  gateChanges: 'ap',
  /** card id -> empty: cards nobody decided on yet (authority/gate) */
  gateOpen: 'ao',
  /** did, or grant hash -> empty: actors whose work was approved, leases under which it was asked for (authority/gate) */
  gateActor: 'aq',
  /** digest of what a card is about and of who asked -> JSON {card}: it was given back to be changed (authority/gate) */
  gateReturned: 'ae',
  /** grant hash / digest of a wish -> JSON {card, until}: what an approval lets that lease do once (authority/gate) */
  gatePass: 'ad',
  /** grant hash -> JSON what of integrity external was read under it (authority/taint) */
  taint: 'aj',

  /** seq -> hashes of the subtrees it completes, commitment to its payload, words (authority/record) */
  header: 'rh',
  /** seq -> salt and JSON payload, erasable (authority/record) */
  payload: 'rp',
  /** commit oid -> seq (authority/record) */
  recordByCommit: 'rc',
  /** run id / seq -> empty (authority/record) */
  recordByRun: 'rr',
  /** grant hash / seq -> empty: entries of a lease that list what was read (authority/record) */
  recordByLease: 'rl',
  /** grant hash / time and chance -> salt and JSON what was read and stands in no entry yet, erasable (authority/unlisted) */
  unlisted: 'ru',
  /** number -> JSON what ended a right while the record was held (authority/meanwhile) */
  meanwhile: 'rm',
  /** number of the log / size -> JSON {at, note}: the note with its cosignatures (authority/record) */
  checkpoint: 'rk',
  /** did of a witness -> JSON {number, size} of the checkpoint it cosigned last (authority/record) */
  cosigner: 'rg',
  /** did / number of its log -> JSON what this node as a witness knows of it (authority/witness) */
  witness: 'rw',
  /** did -> highest number of a log of it that is known here (authority/witness) */
  witnessNewest: 'rz',
  /** did / number of its log / kind -> JSON two checkpoints that contradict, never removed (authority/witness) */
  contradiction: 'ry',

  /** home / commit oid -> JSON entry of another node's record that came with a home (files) */
  foreignRecord: 'rx',

  /** agent id -> JSON attached agent (agents) */
  agent: 'ga',
  /** task id / event number -> JSON event (agents) */
  taskEvent: 'ge',
  /** task id -> JSON task head (agents) */
  task: 'gt',
  /** owner did / inverted time / task id -> JSON {agent, contextId, state}: list newest first (agents) */
  taskByOwner: 'go',
  /** owner did / agent id / message id -> JSON {task, digest} (agents) */
  taskByMessage: 'gm',
  /** context id -> JSON {owner}: a context is its owner's alone (agents) */
  taskContext: 'gc',

  /** did -> highest agent record seen (agents) */
  agentRecord: 'dr',
  /** peer did / home -> JSON last round (sync) */
  syncPeer: 'sp',
  /** handoff id -> JSON (sync) */
  handoff: 'sh',
} as const

export type Table = keyof typeof TABLES

/** @example key('ref', home, 'runs/7') // 'fr/home_x/runs/7' */
export function key(table: Table, ...parts: readonly (string | number)[]): string {
  let text: string = TABLES[table]
  for (const part of parts) text += `/${typeof part === 'number' ? String(part).padStart(16, '0') : part}`
  return text
}

/** The prefix of all keys that begin with these parts. */
export const prefix = (table: Table, ...parts: readonly (string | number)[]): string => `${key(table, ...parts)}/`

/** What follows the given prefix in a key. */
export const tail = (fullKey: string, table: Table, ...parts: readonly (string | number)[]): string =>
  fullKey.slice(prefix(table, ...parts).length)
