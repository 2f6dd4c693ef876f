/** Authority, sync and handoff over HTTP. Documents arrive signed; no key is ever sent here. */
import type { Route } from './route.ts'

export const AUTHORITY_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/grants',
    operation: 'authority.grants',
    input: 'AuthorityGrants',
    summary: 'Grants that are kept',
  },
  {
    method: 'POST',
    path: '/v1/grants',
    operation: 'authority.accept',
    input: 'AuthorityAccept',
    summary: 'Take in a signed grant',
    status: 201,
  },
  {
    method: 'POST',
    path: '/v1/grants/send',
    operation: 'authority.distribute',
    input: 'AuthorityDistribute',
    summary: 'Send a grant chain or a revocation to a peer',
  },
  {
    method: 'POST',
    path: '/v1/grants/pass',
    operation: 'authority.pass',
    input: 'AuthorityPass',
    summary: 'Pass a grant of this node on, narrower',
    status: 201,
  },
  {
    method: 'POST',
    path: '/v1/grants/end',
    operation: 'authority.end',
    input: 'AuthorityEnd',
    summary: 'End a grant that this node made or answers for',
    status: 201,
  },
  {
    method: 'POST',
    path: '/v1/leases/attenuate',
    operation: 'authority.attenuate',
    input: 'AuthorityAttenuate',
    summary:
      'Make a narrower lease of the one that asks, for a child; of one that has read from outside its owner is asked first',
    status: 201,
  },
  {
    method: 'POST',
    path: '/v1/revocations',
    operation: 'authority.revoke',
    input: 'AuthorityRevoke',
    summary: 'Take in a signed revocation',
    status: 201,
  },
  {
    method: 'GET',
    path: '/v1/keys',
    operation: 'keys.list',
    input: 'KeysList',
    summary: 'What owners said of their keys',
  },
  {
    method: 'POST',
    path: '/v1/keys',
    operation: 'keys.state',
    input: 'KeysState',
    summary: 'Take in a signed change or compromise of an owner key',
    status: 201,
  },
  {
    method: 'POST',
    path: '/v1/keys/{did}',
    operation: 'keys.tell',
    input: 'KeysTell',
    summary: 'Tell a peer of it',
  },
  {
    method: 'GET',
    path: '/v1/trust',
    operation: 'authority.trusted',
    input: 'AuthorityTrusted',
    summary: 'Whom this node trusts',
  },
  {
    method: 'POST',
    path: '/v1/trust',
    operation: 'authority.trust',
    input: 'AuthorityTrust',
    summary: 'Trust an origin up to a level',
    status: 201,
  },
  {
    method: 'DELETE',
    path: '/v1/trust/{did}',
    operation: 'authority.untrust',
    input: 'AuthorityUntrust',
    summary: 'Trust it no more',
  },
]

export const SYNC_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/v1/sync', operation: 'sync.status', input: 'SyncStatus', summary: 'Rounds of sync so far' },
  { method: 'POST', path: '/v1/sync', operation: 'sync.run', input: 'SyncRun', summary: 'Sync a home with a peer now' },
  {
    method: 'POST',
    path: '/v1/handoff',
    operation: 'handoff.offer',
    input: 'HandoffOffer',
    summary: 'Hand work to a peer under a narrowed lease',
  },
]
