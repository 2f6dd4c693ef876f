/**
 * Another key for the owner. The new one lies sealed beside the old one before anybody hears of it; then the running node
 * takes in the change, signed by both, with what the new key grants it, in one batch; only then do the files follow. A
 * crash in between leaves the old key or the new one in force, and the next command finishes what was begun.
 *
 * The key of the node itself is its peer id and does not change: another key is another node, which joins.
 * @clause L1.3
 */
import { createKeyPair, fail, type Grant, type Identity, type KeyPair, type KeyStatement } from '@csb/core'
import { signCompromise, signKeyChange, tokenHash } from '@csb/authority'
import { identityIn, type Desk, type Peer } from './authorise.ts'
import type { Client } from './client.ts'
import { readText, removeFile, writeJson } from './data-folder.ts'
import { followWith, keepNext, listNext, noteStatement, readOwner, type Custody } from './owner.ts'
import { ownGrants } from './own-grants.ts'

export type Rotating = {
  /** how the new key is kept */
  readonly custody: Custody
  /** the old key is in other hands: what it granted is void as well */
  readonly isStolen: boolean
}

/** What became of it. */
export type Rotated = {
  /** did of the key that follows */
  readonly did: string
  /** did of the key before it */
  readonly before: string
  /** peers that have heard */
  readonly reached: readonly Peer[]
  /** peers that go on being told */
  readonly unreached: readonly Peer[]
  /** grants of the old key that are void; null where they hold */
  readonly ended: number | null
}

type Heard = Pick<Rotated, 'reached' | 'unreached'> & { readonly ended?: number }
type Listed = { readonly hash: string; readonly revoked: boolean; readonly grant: Grant }

/**
 * Let another key follow the owner's.
 * @param desk with the old key open
 * @throws PASSPHRASE, BUSY, CONFLICT where it was changed elsewhere meanwhile, PEER_UNREACHABLE where the node went away: what
 *   holds then {@link settleOwner} finds out
 */
export async function rotateOwner(desk: Desk, { custody, isStolen }: Rotating): Promise<Rotated> {
  const { directory, client, owner: old, now } = desk
  const [identity, { name, statements }] = [await identityIn(directory), await readOwner(directory)]
  const next = createKeyPair()
  const seq = statements.filter((one) => 'keychange' in one).length + 1
  const statement = signKeyChange({ old, next, seq, effectiveAt: now })
  const compromise = isStolen ? signCompromise(old.did, now, next) : undefined
  const said = [...statements, statement, ...(compromise === undefined ? [] : [compromise])]
  await keepNext(directory, { name, key: next, statements: said }, custody)
  const grants = await grantsOf(desk, identity, next)
  const told = { statement, ...(compromise === undefined ? {} : { compromise }), grants }
  const { reached, unreached, ended } = await client.call<Heard>('POST', '/v1/keys', told)
  await settleOwner(directory, client)
  if (isStolen) await undeclare(directory, client)
  return { did: next.did, before: old.did, reached, unreached, ended: isStolen ? (ended ?? 0) : null }
}

/**
 * Say that a key which was changed before is in other hands.
 * @param did of the key
 * @throws NOT_FOUND where it is none of this owner's former keys
 */
export async function condemnKey(desk: Desk, did: string): Promise<Rotated> {
  const { directory, client, owner } = desk
  const file = await readOwner(directory)
  const change = file.statements.find((one) => 'keychange' in one && one.keychange.old === did)
  if (change === undefined || !('keychange' in change)) fail('NOT_FOUND', { key: did })
  const statement = signCompromise(did, change.keychange.effective_at, owner)
  const { reached, unreached, ended } = await client.call<Heard>('POST', '/v1/keys', { statement })
  await noteStatement(directory, statement)
  await undeclare(directory, client)
  return { did: owner.did, before: did, reached, unreached, ended: ended ?? 0 }
}

/**
 * Finish a change of the key that was broken off. Where the node has taken it in the files follow; where it has not, the
 * old key is as good as before, and the new one is kept until another change: it may be on its way.
 */
export async function settleOwner(directory: string, client: Client): Promise<void> {
  const dids = await listNext(directory)
  if (dids.length === 0) return
  const { items } = await client.call<{ items: readonly KeyStatement[] }>('GET', '/v1/keys')
  const did = dids.find((one) => items.some((said) => 'keychange' in said && said.keychange.new === one))
  if (did === undefined) return
  const identity = await identityIn(directory)
  await writeJson(directory, 'identity', { ...identity, owner: { ...identity.owner, did } } satisfies Identity)
  await followWith(directory, did)
  // last: while it is there the rest is done again
  await removeFile(directory, 'ownerNext')
}

/** A change of the key that the files have not followed. */
type Hanging = {
  /** `begun`: the node has not heard of it; `elsewhere`: the node counts a key that is not kept in this folder */
  readonly state: 'begun' | 'elsewhere'
  /** did of the key that is kept here */
  readonly key: string
  /** did of the one that follows it, or was to */
  readonly to: string
}

/** What {@link settleOwner} could not finish; undefined where the key of this folder is the one that counts. */
export async function hangingChange(directory: string, client: Client): Promise<Hanging | undefined> {
  const { did } = await readOwner(directory)
  const { items } = await client.call<{ items: readonly KeyStatement[] }>('GET', '/v1/keys')
  for (const said of items)
    if ('keychange' in said && said.keychange.old === did)
      return { state: 'elsewhere', key: did, to: said.keychange.new }
  const begun = (await listNext(directory)).at(-1)
  return begun === undefined ? undefined : { state: 'begun', key: did, to: begun }
}

/** What the new key grants to the node and to its command line, which keeps its token. */
async function grantsOf({ directory, client, now }: Desk, identity: Identity, next: KeyPair) {
  const { items } = await client.call<{ items: readonly Listed[] }>('GET', '/v1/grants')
  const own = items
    .map(({ grant }) => grant.delegation)
    .filter(isOwn(identity.did))
    .sort((a, b) => a.granted_at - b.granted_at)
  // who says whether this node may still act stays who it was
  const statusKey = own.at(-1)?.revocation.status_key ?? identity.did
  const { node, command } = ownGrants({ identity, owner: next, statusKey, now })
  const token = (await readText(directory, 'token'))?.trim() ?? fail('NOT_INITIALISED', { directory })
  return [{ grant: node }, { grant: command, token_hash: tokenHash(token) }]
}

const isOwn =
  (did: string) =>
  ({ grantee_key, parent }: Grant['delegation']): boolean =>
    grantee_key === did && parent === null

/** Entries of identity.json whose grants are void declare nothing any more. */
async function undeclare(directory: string, client: Client): Promise<void> {
  const { items } = await client.call<{ items: readonly Listed[] }>('GET', '/v1/grants')
  const gone = new Set(items.filter(({ revoked }) => revoked).map(({ grant }) => grant.delegation.id))
  const identity = await identityIn(directory)
  const delegations = identity.delegations.filter(({ delegation_id: id }) => id === undefined || !gone.has(id))
  if (delegations.length < identity.delegations.length)
    await writeJson(directory, 'identity', { ...identity, delegations } satisfies Identity)
}
