/** The node itself: how it is, whom it knows. */
import { listHomes } from '@csb/files'
import { witnessState } from '@csb/authority'
import { homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'

const doing = (action: 'list' | 'send') => (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action,
})

export const nodeOperations: readonly Operation[] = [
  {
    name: 'node.status',
    input: 'NodeStatus',
    kind: 'read',
    open: 'lease',
    needs: doing('list'),
    run: async (context: Context) => {
      const peers = await context.peers.list()
      return {
        name: context.identity.name,
        did: context.key.did,
        peer_id: context.key.peerId,
        owner: context.identity.owner,
        home: context.identity.home,
        homes: (await listHomes(context.view)).map(({ id }) => id),
        version: context.version,
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
    needs: doing('list'),
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
