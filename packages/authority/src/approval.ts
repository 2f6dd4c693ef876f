/**
 * The approval: a person's decision on one card, signed by the key of the home's owner and by no other. Neither the
 * node nor a run can sign one, whatever lease or delegation it holds: authority that was lent does not reach the gate.
 *
 * Drafting and signing happen where the owner's key is; reading and judging happen at the node.
 * @clause L1.7
 */
import {
  LIMITS,
  documentHash,
  random,
  signDocument,
  toBase64Url,
  verifyDocument,
  type Approval,
  type KeyPair,
} from '@csb/core'
import { cardDigest, type Card } from './gate-card.ts'
import { checkDocument, checkSigner } from './grant.ts'
import { refuse } from './reasons.ts'

export type Decision = Approval['gate']['decision']

/** What an approval may say where one of these is asked for: what ends a card without an act comes by one way. */
const SAID: Readonly<Record<'approve' | 'reject', readonly Decision[]>> = {
  approve: ['approve'],
  reject: ['reject', 'needs-changes'],
}

export type ApprovalInit = {
  /** as it was shown */
  readonly card: Card
  readonly decision: Decision
  /** what has to change, with `needs-changes`: at most 1,000 characters; whoever asked gets it */
  readonly words?: string
  /** ms since epoch: when it was shown */
  readonly shownAt: number
  /** ms since epoch: when the person decided */
  readonly now: number
}

/** The members that repeat the card, so that each can be compared with what is there when it acts. */
export const boundTo = (card: Card) => ({
  kind: card.kind,
  nas: card.nas,
  home: card.home,
  target: card.target,
  base: card.base,
  head: card.head,
  result_tree: card.result_tree,
  diff: card.diff,
  policy: card.policy,
  lease: card.asked_by.lease?.hash ?? null,
  exec: card.exec,
  labels: [...card.labels],
  taint: card.taint,
  log: { ...card.log },
  card: cardDigest(card),
})

/**
 * Sign a decision on a card.
 * @throws GRANT_INVALID `holder_mismatch` where the key is not the owner's of that home
 * @clause L1.7
 */
export function signApproval({ card, decision, words, shownAt, now }: ApprovalInit, owner: KeyPair): Approval {
  if (owner.did !== card.owner.did) refuse('holder_mismatch', { field: 'approver' })
  const body = {
    v: 1 as const,
    decision,
    ...(words === undefined ? {} : { words }),
    ...boundTo(card),
    shown_at: shownAt,
    decided_at: now,
    expires_at: now + LIMITS.gateApprovalMs,
    nonce: toBase64Url(random(16)),
    approver: owner.did,
  }
  return { gate: { ...body, signature: signDocument('gate', { gate: body }, owner) } }
}

/**
 * Read an approval and check that the owner of the home signed it, for this node, for now.
 * @param value a parsed document
 * @param about `owner`: did of the home's owner; `now`: ms since epoch
 * @throws GRANT_INVALID with `malformed`, `wrong_audience`, `holder_mismatch`, `weak_key`, `bad_signature`, `expired`,
 *   `not_yet_valid`, `type_rule`
 * @clause L1.7
 */
export function readApproval(
  value: unknown,
  about: { readonly node: string; readonly owner: string; readonly now: number; readonly decision: keyof typeof SAID },
): Approval {
  checkDocument('Approval', value, LIMITS.approvalBytes)
  const document = value as Approval
  const { signature, ...body } = document.gate
  if (body.nas !== about.node) refuse('wrong_audience', { field: 'nas' })
  // a home that belongs to its node's own key would have nobody outside to ask
  if (body.approver !== about.owner || body.approver === about.node) refuse('holder_mismatch', { field: 'approver' })
  if (!SAID[about.decision].includes(body.decision)) refuse('type_rule', { field: 'decision' })
  if (body.words !== undefined && body.decision !== 'needs-changes') refuse('type_rule', { field: 'words' })
  if (body.shown_at > body.decided_at) refuse('type_rule', { field: 'shown_at' })
  const lifeMs = body.expires_at - body.decided_at
  if (lifeMs <= 0 || lifeMs > LIMITS.gateApprovalMs) refuse('type_rule', { field: 'expires_at' })
  if (body.decided_at > about.now + LIMITS.clockSkewMs) refuse('not_yet_valid', { field: 'decided_at' })
  if (body.expires_at <= about.now) refuse('expired', { field: 'expires_at' })
  checkSigner(body.approver)
  if (!verifyDocument('gate', { gate: body }, signature, body.approver)) refuse('bad_signature')
  return document
}

/** `sha256:` name of an approval, over what is signed. */
export function approvalHash(approval: Approval): string {
  const { signature: _, ...body } = approval.gate
  return documentHash('gate', { gate: body })
}
