/** The node itself: how it is, whom it knows. */
import { listHomes, type Home } from '@csb/files'
import { isSameOwner, trusted, witnessState } from '@csb/authority'
import { EVERYWHERE, homeOf, locationOf, reaches, type Context, type Operation, type Parts } from '../operation.ts'

const doing = (action: 'list' | 'send') => (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action,
})

/** Whom the node knows, where it is and how much it does: for those who may see everything. */
const listingAll = (input: unknown, parts: Parts) => ({ ...doing('list')(input, parts), ...EVERYWHERE })

/** A home by the name that the owner of this node has for whose it is. */
function heldBy({ view, identity }: Context, { id, owner: did }: Home) {
  const name = isSameOwner(view, did, identity.owner.did) ? identity.owner.name : (trusted(view, did)?.name ?? null)
  return { home: id, owner: { did, name } }
}

export const nodeOperations: readonly Operation[] = [
  {
    name: 'node.status',
    input: 'NodeStatus',
    kind: 'read',
    open: 'lease',
    needs: doing('list'),
    run: async (context: Context) => {
      const { name } = context.identity
      const { did, peerId } = context.key
      const named = { name, did, peer_id: peerId, version: context.version }
      if (!reaches(context, listingAll({}, context))) return named
      const peers = await context.peers.list()
      const homes = await listHomes(context.view)
      return {
        ...named,
        owner: context.identity.owner,
        home: context.identity.home,
        homes: homes.map(({ id }) => id),
        held: homes.map((home) => heldBy(context, home)),
        addresses: context.peers.addresses(),
        peers: { known: peers.length, connected: peers.filter(({ connected }) => connected).length },
        record: witnessState(context.view),
      }
    },
  },
  {
    name: 'peers.list',
    input: 'PeersList',
    kind: 'read',
    open: 'lease',
    needs: listingAll,
    hears: () => 'addresses that peers name',
    run: async ({ peers }: Context) => ({ items: await peers.list() }),
  },
  {
    name: 'peers.dial',
    input: 'PeersDial',
    kind: 'call',
    open: 'lease',
    needs: doing('send'),
    run: async ({ peers, signal }: Context, input: { address: string }) => ({
      did: await peers.dial(input.address, { signal }),
    }),
  },
]
