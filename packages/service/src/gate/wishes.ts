/**
 * What somebody wants to be minted, as a card tells it: who gets it, how far it reaches, and whatever goes along, each
 * in its own words. Notes that go along are looked up again whenever the card is drawn, so that a note that was edited
 * is another one than was approved.
 * @clause L1.7, L3.4
 */
import { fail, sha256Hex, type Grant } from '@csb/core'
import {
  hexOf,
  linksOf,
  taintOf,
  trusted,
  type GateChange,
  type GateRequest,
  type GateSubject,
  type MintFacts,
} from '@csb/authority'
import { readBlob } from '@csb/files'
import { getState } from '@csb/memory'
import type { View } from '@csb/store'

type Party = { readonly name: string; readonly did: string }

/** It is the same as long as the same is asked for, and what is asked for is the same. */
export type Wish = Omit<MintFacts, 'kind' | 'to' | 'from' | 'under' | 'tainted_by' | 'wish'> & {
  readonly to: { readonly name: string; readonly did: string | null }
  readonly from: Party | null
  /** what it hangs under, root first */
  readonly chain: readonly Grant[]
  /** notes that go along, as they were when it was asked */
  readonly notes: readonly { readonly id: string; readonly oid: string; readonly sha256: string }[]
}

const CLEAN = { label: 'public:owner', reads: [], more: false } as const

/** By what a pass for a wish is found. */
export const wishDigest = (wish: Wish): string => `sha256:${hexOf(wish)}`

/**
 * Authority that a session wants made; what taints it is read from its lease.
 * @throws NOT_FOUND, FORGOTTEN where a note that would go along is not there any more
 */
export function mintSubject(
  view: View,
  request: GateRequest,
  own: Pick<GateSubject, 'home' | 'owner' | 'policy'>,
): GateSubject {
  const { lease = '', wish: kept = '' } = request
  const wish = JSON.parse(kept) as Wish
  const { notes, chain, to, from, ...asked } = wish
  const known = (did: string | null) => (did === null ? null : (trusted(view, did)?.name ?? null))
  const facts: MintFacts = {
    kind: 'mint',
    ...asked,
    to: { ...to, known: known(to.did) },
    from: from === null ? null : { ...from, known: known(from.did) },
    under: linksOf(view, chain),
    // a lease may say that a person is asked even so
    tainted_by: taintOf(view, lease) ?? CLEAN,
    wish: wishDigest(wish),
  }
  return {
    ...own,
    kind: 'mint',
    target: to.did ?? to.name,
    source: asked.operation,
    base: asked.parent.slice('sha256:'.length),
    head: hexOf(wish),
    resultTree: null,
    changes: notes.map(({ id }) => sentNote(view, own.home, id)).toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    conflicts: 0,
    commits: [],
    facts,
  }
}

/** It goes to somebody else, and stays here as it is. */
function sentNote(view: View, home: string, id: string): GateChange {
  const { path, oid, label } = getState(view, home, id) ?? fail('NOT_FOUND', { home, id })
  const bytes = readBlob(view, home, oid)
  const sha256 = sha256Hex(bytes)
  return {
    op: 'send',
    path,
    mode_old: null,
    mode_new: null,
    sha256_old: sha256,
    sha256_new: sha256,
    size_old: bytes.byteLength,
    size_new: bytes.byteLength,
    label_old: label,
    label_new: label,
  }
}
