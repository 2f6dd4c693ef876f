/**
 * Makes a node: the owner's key, the node's own key, its home with a protected main, the grant by which the
 * owner lets it act, the lease of the owner's command line, and its two files for people.
 */
import { createKeyPair, exportSeed, fail, toBase64Url, validate, type Identity, type KeyPair } from '@csb/core'
import { rm } from 'node:fs/promises'
import { appendRecord, createToken, storeGrant, subjectOf, takeKeyStatement, tokenHash, trust } from '@csb/authority'
import { createHome, getRef } from '@csb/files'
import { key, openStore, type Transaction } from '@csb/store'
import { FILES, makeFolder, pathOf, readJson, readText, removeFile, writeJson, writeText } from './data-folder.ts'
import { createOwner, keepOwner, openOwner, readOwner, type Custody, type Kept } from './owner.ts'
import { ownGrants } from './own-grants.ts'

export type InitOptions = {
  readonly directory: string
  /** name of the node */
  readonly name: string
  /** name of the owner; default the node's name followed by "'s owner" */
  readonly ownerName?: string
  readonly custody: Custody
  /** a folder whose owner this node joins: same owner, and with it the same home */
  readonly join?: { readonly directory: string; readonly passphrase?: string }
  /** false: a node without a home, for a gateway */
  readonly withHome: boolean
  /** ms since epoch */
  readonly now: number
}

export type Initialised = { readonly identity: Identity; readonly token: string }

/**
 * @throws ALREADY_INITIALISED; CONFIG_INVALID where a node lost its identity.json: nothing of it is overwritten;
 *   NOT_INITIALISED where there is nothing to join; INVALID_INPUT for a name that is none; PASSPHRASE; DISK_FULL
 */
export async function initNode(options: InitOptions): Promise<Initialised> {
  const { directory } = options
  await checkFree(directory)
  await makeFolder(directory)
  await writeText(directory, 'unfinished', '')

  const owner = await ownerOf(options)
  const node = createKeyPair()
  const token = createToken()
  const identity = await writeState(options, { owner, node, token })
  await writeJson(directory, 'nodeKey', { v: 1, did: node.did, seed: toBase64Url(exportSeed(node)) })
  await writeText(directory, 'token', `${token}\n`)
  // one that was put there before, as in a volume, stays
  if ((await readText(directory, 'config')) === undefined) await writeJson(directory, 'config', {})
  // last: the folder counts as a node only when everything else is there
  await writeJson(directory, 'identity', identity)
  await removeFile(directory, 'unfinished')
  return { identity, token }
}

/** Only what an attempt left that never came to its end may be overwritten. */
async function checkFree(directory: string): Promise<void> {
  if ((await readText(directory, 'identity')) !== undefined) fail('ALREADY_INITIALISED', { directory })
  if ((await readText(directory, 'unfinished')) !== undefined) return
  for (const name of ['nodeKey', 'owner'] as const) {
    if ((await readText(directory, name)) === undefined) continue
    fail('CONFIG_INVALID', { file: FILES.identity, reason: 'missing', directory })
  }
}

type Made = {
  readonly owner: Kept
  readonly node: KeyPair
  readonly token: string
}

/** Everything that goes into the store, in one transaction. */
async function writeState(options: InitOptions, made: Made): Promise<Identity> {
  const { directory, now } = options
  const joined = await joinedNode(options)
  // a folder that a stopped attempt left behind holds a store without a node: begin anew
  await rm(pathOf(directory, 'database'), { recursive: true, force: true })
  const store = await openStore(pathOf(directory, 'database'))
  try {
    return await store.transact(async (tx) => {
      const origin = made.node.did
      const owner = { name: made.owner.name, did: made.owner.key.did }
      const id = joined.home === null ? {} : { id: joined.home }
      // a home bears the key that its owner began with
      const [first] = made.owner.statements.map(subjectOf)
      const home = options.withHome ? createHome(tx, { ...id, owner: first ?? owner.did, origin, now }).id : null
      const identity = validate('Identity', identityOf(options, made, home))
      trust(tx, { ...owner, ceiling: 'override', clearance: { level: 'sealed', tags: ['*'] } })
      for (const statement of made.owner.statements) await takeKeyStatement(tx, statement, now)
      grantAll(tx, identity, made, joined.did ?? identity.did, now)
      return identity
    })
  } finally {
    await store.close()
  }
}

const identityOf = (options: InitOptions, { owner, node }: Made, home: string | null): Identity => ({
  v: 1,
  name: options.name,
  did: node.did,
  peer_id: node.peerId,
  owner: { name: owner.name, did: owner.key.did },
  home,
  created_at: options.now,
  memory_level_map: { hot: 'hot', warm: 'warm', cold: 'cold' },
  memory_storage: 'git objects in LevelDB, one Markdown note a file',
  delegations: [],
})

/**
 * The owner lets the node act, and the command line on this machine; both are in the record from the start.
 * @param statusKey did of the node that says whether this one may still act: the one that is joined, where there is one
 */
function grantAll(tx: Transaction, identity: Identity, { owner, token }: Made, statusKey: string, now: number): void {
  const from = identity.owner
  const grants = ownGrants({ identity, owner: owner.key, statusKey, now })
  const lease = storeGrant(tx, { chain: [grants.node] })
  storeGrant(tx, { chain: [grants.command], tokenHash: tokenHash(token) })
  tx.putJson(key('meta', 'node-grant'), lease)
  appendRecord(
    tx,
    {
      operation: 'node.init',
      outcome: 'done',
      actor: from.did,
      door: 'command',
      run: null,
      lease,
      reads: [],
      effect: { node: identity.did, home: identity.home },
      // the root of the home has its reason too
      ...(identity.home === null ? {} : { commit: rootOf(tx, identity.home) }),
    },
    now,
  )
}

async function ownerOf(options: InitOptions): Promise<Kept> {
  const { directory, custody, join } = options
  if (join === undefined) {
    const name = options.ownerName ?? `${options.name}'s owner`
    return { name, key: await createOwner(directory, name, custody), statements: [] }
  }
  const { name, statements } = await readOwner(join.directory)
  const ownerKey = await openOwner(join.directory, join.passphrase)
  await keepOwner(directory, { name, key: ownerKey, statements }, custody)
  return { name, key: ownerKey, statements }
}

/** The node that is joined: the same home id, so that both hold the same home. */
async function joinedNode({ join }: InitOptions): Promise<{ home: string | null; did?: string }> {
  if (join === undefined) return { home: null }
  const { home = null, did } = (await readJson(join.directory, 'identity')) as Partial<Identity>
  return { home, ...(did === undefined ? {} : { did }) }
}

const rootOf = (tx: Transaction, home: string): string => getRef(tx, home, 'main')?.commit ?? ''
