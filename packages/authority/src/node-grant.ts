/**
 * What an owner grants to the own node and to its command line, and the one grant by which the node itself acts. An owner's
 * signature alone makes a grant true, not the one that is meant now: whoever has seen a grant can bring it again.
 * @clause L1.2, L1.3
 */
import type { Grant } from '@csb/core'
import { key, type Transaction, type View } from '@csb/store'
import { verifyChain } from './chain.ts'
import { currentKey, isSameOwner } from './key-line.ts'
import { isRevoked } from './revocation.ts'
import { storeGrant, storedChain } from './stored-grants.ts'

const NODE_GRANT = key('meta', 'node-grant')

/** What {@link verifyChain} found. */
type Verified = ReturnType<typeof verifyChain>

export type OwnNode = {
  /** did of the owner, by any of the keys */
  readonly owner: string
  /** did of the node */
  readonly node: string
  /** ms since epoch */
  readonly now: number
}

/**
 * Read a grant that the owner's key of now made out for this node.
 * @param value a parsed grant
 * @throws GRANT_INVALID where another key granted it, or it does not hold
 */
export function readOwnerGrant(view: View, value: unknown, { owner, node, now }: OwnNode): Verified {
  const current = currentKey(view, owner)
  return verifyChain({
    chain: [value],
    now,
    audience: node,
    isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
    trustedRoot: (did) => (did === current ? { ceiling: 'override' } : undefined),
  })
}

/**
 * Keep a grant that was verified. The node acts by it from now on where {@link isNext} says so.
 * @param tokenHash `sha256:…` of a bearer token that acts under it
 */
export function keepGrant(tx: Transaction, verified: Verified, own: OwnNode, tokenHash?: string): void {
  storeGrant(tx, { chain: verified.chain, ...(tokenHash === undefined ? {} : { tokenHash }) })
  if (isNext(tx, verified, own)) tx.putJson(NODE_GRANT, verified.leafHash)
}

/**
 * Is that the grant by which the node acts next? Only of its owner, to itself, and where the one that stands is void, has
 * ended, or is of a key that this one followed. So a grant of before that is brought again, narrower or wider, takes the
 * place of none that holds.
 * @clause L1.3
 */
function isNext(view: View, { leaf, lease, rootDid }: Verified, { owner, node, now }: OwnNode): boolean {
  if (leaf.delegation.grantee_key !== node || lease === null || !isSameOwner(view, owner, rootDid)) return false
  const hash = view.getJson<string>(NODE_GRANT)
  const standing = hash === undefined ? undefined : storedChain(view, hash)
  if (hash === undefined || standing === undefined) return true
  const isOver = standing.some(({ delegation: { expires_at: end } }) => end !== null && end <= now)
  return isOver || isRevoked(view, hash) || isFollowed(view, standing, rootDid)
}

const isFollowed = (view: View, [root]: readonly Grant[], did: string): boolean =>
  root !== undefined && root.delegation.grantor_key !== did && currentKey(view, root.delegation.grantor_key) === did
