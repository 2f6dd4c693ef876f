/**
 * What an owner signs at the command line: grants to speak, to see, to act, and their end. The key is open for one
 * signature; the signed document then goes to the running node like anybody's.
 * @clause DEL-001, DEL-003.3.1, DEL-003.3.4
 */
import { fail, type Delegation, type Grant, type Identity, type KeyPair, type Lease, type Revocation } from '@csb/core'
import { createToken, draftGrant, holderOf, signGrant, signRevocation, tokenHash, type Rank } from '@csb/authority'
import type { Client } from './client.ts'
import { readJson, writeJson } from './data-folder.ts'
import { handLease, shareLease, type LeaseFor } from './leases.ts'

/** `sha256:` and enough digits that nothing is meant by chance. */
const SHORTEST_HASH = 'sha256:'.length + 8

/** Where a command stands: the folder, the running node, the owner's open key, the time. */
export type Desk = {
  readonly directory: string
  readonly client: Client
  readonly owner: KeyPair
  /** ms since epoch */
  readonly now: number
}

export type Delegating = {
  /** who may speak; default the node itself, for its agents */
  readonly to?: { readonly name: string; readonly did: string }
  /** dids of nodes that are to honour it */
  readonly audience: readonly string[]
  readonly scope: readonly string[]
  readonly level: Rank
  readonly ttlMs: number | null
  /** only for this one task */
  readonly task?: string
  /** how often it may be passed on */
  readonly maxDepth?: number
  /** ms within which a revocation counts wherever it is used to have something done; default a minute */
  readonly maxAgeMs?: number
}

/** Let somebody speak with the owner's authority. @returns the signed grant and its hash */
export async function delegateTo(desk: Desk, asked: Delegating): Promise<{ grant: Grant; hash: string }> {
  const identity = await identityIn(desk.directory)
  const isGlobal = asked.scope.includes('*') && asked.task === undefined
  const grant = signGrant(
    draftGrant({
      type: typeOf(asked, isGlobal),
      from: identity.owner,
      to: asked.to ?? { name: identity.name, did: identity.did },
      audience: asked.audience,
      scope: isGlobal ? ['*'] : asked.scope,
      level: asked.level,
      now: desk.now,
      ttlMs: asked.ttlMs,
      maxDepth: asked.maxDepth ?? 0,
      statusKey: identity.did,
      ...(asked.maxAgeMs === undefined ? {} : { maxAgeMs: asked.maxAgeMs }),
      ...(asked.task === undefined ? {} : { task: asked.task }),
    }),
    desk.owner,
  )
  const { id, grantee, scope, level } = grant.delegation
  // first: a running node that looks at the file must not miss the entry of a grant that it has
  await declare(desk.directory, (list) => [...list, { agent: grantee, scope: [...scope], level, delegation_id: id }])
  try {
    const { hash } = await desk.client.call<{ hash: string }>('POST', '/v1/grants', { grant, declared: true })
    return { grant, hash }
  } catch (error) {
    await declare(desk.directory, (list) => list.filter((entry) => entry.delegation_id !== id))
    throw error
  }
}

export type Sharing = {
  readonly to: { readonly name: string; readonly did: string }
  readonly level: NonNullable<Lease['labels_max']>
  readonly tags: readonly string[]
  /** true for another node of the same owner */
  readonly mayWrite: boolean
}

/** Bring a grant, with those above it, to the node of whoever it is made out to. @throws PEER_UNREACHABLE, or what that node refuses with */
export async function bringTo(desk: Desk, did: string, chain: readonly Grant[]): Promise<void> {
  await desk.client.call('POST', '/v1/grants/send', { did, chain })
}

/** Let a peer see the home's notes up to a level. @returns the signed grant and its hash */
export async function shareWith(desk: Desk, asked: Sharing): Promise<{ grant: Grant; hash: string }> {
  const identity = await identityIn(desk.directory)
  if (identity.home === null) fail('NOT_FOUND', { reason: 'this node has no home' })
  const grant = signGrant(
    draftGrant({
      type: 'global',
      from: identity.owner,
      to: asked.to,
      audience: ['*'],
      scope: ['*'],
      level: 'request',
      now: desk.now,
      ttlMs: null,
      statusKey: identity.did,
      lease: shareLease(identity, asked.level, asked.tags, asked.mayWrite),
    }),
    desk.owner,
  )
  const { hash } = await desk.client.call<{ hash: string }>('POST', '/v1/grants', { grant })
  return { grant, hash }
}

export type Leasing = {
  /** who it is for, for people */
  readonly name: string
  /** what it may reach; what is not named is not in it */
  readonly lease: LeaseFor
  readonly ttlMs: number
  /** ms within which a revocation counts at other nodes; default a minute */
  readonly maxAgeMs?: number
}

export type Leased = {
  /** shown once */
  readonly token: string
  readonly hash: string
  readonly id: string
  /** of the holder's key, which is made of the token */
  readonly did: string
  readonly expiresAt: number | null
  readonly lease: Lease
}

/**
 * A lease with a bearer token, for an agent or a cloud client.
 * @throws GRANT_INVALID `{reason: 'malformed', field}` where a member of the lease is none
 */
export async function leaseFor(desk: Desk, asked: Leasing): Promise<Leased> {
  const identity = await identityIn(desk.directory)
  const token = createToken()
  const lease = handLease(identity, asked.lease)
  // a key of its own, that nobody keeps but who has the token: what it does and owns here is not the owner's
  const { did } = holderOf(token)
  const grant = signGrant(
    draftGrant({
      type: 'scoped',
      from: identity.owner,
      to: { name: asked.name, did },
      audience: [identity.did],
      scope: ['lease'],
      level: 'request',
      now: desk.now,
      ttlMs: asked.ttlMs,
      // a lease that may have children may have them as deep as a chain goes
      maxDepth: (lease.max_children ?? 0) > 0 ? 3 : 0,
      statusKey: identity.did,
      ...(asked.maxAgeMs === undefined ? {} : { maxAgeMs: asked.maxAgeMs }),
      lease,
    }),
    desk.owner,
  )
  const { hash } = await desk.client.call<{ hash: string }>('POST', '/v1/grants', {
    grant,
    token_hash: tokenHash(token),
  })
  const { id, expires_at: expiresAt } = grant.delegation
  return { token, hash, id, did, expiresAt, lease }
}

/**
 * A child of the lease that the client's token acts under: made by whoever holds it, without the owner.
 * @param asked members that differ from that lease; ttlMs default an hour, or what is left
 * @throws SCOPE_EXCEEDED with the field in which it would be wider
 */
export async function narrowLease(
  client: Client,
  asked: { readonly name: string; readonly lease: Partial<Lease>; readonly ttlMs?: number },
): Promise<Leased> {
  const { name, lease, ttlMs } = asked
  const body = { name, lease, ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }) }
  type Made = Omit<Leased, 'did' | 'expiresAt'> & { readonly expires_at: number | null }
  const { expires_at: expiresAt, ...made } = await client.call<Made>('POST', '/v1/leases/attenuate', body)
  return { ...made, expiresAt, did: holderOf(made.token).did }
}

/** A peer that was shown a grant, by the owner's own name for it where it has one. */
export type Peer = { readonly did: string; readonly name: string | null }

export type Revoked = {
  /** hash of the grant */
  readonly target: string
  readonly grant: Grant
  /** peers that have heard */
  readonly reached: readonly Peer[]
  /** peers that have not, and when what they may still believe ends by itself, ms since epoch */
  readonly unreached: readonly (Peer & { readonly ends_at: number })[]
}

/**
 * End a grant for ever, here and at every peer that was shown it.
 * @param peers dids of more that are to hear
 * @throws NOT_FOUND
 * @clause DEL-003.3.4
 */
export async function revokeGrant(desk: Desk, idOrHash: string, peers: readonly string[]): Promise<Revoked> {
  const { items } = await desk.client.call<{ items: { hash: string; grant: Grant }[] }>('GET', '/v1/grants')
  const { hash: target, grant } = chosen(items, idOrHash)
  const identity = await identityIn(desk.directory)
  // what the node passed on bears its signature, and ends by it
  const isOfNode = grant.delegation.grantor_key === identity.did
  const { reached, unreached, document } = isOfNode ? await endByNode(desk, target) : await endByOwner(desk, target)
  const more: Peer[] = []
  for (const did of peers.filter((one) => !reached.some((peer) => peer.did === one))) {
    await desk.client.call('POST', '/v1/grants/send', { did, revocation: document })
    more.push({ did, name: null })
  }
  await declare(desk.directory, (list) => list.filter((entry) => entry.delegation_id !== grant.delegation.id))
  const isLate = ({ did }: Peer) => !more.some((peer) => peer.did === did)
  return { target, grant, reached: [...reached, ...more], unreached: unreached.filter(isLate) }
}

type Ended = Pick<Revoked, 'reached' | 'unreached'> & { readonly document: Revocation }

const endByNode = ({ client }: Desk, grant: string): Promise<Ended> =>
  client.call<Ended>('POST', '/v1/grants/end', { grant })

async function endByOwner({ client, owner, now }: Desk, target: string): Promise<Ended> {
  const document = signRevocation({ target, reason: 'ended', now }, owner)
  return { ...(await client.call<Omit<Ended, 'document'>>('POST', '/v1/revocations', document)), document }
}

/** A grant as the node lists it. */
export type Kept = { readonly hash: string; readonly grant: Grant }

/** By id, by hash, or by as much of the hash as a list shows. */
export function chosen(items: readonly Kept[], idOrHash: string): Kept {
  const exact = items.filter(({ hash, grant }) => hash === idOrHash || grant.delegation.id === idOrHash)
  const isShort = exact.length === 0 && idOrHash.length >= SHORTEST_HASH
  const found = isShort ? items.filter(({ hash }) => hash.startsWith(idOrHash)) : exact
  const [one, ...more] = found
  if (more.length > 0) fail('INVALID_INPUT', { grant: idOrHash, reason: 'there are several; name one by its hash' })
  return one ?? fail('NOT_FOUND', { grant: idOrHash })
}

function typeOf({ task }: Delegating, isGlobal: boolean): Delegation['type'] {
  if (task !== undefined) return 'single'
  return isGlobal ? 'global' : 'scoped'
}

/** Who the node in a folder is. @throws NOT_INITIALISED */
export async function identityIn(directory: string): Promise<Identity> {
  return (await readJson(directory, 'identity')) as Identity
}

/** identity.json names who may speak for the owner (DEL-003 3.3). */
async function declare(
  directory: string,
  edit: (list: Identity['delegations']) => Identity['delegations'],
): Promise<void> {
  const identity = await identityIn(directory)
  await writeJson(directory, 'identity', { ...identity, delegations: edit(identity.delegations) })
}
