/**
 * The gate card: what a person is shown before something final happens. The node computes all of it, from the
 * objects and the record; no commit message, no word of an agent stands on it, and file names are in the list of
 * changes only, to be escaped by whoever shows them.
 *
 * A card is drawn again, from the same beginnings, when somebody approves: the same facts give the same card.
 * @clause L1.7
 */
import { LIMITS, canonicalize, digestOf, fail, parseLabel, toHex, type Approval } from '@csb/core'
import { key, type View } from '@csb/store'
import { isMixed, lookalikes, type NameOnCard } from './gate-names.ts'
import {
  cardLease,
  hasReach,
  isTainted,
  makersOf,
  standingLease,
  standingOf,
  type CardLease,
  type CardMaker,
  type CardStanding,
  type GateAsker,
  type Named,
} from './gate-people.ts'
import { labelsIn, meaningOfFacts, type GateFacts } from './gate-plan.ts'
import { risksOf, type GateChange, type Risk } from './gate-risks.ts'
import { isSameOwner } from './key-line.ts'
import { rootOf } from './merkle.ts'
import { headOf, nodesOf } from './record.ts'
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
    readonly send: number
    readonly bytes_old: number
    readonly bytes_new: number
  }
  readonly conflicts: number
  readonly labels: readonly string[]
  readonly taint: boolean
  readonly policy: string
  readonly asked_by: {
    readonly name: string
    readonly did: string | null
    /** by which door it was asked */
    readonly door: string
    readonly lease: CardLease | null
  }
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
  /** what others had signed of the record then */
  readonly witnessed: CardStanding['witnessed']
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
  /** dids of actors, and hashes of leases, of which something was approved before the card was opened */
  readonly known: readonly string[]
  /** ms since epoch */
  readonly openedAt: number
  readonly log: Card['log']
  readonly standing: CardStanding
}

/** Runs told one by one; a person reads no more. */
const MAKERS = 32

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
 * What a card begins with, now: it stays the same when the card is drawn again.
 * @param about `now`: ms since epoch; `node`: did of this node
 */
export async function frameOf(
  view: View,
  { commits }: Pick<GateSubject, 'commits'>,
  about: { readonly id: string; readonly asker: GateAsker; readonly node: string; readonly now: number },
): Promise<CardFrame> {
  const { id, asker, node, now } = about
  const { makers } = await makersOf(view, commits)
  const leases = [asker.lease, ...makers.map(({ lease }) => lease?.hash ?? null)]
  const behind = makers.flatMap(({ actor }) => (actor === null ? [] : [actor.did]))
  if (asker.lease !== null) behind.push(standingLease(view, asker.lease))
  return {
    id,
    node,
    asker,
    known: [...new Set(behind)].filter((one) => view.has(key('gateActor', one))).sort(),
    openedAt: now,
    log: logHead(view),
    standing: standingOf(view, leases, { self: node, now }),
  }
}

/**
 * Draw the card of a subject. The same frame, subject, record and names give the same card.
 * @param names the owner's own names for keys
 * @throws TOO_LARGE above {@link LIMITS.gateChanges} or {@link LIMITS.gateCommits}
 * @clause L1.7
 */
export async function drawCard(
  view: View,
  subject: GateSubject,
  frame: CardFrame,
  names: readonly Named[],
): Promise<Card> {
  const { changes, conflicts, commits, owner, facts } = subject
  if (changes.length > LIMITS.gateChanges) fail('TOO_LARGE', { maxChanges: LIMITS.gateChanges })
  if (commits.length > LIMITS.gateCommits) fail('TOO_LARGE', { maxCommits: LIMITS.gateCommits })
  const { makers, unrecorded } = await makersOf(view, commits)
  const touched = [...changes.flatMap((change) => [change.label_old, change.label_new]), ...labelsIn(facts)]
  const labels = [...new Set(touched)].filter((label) => label !== null).sort()
  const counts = countsOf(changes)
  const shown = namesOn(frame.asker, makers, facts)
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
      door: frame.asker.door,
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
      firstOfLease: isFirst(view, owner, frame) ? 1 : 0,
      unwitnessed: frame.standing.witnessed === null ? 1 : 0,
      stale: frame.standing.stale.length,
      mixedNames: [...shown.map(({ name }) => name), ...branchesIn(subject)].filter(isMixed).length,
      lookalikes: lookalikes(shown, names, (did, other) => isSameOwner(view, did, other)).length,
      facts,
    }),
    ...(facts === undefined ? {} : { facts }),
    log: frame.log,
    witnessed: frame.standing.witnessed,
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
  const counts = { add: 0, change: 0, delete: 0, rename: 0, label: 0, send: 0, bytes_old: 0, bytes_new: 0 }
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

/** Was nothing approved yet that was asked for under this lease? The owner's own needs no such word. */
function isFirst(view: View, owner: string, { asker, known }: CardFrame): boolean {
  if (asker.lease === null || (asker.did !== null && isSameOwner(view, owner, asker.did))) return false
  return !known.includes(standingLease(view, asker.lease))
}

/** Names of branches; of other cards the target stands in the list of changes. */
const branchesIn = ({ kind, target, source }: GateSubject): string[] => (kind === 'merge' ? [target, source] : [])

/** Names that somebody else may have chosen, each with its key. */
function namesOn(asker: GateAsker, makers: readonly CardMaker[], facts: GateFacts | undefined): NameOnCard[] {
  const made = makers.flatMap(({ actor }) => {
    const { name = null, did = null } = actor ?? {}
    return name === null ? [] : [{ name, did }]
  })
  const given =
    facts?.kind === 'mint' ? [facts.to, facts.from, ...facts.under.flatMap(({ from, to }) => [from, to])] : []
  const all = [asker, ...made, ...given.filter((one) => one !== null)].map(({ name, did }) => ({ name, did }))
  return [...new Map(all.map((one) => [canonicalize(one), one])).values()]
}
