/** The leases a person hands out from the command line. */
import type { Identity, Lease } from '@csb/core'

/** How the node's own home is named in leases, wherever it is kept; a node without one has none to name. */
const homeLocation = (identity: Identity): string => `nas://*/${identity.home ?? 'none'}`

/** Everything a node may do in its owner's home: the ceiling of every run on it. */
export const nodeLease = (identity: Identity): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [homeLocation(identity)],
  actions: ['list', 'read', 'write', 'propose', 'snapshot', 'send', 'exec'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
  external: 'taint',
  max_children: 1000,
})

/** What the owner may do from the command line: the same, and whatever other homes this node keeps copies of. */
export const commandLease = (identity: Identity): Lease => ({
  ...nodeLease(identity),
  locations: [homeLocation(identity), `nas://${identity.peer_id}/*`],
  max_children: 0,
})

/** What a peer may see of a home when it is shared with it. */
export const shareLease = (
  identity: Identity,
  level: Lease['labels_max'],
  tags: readonly string[],
  mayWrite: boolean,
): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [homeLocation(identity)],
  actions: mayWrite ? ['list', 'read', 'write'] : ['list', 'read'],
  paths: ['/'],
  branches: ['memory'],
  labels_max: level ?? 'public',
  ...(tags.length > 0 ? { label_tags: [...tags] } : {}),
})

export type LeaseFor = Pick<Lease, 'actions'> & Partial<Omit<Lease, 'type' | 'actions'>>

/** What an agent or a client is handed: only what is named, in the node's own home where no other is. */
export const handLease = (identity: Identity, members: LeaseFor): Lease => ({
  type: 'urn:csb:lease:1',
  locations: [`nas://${identity.peer_id}/${identity.home ?? 'none'}`],
  ...members,
})
