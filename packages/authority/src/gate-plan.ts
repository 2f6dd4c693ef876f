/**
 * What stands on a card beside changes of files: how far a forgetting goes and what it does not reach, or which lease
 * would be minted and what the session that asks for it has read. Facts that the node computed; the one word of whoever
 * asks is the reason of a forgetting, since it goes into the tombstone.
 * @clause L1.7, L3.4
 */
import { canonicalize, digestOf, formatLabel, joinLabels, parseLabel, type Lease } from '@csb/core'
import type { Taint } from './taint.ts'

/**
 * What was made by whoever had read something, as far as the record of this node tells: a run, or a session under one
 * lease, that read it and made commits from then on. Found when it was asked for; words may have gone other ways.
 */
export type DerivedFacts = {
  /** branches whose history holds such commits */
  readonly branches: readonly string[]
  readonly more_branches: number
  /** such commits, in all branches */
  readonly commits: number
  /** peers that got a note with work that was handed to them; they are not told to forget */
  readonly handed: readonly { readonly did: string; readonly name: string | null }[]
}

/** How far a forgetting goes. */
export type ForgetFacts = {
  readonly kind: 'forget'
  readonly notes: number
  /** blobs whose bytes go */
  readonly versions: number
  /** files that need the same bytes, which stay */
  readonly copies: readonly { readonly branch: string; readonly path: string }[]
  /** copies that are not told one by one */
  readonly more_copies: number
  /** peers that were in step with this home and may hold them; they are told to forget */
  readonly holders: readonly { readonly did: string; readonly name: string | null }[]
  /** entries of the record that named them when it was asked, and lose what they say */
  readonly records: number
  /** what may hold words made from them, by what the record knows of who read them */
  readonly derived: DerivedFacts
  /** what stays out of reach, whatever is done here */
  readonly not_covered: readonly string[]
  /** as whoever asks wrote it; it goes to peers with the tombstones */
  readonly reason: string
}

/** What the grant says beside its lease, as it will be signed. */
export type MintGrant = {
  readonly level: string
  readonly scope: readonly string[]
  /** dids of nodes that are to honour it, or `['*']` */
  readonly audience: readonly string[]
  /** how often it may be passed on again */
  readonly depth: number
  readonly task: string | null
  /** ms within which a revocation counts */
  readonly max_age_ms: number
}

/** One grant of a chain. */
export type GrantLink = {
  readonly from: { readonly name: string; readonly did: string }
  readonly to: { readonly name: string; readonly did: string }
  readonly level: string
}

/** Work that goes to another node with a grant. The notes that go along are the changes of the card. */
export type MintWork = {
  readonly agent: string
  /** whole, as whoever asks wrote it */
  readonly text: string
  readonly context: string | null
  /** notes that were asked for and that the peer may not see */
  readonly withheld: readonly { readonly id: string; readonly label: string }[]
  /** of those that are not told one by one */
  readonly more_withheld: number
}

/** Which authority would be made, and after what was read. Nothing of it is told by a digest alone. */
export type MintFacts = {
  readonly kind: 'mint'
  /** operation that makes it */
  readonly operation: string
  /** who gets it, as whoever asks calls it; did null where its key is made with it; `known`: the owner's own name for it */
  readonly to: { readonly name: string; readonly did: string | null; readonly known: string | null }
  /** who signed it, where it came signed */
  readonly from: { readonly name: string; readonly did: string; readonly known: string | null } | null
  /** what it may reach, as it will be given: of a budget what is left by then, and never more; null for a grant to speak only */
  readonly lease: Lease | null
  readonly grant: MintGrant
  readonly work: MintWork | null
  /** ms of life at most, from when it is handed out; null where `expires_at` says it */
  readonly ttl_ms: number | null
  /** ms since epoch, where it came signed; null beside a `ttl_ms` of null: until it is revoked */
  readonly expires_at: number | null
  /** a bearer token is kept here that acts under it */
  readonly token: boolean
  /** hash of the grant it hangs under */
  readonly parent: string
  /** that grant and those above it, root first, by the owner's own names for keys that have one */
  readonly under: readonly GrantLink[]
  /** hash of the grant, where it came signed */
  readonly document: string | null
  /** what taints the session that asks */
  readonly tainted_by: Taint
  /** `sha256:` over everything that was asked for */
  readonly wish: string
}

export type GateFacts = ForgetFacts | MintFacts

/** Hex digest of a canonical form: it stands for what an act is about where that is no object. */
export const hexOf = (value: unknown): string => digestOf(canonicalize(value)).slice('sha256:'.length)

/** Labels that an act touches beyond its changes. */
export const labelsIn = (facts: GateFacts | undefined): readonly string[] =>
  facts?.kind === 'mint' ? [formatLabel(joinLabels([parseLabel(facts.tainted_by.label)]))] : []

/** One line, from a fixed template. It stands in the record as well: notes that go are counted there, not named. */
export function meaningOfFacts(facts: GateFacts, { home, target }: { home: string; target: string }): string {
  if (facts.kind === 'mint') {
    const kind = facts.tainted_by.reads.length > 0 ? 'tainted session' : 'session'
    if (facts.work !== null) return `Hand work of a ${kind} of ${home} to agent "${facts.work.agent}" at "${target}"`
    return `Let "${target}" have authority that a ${kind} of ${home} asks for`
  }
  return `Forget ${facts.notes} ${facts.notes === 1 ? 'note' : 'notes'} of ${home} for good`
}
