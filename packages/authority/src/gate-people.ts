/**
 * Who stands behind a card: who asked, which runs made what comes in and under which leases, and how far others vouch
 * for what this is read from. By the record and the grants of this node, never by what commits or agents say.
 * @clause L1.7
 */
import { canonicalize, formatLabel, joinLabels, parseLabel, type Grant, type Label, type Lease } from '@csb/core'
import { createReadList, type View } from '@csb/store'
import { witnessState } from './checkpoints.ts'
import { earlierReads, type EarlierReads } from './earlier-reads.ts'
import type { GrantLink } from './gate-plan.ts'
import { leaseOf } from './grant.ts'
import { recordAt, recordOfCommit } from './record.ts'
import type { RecordHeader } from './record-row.ts'
import { isRevoked } from './revocation.ts'
import { staleLink } from './status.ts'
import { storedChain } from './stored-grants.ts'
import { isExternal, taintOf } from './taint.ts'
import { trusted } from './trust.ts'

/** Who asked for it. */
export type GateAsker = {
  readonly did: string | null
  readonly name: string
  readonly run: string
  /** hash of the grant that holds the lease */
  readonly lease: string | null
  /** by which door the wish came */
  readonly door: string
}

export type Named = GrantLink['from']

export type CardLease = {
  readonly hash: string
  readonly revoked: boolean
  /** root first; empty where the grants are not kept here */
  readonly chain: readonly GrantLink[]
  readonly lease: Lease | null
  /** ms since epoch; null: until revoked */
  readonly expires_at: number | null
}

/** One run that made commits of what comes in, as the record has it. */
export type CardMaker = {
  readonly run: string | null
  readonly actor: { readonly name: string | null; readonly did: string } | null
  readonly lease: CardLease | null
  readonly commits: number
  /** things it had read, and its session before */
  readonly reads: number
  /** join of their labels */
  readonly label: string
  /** those that came from outside, by path; what the record has lost is not among them */
  readonly outside: readonly { readonly path: string; readonly label: string }[]
  /** of those that are not told one by one */
  readonly more_outside: number
}

/** How far others vouch for what a card is read from, when it was drawn. */
export type CardStanding = {
  /** the newest checkpoint that others have signed as well; null: nobody but this node vouches for the record */
  readonly witnessed: {
    readonly size: number
    /** ms since epoch, by the clock of the witness that signed last */
    readonly at: number
    readonly by: readonly { readonly name: string | null; readonly did: string }[]
  } | null
  /** hashes of leases behind it on which there is no word young enough that they are not revoked */
  readonly stale: readonly string[]
}

/** Reads from outside that are told of one run. */
const OUTSIDE = 8

/** A lease as a card shows it: the chain that it hangs on, with the owner's own names for keys that have one. */
export function cardLease(view: View, hash: string): CardLease {
  const chain = storedChain(view, hash) ?? []
  const leaf = chain.at(-1)
  return {
    hash,
    revoked: isRevoked(view, hash),
    chain: linksOf(view, chain),
    lease: leaf === undefined ? null : leaseOf(leaf),
    expires_at: leaf?.delegation.expires_at ?? null,
  }
}

/** Grants as a card tells them, with the owner's own names for keys that have one. */
export function linksOf(view: View, chain: readonly Grant[]): GrantLink[] {
  const named = (name: string, did: string): Named => ({ name: trusted(view, did)?.name ?? name, did })
  return chain.map(({ delegation }) => ({
    from: named(delegation.grantor, delegation.grantor_key),
    to: named(delegation.grantee, delegation.grantee_key),
    level: delegation.level,
  }))
}

/**
 * Who made the commits: by the record of this node, never by what the commits say of themselves. What a session read is
 * listed once, in its next entry, whatever that made: so entries before it under the same lease count, up to the newest of
 * these commits, and the taint of the lease, which no number of entries pushes out of sight.
 */
export async function makersOf(
  view: View,
  commits: readonly string[],
): Promise<{ makers: CardMaker[]; unrecorded: number }> {
  const byRun = new Map<string, Made>()
  const newest = new Map<string, number>()
  let unrecorded = 0
  for (const commit of commits) {
    const seq = recordOfCommit(view, commit)
    if (seq === undefined) {
      unrecorded++
      continue
    }
    const { header, payload } = recordAt(view, seq)
    const { run, actor, lease } = header
    const name = canonicalize([run, actor, lease])
    const made = byRun.get(name) ?? { headers: [], list: createReadList() }
    made.headers.push(header)
    for (const read of payload?.reads ?? []) made.list.noteRead(read)
    byRun.set(name, made)
    if (lease !== null) newest.set(lease, Math.max(seq, newest.get(lease) ?? 0))
  }
  const behind = new Map<string | null, LeaseReads>()
  for (const [lease, seq] of newest)
    behind.set(lease, { ...(await earlierReads(view, lease, seq)), isTainted: taintOf(view, lease) !== undefined })
  const makers = [...byRun]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, made]) => makerOf(view, made, behind.get(made.headers[0]?.lease ?? null)))
  return { makers, unrecorded }
}

/**
 * How far others vouch now for the record and for these leases.
 * @param leases hashes of their grants
 * @param check `self`: did of this node; `now`: ms since epoch
 */
export function standingOf(
  view: View,
  leases: readonly (string | null)[],
  check: { readonly self: string; readonly now: number },
): CardStanding {
  const { latest, settled } = witnessState(view)
  const known = [latest, settled].find((one) => one !== null && one.cosigners.length > 0) ?? null
  const behind = [...new Set(leases)].filter((hash) => hash !== null).sort()
  return {
    witnessed:
      known === null
        ? null
        : {
            size: known.size,
            at: Math.max(...known.cosigners.map(({ at }) => at)),
            by: known.cosigners.map(({ did }) => ({ did, name: trusted(view, did)?.name ?? null })),
          },
    stale: behind.filter((hash) => staleLink(view, storedChain(view, hash) ?? [], check) !== undefined),
  }
}

/** What was lent for one task is there for that task only: whose lease it is says the grant above it. */
export function standingLease(view: View, hash: string): string {
  const { parent, task } = storedChain(view, hash)?.at(-1)?.delegation ?? { parent: null, task: null }
  return task === null ? hash : (parent ?? hash)
}

/** Had that run, or its session before, read anything that came from outside? */
export const isTainted = ({ label }: CardMaker): boolean => parseLabel(label).integrity === 'external'

/** Does a lease reach what is sensitive, and others? */
export const hasReach = (lease: CardLease | null): boolean =>
  ['B', 'C'].every((capability) => lease?.lease?.capabilities?.some((held) => held === capability) === true)

/** What entries under one lease list, and whether anything from outside was read under it, listed or not. */
type LeaseReads = EarlierReads & { readonly isTainted: boolean }

const UNLEASED: LeaseReads = { reads: [], erased: 0, more: 0, isTainted: false }
/** Whatever else a read was, this much a taint says of it. */
const FROM_OUTSIDE: Label = { level: 'public', integrity: 'external', tags: [] }

/** Entries of one run, and what they list. */
type Made = { readonly headers: RecordHeader[]; readonly list: ReturnType<typeof createReadList> }

function makerOf(view: View, { headers, list }: Made, behind: LeaseReads = UNLEASED): CardMaker[] {
  const [first] = headers
  if (first === undefined) return []
  const lease = first.lease === null ? null : cardLease(view, first.lease)
  const granted = lease?.chain.find(({ to }) => to.did === first.actor)?.to.name
  for (const read of behind.reads) list.noteRead(read)
  const outside = new Map(list.reads.filter(isExternal).map(({ path, label }) => [path, formatLabel(label)]))
  const told = [...outside].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, label]) => ({ path, label }))
  const labels = [
    ...headers.map(({ label }) => parseLabel(label)),
    ...behind.reads.map(({ label }) => label),
    ...(behind.isTainted ? [FROM_OUTSIDE] : []),
  ]
  return [
    {
      run: first.run,
      actor:
        first.actor === null ? null : { did: first.actor, name: trusted(view, first.actor)?.name ?? granted ?? null },
      lease,
      commits: headers.length,
      // what was erased is counted in the header alone
      reads: Math.max(list.reads.length + behind.more, ...headers.map(({ reads }) => reads)),
      label: formatLabel(joinLabels(labels)),
      outside: told.slice(0, OUTSIDE),
      more_outside: Math.max(told.length - OUTSIDE, 0),
    },
  ]
}
