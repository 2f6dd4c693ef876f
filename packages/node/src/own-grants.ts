/**
 * What an owner's key grants to a node of the owner and to the command line beside it: by these two the node acts, and the
 * person rules it. Made when the node is made, and anew by each key that follows.
 */
import type { Grant, Identity, KeyPair } from '@csb/core'
import { draftGrant, signGrant } from '@csb/authority'
import { commandLease, nodeLease } from './leases.ts'

export type OwnGrants = { readonly node: Grant; readonly command: Grant }

export type OwnGrantsInit = {
  /** its owner is whose key signs */
  readonly identity: Identity
  readonly owner: KeyPair
  /** did of the node that says whether this one may still act */
  readonly statusKey: string
  /** ms since epoch */
  readonly now: number
}

/** Both live until they are revoked. */
export function ownGrants({ identity, owner, statusKey, now }: OwnGrantsInit): OwnGrants {
  const from = { ...identity.owner, did: owner.did }
  const shared = { type: 'global' as const, from, scope: ['*'], level: 'request' as const, now, ttlMs: null }
  const to = { name: identity.name, did: identity.did }
  const audience = [identity.did]
  return {
    node: signGrant(
      draftGrant({ ...shared, to, audience: ['*'], maxDepth: 2, statusKey, lease: nodeLease(identity) }),
      owner,
    ),
    command: signGrant(
      draftGrant({ ...shared, to: from, audience, statusKey: identity.did, lease: commandLease(identity) }),
      owner,
    ),
  }
}
