/**
 * Deciding at the gate from the command line: fetch a card with everything it is about, check that it hashes to what
 * the node says, and sign. What is signed is what was fetched; the key is open for that one signature.
 * @clause L1.7
 */
import { fail, isNodeError } from '@csb/core'
import {
  cardDigest,
  changesDigest,
  signApproval,
  stepOf,
  type Card,
  type Decision,
  type DerivedFacts,
  type GateChange,
} from '@csb/authority'
import { identityIn, type Desk } from './authorise.ts'
import type { Client } from './client.ts'
import { readOwner } from './owner.ts'
import { hangingChange } from './rotate.ts'

/** A card as the node shows it. */
export type ShownCard = {
  readonly card: Card
  /** `sha256:…` of the card */
  readonly digest: string
  readonly state: 'open' | 'approved' | 'rejected' | 'returned' | 'void'
  /** what differed, where it is void */
  readonly field: string | null
}

/** The words behind a change: a difference or the text itself; null where `why` says why there are none. */
export type ChangeText = {
  readonly path: string
  readonly form: 'diff' | 'content'
  /** as its author wrote it */
  readonly text: string | null
  readonly why?: string
  /** lines that are cut off behind it */
  readonly more_lines: number
}

/** A card with all of its changes, both checked against their digests, and the texts that the node shows with them. */
export type Review = ShownCard & {
  readonly changes: readonly GateChange[]
  readonly texts: readonly ChangeText[]
  /** approvals in a row before now that were given sooner than `LIMITS.gateQuickMs` after their cards were shown */
  readonly quick: number
  /** what is left now of the budget of whoever asked, by unit */
  readonly left: Readonly<Record<string, number>>
}

type Page = Review & { readonly next_page: number | null }

/**
 * Fetch a card and all of its changes.
 * @throws GATE_STALE with the field whose digest is not the one that is shown; NOT_FOUND
 */
export async function reviewCard(client: Client, id: string): Promise<Review> {
  const pageOf = (page: number) => client.call<Page>('GET', `/v1/gate/${encodeURIComponent(id)}?page=${page}`)
  const first = await pageOf(0)
  const changes = [...first.changes]
  const texts = [...first.texts]
  for (let next = first.next_page; next !== null;) {
    const page = await pageOf(next)
    changes.push(...page.changes)
    texts.push(...page.texts)
    next = page.next_page
  }
  const { card, digest, state, field, quick, left } = first
  if (card.id !== id || cardDigest(card) !== digest) fail('GATE_STALE', { card: id, field: 'card' })
  if (changesDigest(changes) !== card.diff) fail('GATE_STALE', { card: id, field: 'diff' })
  return { card, digest, state, field, quick, left, changes, texts }
}

export type Forgetting = {
  readonly ids: readonly string[]
  /** goes into the tombstones */
  readonly reason?: string
  /** default the node's own */
  readonly home?: string
}

/**
 * Ask to forget notes, and fetch the card: it must be about these notes, for this reason, and about nothing else.
 * @throws GATE_STALE where it is not; NOT_FOUND, FORGOTTEN
 * @clause L3.4
 */
export async function askToForget(client: Client, asked: Forgetting): Promise<Review> {
  const id = await client.call('POST', '/v1/memory/forget', asked).then(
    () => fail('INTERNAL', { reason: 'it was forgotten unasked' }),
    (error: unknown) => {
      if (!isNodeError(error, 'GATE_REQUIRED')) throw error
      return String(error.details['card'])
    },
  )
  const review = await reviewCard(client, id)
  const { kind, facts } = review.card
  const ids = review.changes.map(({ path }) => /([^/]+)\.md$/.exec(path)?.[1] ?? path)
  const isAsked = kind === 'forget' && ids.toSorted().join() === [...new Set(asked.ids)].toSorted().join()
  if (!isAsked) fail('GATE_STALE', { card: id, field: 'diff' })
  if (asked.home !== undefined && asked.home !== review.card.home) fail('GATE_STALE', { card: id, field: 'home' })
  const reason = facts?.kind === 'forget' ? facts.reason : undefined
  if (asked.reason !== undefined && asked.reason !== reason) fail('GATE_STALE', { card: id, field: 'reason' })
  return review
}

/**
 * Forget notes with the owner's key: ask, see that the card is about them, approve it.
 * @throws as {@link askToForget} and {@link decideCard}
 * @clause L3.4
 */
export async function forgetNotes(desk: Desk, asked: Forgetting): Promise<Decided> {
  const review = await askToForget(desk.client, asked)
  return decideCard(desk, { review, decision: 'approve', shownAt: desk.now })
}

/** What came of a decision. */
export type Decided = {
  readonly card: string
  readonly outcome: string
  readonly commit?: string
  readonly forgotten?: readonly string[]
  /** of each note: what left the disk, and what was not reached */
  readonly report?: readonly {
    readonly id: string
    readonly cleared: number
    readonly records: number
    readonly remains: readonly string[]
    readonly not_covered: readonly { readonly kind: string }[]
  }[]
  /** ms since epoch: whoever asked may do it once until then */
  readonly until?: number
  /** of what was forgotten: what may hold words made from it */
  readonly derived?: DerivedFacts
}

export type Deciding = {
  readonly review: Review
  readonly decision: Decision
  /** with `needs-changes`: what has to change */
  readonly words?: string
  /** ms since epoch: when it was shown */
  readonly shownAt: number
}

/**
 * Sign a decision as the owner and hand it to the node.
 * @throws GRANT_INVALID where the key is not the owner's of that home, or the card is of another node; GATE_STALE `owner`
 *   where the card was made out to a key before this one
 */
export async function decideCard(desk: Desk, { review, decision, words, shownAt }: Deciding): Promise<Decided> {
  const { card } = review
  const { did } = await identityIn(desk.directory)
  if (card.nas !== did) fail('GRANT_INVALID', { reason: 'wrong_audience', field: 'nas' })
  if (card.owner.did !== desk.owner.did) await checkKey(desk, card)
  const said = words === undefined ? {} : { words }
  const approval = signApproval({ card, decision, ...said, shownAt, now: desk.now }, desk.owner)
  const way = decision === 'approve' ? 'approve' : 'reject'
  return desk.client.call('POST', `/v1/gate/${encodeURIComponent(card.id)}/${way}`, approval)
}

/** Where the card is made out to another key of this owner, that is said, and not that it is somebody else's. */
async function checkKey({ directory, client }: Desk, { id, owner }: Card): Promise<void> {
  const hanging = await hangingChange(directory, client)
  if (hanging?.state === 'elsewhere')
    fail('GRANT_INVALID', { reason: 'key_elsewhere', key: hanging.key, to: hanging.to })
  const { statements } = await readOwner(directory)
  if (statements.some((one) => stepOf(one)?.old === owner.did)) fail('GATE_STALE', { card: id, field: 'owner' })
}
