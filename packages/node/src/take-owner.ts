/**
 * The owner's new key for another node of the same owner: from the folder of a node that has it, or from a copy of its
 * owner.json. The node is stopped meanwhile, since where the old key was stolen nobody could ask it for anything: what the
 * new key grants goes straight into its store.
 * @clause L1.3
 */
import { fail, systemClock, type Grant, type Identity } from '@csb/core'
import {
  appendRecord,
  currentKey,
  findGrant,
  isSameOwner,
  storeGrant,
  takeKeyStatement,
  tokenHash,
} from '@csb/authority'
import { key, openStore, type Transaction } from '@csb/store'
import { identityIn } from './authorise.ts'
import { pathOf, readText, writeJson } from './data-folder.ts'
import { keepOwner, openOwner, readOwner, type Custody } from './owner.ts'
import { ownGrants } from './own-grants.ts'

export type Taking = {
  /** folder of the node that is to have the key */
  readonly directory: string
  readonly from: { readonly directory: string; readonly passphrase?: string }
  /** how it is kept here */
  readonly custody: Custody
}

/**
 * @returns did of the key
 * @throws HOME_LOCKED where the node runs, DENIED where the key is no successor of this node's owner's, PASSPHRASE
 */
export async function takeOwner({ directory, from, custody }: Taking): Promise<{ readonly did: string }> {
  const identity = await identityIn(directory)
  const { name, statements } = await readOwner(from.directory)
  const owner = await openOwner(from.directory, from.passphrase)
  const token = (await readText(directory, 'token'))?.trim() ?? fail('NOT_INITIALISED', { directory })
  const store = await openStore(pathOf(directory, 'database'))
  try {
    await store.transact((tx) => {
      const now = systemClock.now()
      for (const statement of statements) takeKeyStatement(tx, statement, now)
      const isNext = isSameOwner(tx, identity.owner.did, owner.did) && currentKey(tx, identity.owner.did) === owner.did
      if (!isNext) fail('DENIED', { reason: 'that key does not follow the one of this owner', key: owner.did })
      const grants = ownGrants({ identity, owner, statusKey: statusKeyOf(tx, identity), now })
      const lease = storeGrant(tx, { chain: [grants.node] })
      storeGrant(tx, { chain: [grants.command], tokenHash: tokenHash(token) })
      tx.putJson(key('meta', 'node-grant'), lease)
      const told = { operation: 'keys.take', outcome: 'done', actor: owner.did, door: 'command', run: null } as const
      appendRecord(tx, { ...told, lease, reads: [], effect: { key: owner.did } }, now)
    })
  } finally {
    await store.close()
  }
  await writeJson(directory, 'identity', { ...identity, owner: { name, did: owner.did } } satisfies Identity)
  await keepOwner(directory, { name, key: owner, statements }, custody)
  return { did: owner.did }
}

/** Who says whether this node may still act stays who it was. */
function statusKeyOf(tx: Transaction, { did }: Identity): string {
  const hash = tx.getJson<string>(key('meta', 'node-grant'))
  const chain: readonly Grant[] = hash === undefined ? [] : findGrant(tx, hash)
  return chain.at(-1)?.delegation.revocation.status_key ?? did
}
