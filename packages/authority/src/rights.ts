/**
 * What a peer may see and change of a home, from grants of that home's owner to the peer's key and nothing else.
 *
 * The sender asks at send time. Without a grant that holds there is no clearance at all, not even for public.
 * @clause L4.2
 */
import { EVERY_TAG, LEVELS, type Clearance, type Label } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { verifyChain, type VerifiedChain } from './chain.ts'
import { isSameOwner } from './key-line.ts'
import { allows, clearanceOfLease, locationOf, type LeaseAction } from './lease.ts'
import { reasonOf, refuse } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { isRevoked } from './revocation.ts'
import { checkFresh, takeStatuses } from './status.ts'
import { chainsOfHolder } from './stored-grants.ts'

/** What a label can be least: a lease with a floor above it does not reach every note. */
const PUBLIC: Label = { level: 'public', integrity: 'external', tags: [] }

/** The branch that holds a home's notes. */
const MEMORY = 'memory'

export type Rights = {
  /** undefined: may see nothing */
  readonly clearance: Clearance | undefined
  readonly mayWrite: boolean
}

type Asked = {
  /** did of the peer */
  readonly did: string
  readonly home: { readonly id: string; /** did */ readonly owner: string }
  /** did of this node */
  readonly self: string
  /** ms since epoch */
  readonly now: number
}

/**
 * Check a chain that a peer presented for itself.
 * @param chain parsed value; undefined where the peer presented none
 * @returns undefined where none was presented
 * @throws GRANT_INVALID `{reason}`
 * @clause L1.3
 */
export function verifyCredential(view: View, asked: Asked & { readonly chain: unknown }): VerifiedChain | undefined {
  if (asked.chain === undefined || asked.chain === null) return undefined
  if (!Array.isArray(asked.chain)) refuse('malformed', { field: 'chain' })
  return verifyFor(view, asked.chain, asked)
}

/**
 * Take in what came with a presented chain: what its status keys said last. A chain that does not hold brings nothing.
 * @param presented parsed values
 */
export function takeCredential(
  tx: Transaction,
  asked: Asked & { readonly presented: { readonly credential?: unknown; readonly status?: unknown } },
): void {
  const { credential, status } = asked.presented
  if (!Array.isArray(credential)) return
  try {
    takeStatuses(tx, status, verifyHeld(tx, credential, asked).chain, asked.now)
  } catch (error) {
    if (reasonOf(error) === undefined) throw error
  }
}

/**
 * The rights of a peer now: of the grants that hold, presented or kept, the one that shows most. Two grants are
 * never added up: each says on its own how secret and which tags.
 * @param credential from {@link verifyCredential}; judged again, since time passes
 * @clause L4.2
 */
export function rightsOf(view: View, asked: Asked & { readonly credential?: VerifiedChain | undefined }): Rights {
  const chains = [
    ...(asked.credential === undefined ? [] : [asked.credential.chain]),
    ...chainsOfHolder(view, asked.did),
  ]
  let clearance: Clearance | undefined
  let mayWrite = false
  for (const chain of chains) {
    const rights = rightsUnder(view, chain, asked)
    if (rights === undefined) continue
    if (rights.clearance !== undefined && showsMore(rights.clearance, clearance)) clearance = rights.clearance
    mayWrite ||= rights.mayWrite
  }
  return { clearance, mayWrite }
}

function rightsUnder(view: View, chain: readonly unknown[], asked: Asked): Rights | undefined {
  try {
    const { lease } = verifyFor(view, chain, asked)
    if (lease === null) return undefined
    const location = locationOf(asked.self, asked.home.id)
    // a session shows and takes the branch as a whole, by label alone: a lease for a part of it gives no session
    const whole = { location, path: '/', below: true, branch: MEMORY } as const
    const may = (action: LeaseAction) => allows(lease, { ...whole, action, label: PUBLIC }).ok
    return { clearance: may('read') ? clearanceOfLease(lease) : undefined, mayWrite: may('read') && may('write') }
  } catch (error) {
    if (reasonOf(error) === undefined) throw error
    return undefined
  }
}

/**
 * Begins with the home's owner, ends with the peer's key, is meant for this node, holds now, and young enough a word
 * says that it is not revoked. Of what it could show itself a node asks no such word: whoever is shown it will.
 */
function verifyFor(view: View, chain: readonly unknown[], asked: Asked): VerifiedChain {
  const { did, self, now } = asked
  const verified = verifyHeld(view, chain, asked)
  if (did !== self) checkFresh(view, verified.chain, { self, now })
  return verified
}

function verifyHeld(view: View, chain: readonly unknown[], { did, home, self, now }: Asked): VerifiedChain {
  const verified = verifyChain({
    chain,
    now: effectiveNow(view, now),
    audience: self,
    trustedRoot: (root) => (isSameOwner(view, home.owner, root) ? { ceiling: 'override' } : undefined),
    isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
  })
  if (verified.leaf.delegation.grantee_key !== did) refuse('holder_mismatch')
  return verified
}

function showsMore(a: Clearance, b: Clearance | undefined): boolean {
  if (b === undefined) return true
  const by = LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level)
  return by > 0 || (by === 0 && tagsIn(a) > tagsIn(b))
}

const tagsIn = ({ tags }: Clearance): number => (tags.includes(EVERY_TAG) ? Number.POSITIVE_INFINITY : tags.length)
