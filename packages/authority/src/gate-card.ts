/**
 * The gate card: what a person is shown before something final happens. The node computes all of it, from the
 * objects and the record; no commit message, no word of an agent stands on it, and file names are in the list of
 * changes only, to be escaped by whoever shows them.
 *
 * A card is drawn again, from the same beginnings, when somebody approves: the same facts give the same card.
 * @clause L1.7
 */
import {
  LIMITS,
  canonicalize,
  digestOf,
  fail,
  joinLabels,
  formatLabel,
  parseLabel,
  toHex,
  type Approval,
  type Lease,
} from '@csb/core'
import type { View } from '@csb/store'
import { labelsIn, meaningOfFacts, type GateFacts } from './gate-plan.ts'
import { leaseOf } from './grant.ts'
import { risksOf, type GateChange, type Risk } from './gate-risks.ts'
import { rootOf } from './merkle.ts'
import { headOf, nodesOf, recordAt, recordOfCommit } from './record.ts'
import type { RecordHeader } from './record-row.ts'
import { isRevoked } from './revocation.ts'
import { storedChain } from './stored-grants.ts'
import { isExternal } from './taint.ts'
import { trusted } from './trust.ts'

export type GateKind = Approval['gate']['kind']

/** What will be done, as the node computed it. */
export type GateSubject = {
  readonly kind: GateKind
  readonly home: string
  /** did of the owner of the home: whose approval counts */
  readonly owner: string
  /** what is changed: a branch, or a branch and a path, or notes, or who gets authority */
  readonly target: string
  /** what is brought in: a branch, or the label to be, or the operation */
  readonly source: string
  /** object id the target has now; a digest where it is no object */
  readonly base: string
  /** object id of what is brought in; a digest where it is no object */
  readonly head: string
  /** tree the result will have; null where the act makes none that can be told before */
  readonly resultTree: string | null
  /** sorted by path bytes */
  readonly changes: readonly GateChange[]
  readonly conflicts: number
  /** commits that come in, newest first */
  readonly commits: readonly string[]
  /** from {@link policyDigest} */
  readonly policy: string
  /** what a forgetting or a minting is about */
  readonly facts?: GateFacts
}

/** Who asked for it. */
export type GateAsker = {
  readonly did: string | null
  readonly name: string
  readonly run: string
  /** hash of the grant that holds the lease */
  readonly lease: string | null
}

type Named = { readonly name: string; readonly did: string }

export type CardLease = {
  readonly hash: string
  readonly revoked: boolean
  /** root first; empty where the grants are not kept here */
  readonly chain: readonly { readonly from: Named; readonly to: Named; readonly level: string }[]
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
  /** things it had read */
  readonly reads: number
  /** join of their labels */
  readonly label: string
  /** those that came from outside, by path; what the record has lost is not among them */
  readonly outside: readonly { readonly path: string; readonly label: string }[]
  /** of those that are not told one by one */
  readonly more_outside: number
}

export type Card = {
  readonly v: 1
  readonly id: string
  readonly kind: GateKind
  readonly nas: string
  readonly home: string
  readonly owner: Named
  readonly target: string
  readonly source: string
  /** one line, from a fixed template */
  readonly meaning: string
  readonly base: string
  readonly head: string
  readonly result_tree: string | null
  /** digest of all changes */
  readonly diff: string
  readonly changes: {
    readonly add: number
    readonly change: number
    readonly delete: number
    readonly rename: number
    readonly label: number
    readonly bytes_old: number
    readonly bytes_new: number
  }
  readonly conflicts: number
  readonly labels: readonly string[]
  readonly taint: boolean
  readonly policy: string
  readonly asked_by: { readonly name: string; readonly did: string | null; readonly lease: CardLease | null }
  readonly exec: string
  readonly made_by: readonly CardMaker[]
  /** runs that are not told one by one */
  readonly more_makers: number
  /** commits without an entry in the record */
  readonly unrecorded: number
  readonly risks: readonly Risk[]
  /** of a forgetting or a minting */
  readonly facts?: GateFacts
  /** the record when the card was drawn first */
  readonly log: { readonly size: number; readonly root: string }
  /** ms since epoch */
  readonly opened_at: number
  /** ms since epoch */
  readonly expires_at: number
}

/** What stays the same when a card is drawn again. */
export type CardFrame = {
  readonly id: string
  /** did of this node */
  readonly node: string
  readonly asker: GateAsker
  /** did -> true where work of that actor was approved before the card was opened */
  readonly known: readonly string[]
  /** ms since epoch */
  readonly openedAt: number
  readonly log: Card['log']
}

/** Runs told one by one; a person reads no more. */
const MAKERS = 32
/** Reads from outside that are told of one run. */
const OUTSIDE = 8

/** `sha256:` over the canonical form of what is shown. */
export const cardDigest = (card: Card): string => digestOf(canonicalize(card))

/** `sha256:` over the canonical list of changes. */
export const changesDigest = (changes: readonly GateChange[]): string => digestOf(canonicalize(changes))

/** Size and root of the record now, as cards name it. */
export function logHead(view: View): Card['log'] {
  const { size } = headOf(view)
  return { size, root: toHex(rootOf(size, nodesOf(view))) }
}

/** True where the record still begins with what it was. */
export const isLogKept = (view: View, log: Card['log']): boolean =>
  log.size <= headOf(view).size && toHex(rootOf(log.size, nodesOf(view))) === log.root

/**
 * Draw the card of a subject. The same frame, subject and record give the same card.
 * @throws TOO_LARGE above {@link LIMITS.gateChanges} or {@link LIMITS.gateCommits}
 * @clause L1.7
 */
export function drawCard(view: View, subject: GateSubject, frame: CardFrame): Card {
  const { changes, conflicts, commits, owner, facts } = subject
  if (changes.length > LIMITS.gateChanges) fail('TOO_LARGE', { maxChanges: LIMITS.gateChanges })
  if (commits.length > LIMITS.gateCommits) fail('TOO_LARGE', { maxCommits: LIMITS.gateCommits })
  const { makers, unrecorded } = makersOf(view, commits)
  const touched = [...changes.flatMap((change) => [change.label_old, change.label_new]), ...labelsIn(facts)]
  const labels = [...new Set(touched)].filter((label) => label !== null).sort()
  const isTainted = ({ label }: CardMaker) => parseLabel(label).integrity === 'external'
  const counts = countsOf(changes)
  return {
    v: 1,
    id: frame.id,
    kind: subject.kind,
    nas: frame.node,
    home: subject.home,
    owner: { did: owner, name: trusted(view, owner)?.name ?? 'owner' },
    target: subject.target,
    source: subject.source,
    meaning: meaningOf(subject, counts),
    base: subject.base,
    head: subject.head,
    result_tree: subject.resultTree,
    diff: changesDigest(changes),
    changes: counts,
    conflicts,
    labels,
    taint: makers.some(isTainted) || labels.some((label) => parseLabel(label).integrity === 'external'),
    policy: subject.policy,
    asked_by: {
      name: frame.asker.name,
      did: frame.asker.did,
      lease: frame.asker.lease === null ? null : cardLease(view, frame.asker.lease),
    },
    exec: frame.asker.run,
    made_by: makers.slice(0, MAKERS),
    more_makers: Math.max(makers.length - MAKERS, 0),
    unrecorded,
    risks: risksOf({
      changes,
      conflicts,
      unrecorded,
      tainted: makers.filter(isTainted).length,
      taintedWithReach: makers.filter((maker) => isTainted(maker) && hasReach(maker.lease)).length,
      newActors: makers.filter(({ actor }) => actor !== null && actor.did !== owner && !frame.known.includes(actor.did))
        .length,
      facts,
    }),
    ...(facts === undefined ? {} : { facts }),
    log: frame.log,
    opened_at: frame.openedAt,
    expires_at: frame.openedAt + LIMITS.gateCardMs,
  }
}

/** Hashes of the leases behind a card that are revoked. */
export const revokedLeases = (card: Card): string[] =>
  [card.asked_by.lease, ...card.made_by.map(({ lease }) => lease)]
    .filter((lease) => lease?.revoked === true)
    .map((lease) => lease?.hash ?? '')

function countsOf(changes: readonly GateChange[]): Card['changes'] {
  const counts = { add: 0, change: 0, delete: 0, rename: 0, label: 0, bytes_old: 0, bytes_new: 0 }
  for (const { op, size_old, size_new } of changes) {
    counts[op]++
    counts.bytes_old += size_old ?? 0
    counts.bytes_new += size_new ?? 0
  }
  return counts
}

function meaningOf({ kind, home, target, source, facts }: GateSubject, counts: Card['changes']): string {
  if (facts !== undefined) return meaningOfFacts(facts, { home, target })
  if (kind === 'lower-label') return `Lower the label of "${target}" to ${source} in ${home}`
  const told = [
    `${counts.add} added`,
    `${counts.change} changed`,
    `${counts.delete} deleted`,
    ...(counts.rename > 0 ? [`${counts.rename} renamed`] : []),
    ...(counts.label > 0 ? [`${counts.label} relabelled`] : []),
  ]
  return `Merge ${told.join(', ')} from "${source}" into "${target}" of ${home}`
}

/** Who made the commits: by the record of this node, never by what the commits say of themselves. */
function makersOf(view: View, commits: readonly string[]): { makers: CardMaker[]; unrecorded: number } {
  const byRun = new Map<string, Made>()
  let unrecorded = 0
  for (const commit of commits) {
    const seq = recordOfCommit(view, commit)
    if (seq === undefined) {
      unrecorded++
      continue
    }
    const { header, payload } = recordAt(view, seq)
    const name = canonicalize([header.run, header.actor, header.lease])
    const made = byRun.get(name) ?? { headers: [], outside: new Map<string, string>() }
    made.headers.push(header)
    for (const { path, label } of payload?.reads.filter(isExternal) ?? []) made.outside.set(path, formatLabel(label))
    byRun.set(name, made)
  }
  const makers = [...byRun].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, made]) => makerOf(view, made))
  return { makers, unrecorded }
}

/** Entries of one run, and what its reads that came from outside were. */
type Made = { readonly headers: RecordHeader[]; readonly outside: Map<string, string> }

function makerOf(view: View, { headers, outside }: Made): CardMaker[] {
  const [first] = headers
  if (first === undefined) return []
  const lease = first.lease === null ? null : cardLease(view, first.lease)
  const granted = lease?.chain.find(({ to }) => to.did === first.actor)?.to.name
  const told = [...outside].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, label]) => ({ path, label }))
  return [
    {
      run: first.run,
      actor:
        first.actor === null ? null : { did: first.actor, name: trusted(view, first.actor)?.name ?? granted ?? null },
      lease,
      commits: headers.length,
      reads: headers.reduce((most, { reads }) => Math.max(most, reads), 0),
      label: formatLabel(joinLabels(headers.map(({ label }) => parseLabel(label)))),
      outside: told.slice(0, OUTSIDE),
      more_outside: Math.max(told.length - OUTSIDE, 0),
    },
  ]
}

function cardLease(view: View, hash: string): CardLease {
  const chain = storedChain(view, hash) ?? []
  const leaf = chain.at(-1)
  const named = (name: string, did: string): Named => ({ name: trusted(view, did)?.name ?? name, did })
  return {
    hash,
    revoked: isRevoked(view, hash),
    chain: chain.map(({ delegation }) => ({
      from: named(delegation.grantor, delegation.grantor_key),
      to: named(delegation.grantee, delegation.grantee_key),
      level: delegation.level,
    })),
    lease: leaf === undefined ? null : leaseOf(leaf),
    expires_at: leaf?.delegation.expires_at ?? null,
  }
}

const hasReach = (lease: CardLease | null): boolean =>
  ['B', 'C'].every((capability) => lease?.lease?.capabilities?.some((held) => held === capability) === true)
