/**
 * The way to a node for what is said of its owner's key: through its door while it runs, straight into its store while it is
 * stopped. Where the key was stolen the node's own command line may have no right any more; then it has to be stopped.
 * @clause L1.3
 */
import { fail, isNodeError, systemClock, type Grant, type Identity, type KeyStatement } from '@csb/core'
import {
  currentKey,
  findGrant,
  grantHash,
  isRevoked,
  isSameOwner,
  keepGrant,
  listGrants,
  listKeyStatements,
  readOwnerGrant,
  recordEnding,
  recoveryOf,
  subjectOf,
  takeKeyStatements,
  trusted,
} from '@csb/authority'
import { key, openStore, type Store, type View } from '@csb/store'
import { identityIn, type Peer } from './authorise.ts'
import { connect, type Client } from './client.ts'
import { pathOf, readJson } from './data-folder.ts'

/** What an owner says, and what the key that speaks from then on grants to its node and its command line. */
export type Told = {
  readonly statement: KeyStatement
  /** taken in after it, in their order */
  readonly also?: readonly KeyStatement[]
  readonly grants?: readonly { readonly grant: Grant; readonly token_hash?: string }[]
}

export type Heard = {
  /** peers that have heard */
  readonly reached: readonly Peer[]
  /** peers that go on being told */
  readonly unreached: readonly Peer[]
  /** grants that are void by it */
  readonly ended: number
}

export type KeyDoor = {
  readonly isRunning: boolean
  /** of the process that runs it, where that is known */
  readonly pid?: number
  /** what was said of keys, in an order in which it is believed */
  statements(): Promise<readonly KeyStatement[]>
  /** digest of the key by which the owner's can be recovered; null where none was named */
  recovery(): Promise<string | null>
  /** did of the node that says whether this one may still act */
  statusKey(): Promise<string>
  /** Take in what is said, all of it or nothing. @throws GRANT_INVALID, CONFLICT, DENIED */
  state(told: Told): Promise<Heard>
  /** ids of delegations that are void */
  ended(): Promise<readonly string[]>
}

/**
 * Do something about the key of a node, whether it runs or not.
 * @throws HOME_LOCKED where it runs and its command line has no right any more: it must be stopped; NOT_INITIALISED
 */
export async function throughKeyDoor<T>(directory: string, work: (door: KeyDoor) => Promise<T>): Promise<T> {
  const client = await connect(directory).catch((error: unknown) => {
    if (isNodeError(error, 'PEER_UNREACHABLE') && error.details['reason'] === 'not_running') return undefined
    throw error
  })
  const identity = await identityIn(directory)
  if (client !== undefined) {
    const { pid } = (await readJson(directory, 'running')) as { readonly pid: number }
    const door = doorOfNode(client, identity)
    await door.statements().catch((error: unknown) => {
      const isShut = (['LEASE_REVOKED', 'LEASE_EXPIRED', 'UNAUTHENTICATED'] as const).some((code) =>
        isNodeError(error, code),
      )
      if (!isShut) throw error
      fail('HOME_LOCKED', { pid, reason: 'no_right' }, error)
    })
    return work({ ...door, pid })
  }
  const store = await openStore(pathOf(directory, 'database'))
  try {
    return await work(doorOfStore(store, identity))
  } finally {
    await store.close()
  }
}

type Listed = { readonly hash: string; readonly revoked: boolean; readonly grant: Grant }
type Spoken = { readonly items: readonly KeyStatement[]; readonly recovery: string | null }

/** Of a node that runs. */
export function doorOfNode(client: Client, { did }: Identity): KeyDoor {
  const spoken = () => client.call<Spoken>('GET', '/v1/keys')
  const grants = async () => (await client.call<{ items: readonly Listed[] }>('GET', '/v1/grants')).items
  return {
    isRunning: true,
    statements: async () => (await spoken()).items,
    recovery: async () => (await spoken()).recovery,
    statusKey: async () => {
      const own = (await grants())
        .map(({ grant }) => grant.delegation)
        .filter(({ grantee_key: to, parent }) => to === did && parent === null)
        .toSorted((a, b) => a.granted_at - b.granted_at)
      return own.at(-1)?.revocation.status_key ?? did
    },
    state: (told) => client.call<Heard>('POST', '/v1/keys', told),
    ended: async () => (await grants()).filter(({ revoked }) => revoked).map(({ grant }) => grant.delegation.id),
  }
}

function doorOfStore(store: Store, identity: Identity): KeyDoor {
  return {
    isRunning: false,
    statements: () => listKeyStatements(store.view()),
    recovery: async () => recoveryOf(store.view(), currentKey(store.view(), identity.owner.did)) ?? null,
    statusKey: async () => statusKeyOf(store.view(), identity),
    state: (told) => stateIn(store, identity, told),
    ended: async () => {
      const view = store.view()
      const grants = await listGrants(view)
      return grants.filter((grant) => isRevoked(view, grantHash(grant))).map(({ delegation }) => delegation.id)
    },
  }
}

/** What the operation of the running node does, without it: the peers hear of it when it starts. */
async function stateIn(store: Store, identity: Identity, { statement, also = [], grants = [] }: Told): Promise<Heard> {
  const now = systemClock.now()
  return store.transact(async (tx) => {
    const about = subjectOf(statement)
    const isOwn = isSameOwner(tx, identity.owner.did, about)
    const { ended, peers } = await takeKeyStatements(tx, [statement, ...also], { now, also: [], except: [] })
    const actor = currentKey(tx, about)
    // said of the owner's own key, as it was named here before, or by what is said now
    if (!isOwn && !isSameOwner(tx, identity.owner.did, about))
      fail('DENIED', { reason: 'that key does not follow the one of this owner', key: actor })
    const own = { owner: actor, node: identity.did, now }
    let lease: string | null = null
    for (const { grant, token_hash: token } of grants) {
      const verified = readOwnerGrant(tx, grant, own)
      keepGrant(tx, verified, own, token)
      if (grant.delegation.grantee_key === identity.did) lease = verified.leafHash
    }
    const told = { operation: 'keys.state', outcome: 'done', actor, door: 'command', run: null } as const
    recordEnding(tx, { ...told, lease, reads: [], effect: { key: about, to: actor, ended } }, now)
    const unreached = peers.map((did) => ({ did, name: trusted(tx, did)?.name ?? null }))
    return { reached: [], unreached, ended }
  })
}

/** Who says whether this node may still act stays who it was. */
function statusKeyOf(view: View, { did }: Identity): string {
  const hash = view.getJson<string>(key('meta', 'node-grant'))
  const chain: readonly Grant[] = hash === undefined ? [] : findGrant(view, hash)
  return chain.at(-1)?.delegation.revocation.status_key ?? did
}
