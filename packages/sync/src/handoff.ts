/**
 * Work handed to a peer: a signed package with the task, what the peer may see of the home, and a grant chain
 * whose leaf holds a lease that is only narrower. What comes back is a signed result whose files must lie
 * within that lease.
 * @clause L4.4
 */
import {
  checkSchema,
  dominates,
  documentHash,
  fail,
  joinLabels,
  formatLabel,
  newId,
  parseLabel,
  random,
  signDocument,
  toBase64Url,
  verifyDocument,
  type Clearance,
  type Grant,
  type Handoff,
  type HandoffResult,
  type KeyPair,
  type Label,
  type Lease,
  type Status,
} from '@csb/core'
import { allows } from '@csb/authority'

/** The branch of the sender's home that a handoff's result becomes. */
export const handoffBranch = (id: string): string => `handoff/${id}`

export type HandoffFile = { readonly path: string; readonly text: string; readonly label: Label }

export type HandoffInit = {
  readonly id: string
  readonly key: KeyPair
  readonly to: string
  readonly agent: string
  readonly home: string
  readonly base: string | null
  readonly text: string
  readonly context: string | null
  readonly files: readonly HandoffFile[]
  /** grants, root first; the leaf names `to` and holds the lease */
  readonly chain: readonly Grant[]
  readonly taint: Label
  readonly expiresAt: number
  /** what the status keys of the chain said last */
  readonly status?: readonly Status[]
}

export const newHandoffId = (now: number): string => newId('handoff', now)

/**
 * Make and sign a package. Files whose label the peer's clearance does not cover are left out.
 * @param clearance what the peer may see
 * @param now ms since epoch
 * @clause L4.2
 */
export function createHandoff(init: HandoffInit, clearance: Clearance, now: number): Handoff {
  const visible = init.files.filter((file) => dominates(clearance, file.label))
  const body = {
    v: 1 as const,
    id: init.id,
    from: init.key.did,
    to: init.to,
    agent: init.agent,
    home: init.home,
    base: init.base,
    task: { text: init.text, context: init.context },
    files: visible.map(({ path, text, label }) => ({ path, text, label: formatLabel(label) })),
    chain: [...init.chain] as unknown as Handoff['chain'],
    taint: formatLabel(joinLabels([init.taint, ...visible.map(({ label }) => label)])),
    issued_at: now,
    expires_at: init.expiresAt,
    nonce: toBase64Url(random(16)),
    ...(init.status === undefined ? {} : { status: [...init.status] as unknown as NonNullable<Handoff['status']> }),
  }
  return { ...body, signature: signDocument('handoff', body, init.key) }
}

/**
 * Check a package at the receiver, all but its grant chain.
 * @param from did of the peer it came from
 * @throws MALFORMED, SENDER_MISMATCH, LEASE_EXPIRED, CLEARANCE where a file's label is above `clearance`
 */
export function openHandoff(value: unknown, from: string, self: string, clearance: Clearance, now: number): Handoff {
  checkSchema('Handoff', value, 'MALFORMED')
  const handoff = value as Handoff
  const { signature, ...body } = handoff
  if (handoff.from !== from || handoff.to !== self) fail('SENDER_MISMATCH', { from: handoff.from, to: handoff.to })
  if (!verifyDocument('handoff', body, signature, from)) fail('GRANT_INVALID', { reason: 'bad_signature' })
  if (handoff.expires_at <= now) fail('LEASE_EXPIRED', { handoff: handoff.id })
  const above = handoff.files.find((file) => !dominates(clearance, parseLabel(file.label)))
  if (above !== undefined) fail('CLEARANCE', { label: above.label })
  return handoff
}

export type ResultInit = Omit<HandoffResult, 'v' | 'signature' | 'from'>

/** Sign what came of it, at the receiver. */
export function createResult(init: ResultInit, key: KeyPair): HandoffResult {
  const body = { v: 1 as const, ...init, from: key.did }
  return { ...body, signature: signDocument('handoffResult', body, key) }
}

/**
 * Check a result at the sender: signed by the peer, for this handoff and lease, every file within the lease.
 * @throws MALFORMED, SENDER_MISMATCH, GRANT_INVALID, SCOPE_EXCEEDED with the field and path
 */
export function openResult(value: unknown, handoff: Handoff, lease: Lease, leaseHash: string): HandoffResult {
  checkSchema('HandoffResult', value, 'MALFORMED')
  const result = value as HandoffResult
  const { signature, ...body } = result
  if (result.from !== handoff.to || result.to !== handoff.from || result.handoff !== handoff.id) {
    fail('SENDER_MISMATCH', { from: result.from, handoff: result.handoff })
  }
  if (!verifyDocument('handoffResult', body, signature, handoff.to)) fail('GRANT_INVALID', { reason: 'bad_signature' })
  if (result.lease !== leaseHash) fail('GRANT_INVALID', { reason: 'holder_mismatch' })
  checkFiles(lease, handoff, result.files)
  return result
}

/**
 * Every path must lie within the lease, on the handoff's own branch.
 * @throws SCOPE_EXCEEDED
 */
export function checkFiles(
  lease: Lease,
  handoff: Pick<Handoff, 'id' | 'home' | 'from'>,
  files: readonly { path: string }[],
): void {
  const location = lease.locations[0] ?? ''
  for (const { path } of files) {
    const verdict = allows(lease, { location, action: 'propose', path: `/${path}`, branch: handoffBranch(handoff.id) })
    if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, path })
  }
}

export const handoffHash = (handoff: Handoff): string => {
  const { signature: _, ...body } = handoff
  return documentHash('handoff', body)
}
