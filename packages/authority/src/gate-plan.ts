/**
 * What stands on a card beside changes of files: how far a forgetting goes and what it does not reach, or which lease
 * would be minted and what the session that asks for it has read. Facts that the node computed; the one word of whoever
 * asks is the reason of a forgetting, since it goes into the tombstone.
 * @clause L1.7, L3.4
 */
import { canonicalize, digestOf, formatLabel, joinLabels, parseLabel, type Lease } from '@csb/core'
import type { Taint } from './taint.ts'

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
  /** what stays out of reach, whatever is done here */
  readonly not_covered: readonly string[]
  /** as whoever asks wrote it; it goes to peers with the tombstones */
  readonly reason: string
}

/** Which authority would be made, and after what was read. */
export type MintFacts = {
  readonly kind: 'mint'
  /** operation that makes it */
  readonly operation: string
  /** who gets it; did null where its key is made with it */
  readonly to: { readonly name: string; readonly did: string | null }
  /** what it may reach; null for a grant to speak only */
  readonly lease: Lease | null
  /** ms of life at most, from when it is handed out; null: as the grant says */
  readonly ttl_ms: number | null
  /** hash of the grant it hangs under */
  readonly parent: string
  /** `sha256:` over whatever else is asked for; null where nothing is */
  readonly content: string | null
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
    return `Let "${target}" have authority that a ${kind} of ${home} asks for`
  }
  return `Forget ${facts.notes} ${facts.notes === 1 ? 'note' : 'notes'} of ${home} for good`
}
