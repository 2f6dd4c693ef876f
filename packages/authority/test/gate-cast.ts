/** A subject at the gate, whose every part can be changed, and the ways to open, sign and decide. */
import { signDocument, type Approval, type KeyPair } from '@csb/core'
import type { Store } from '@csb/store'
import {
  appendRecord,
  decide,
  grantHash,
  openCard,
  policyDigest,
  signApproval,
  storeGrant,
  type Card,
  type Decision,
  type GateChange,
  type GateSubject,
} from '@csb/authority'
import { HOME, HOUR, NOW, node, owner, ownerGrant, testStore, wideLease } from './cast.ts'

export const BASE = 'a'.repeat(64)
export const HEAD = 'b'.repeat(64)
export const TREE = 'c'.repeat(64)
export const COMMIT = 'd'.repeat(64)

export const change = (path: string, extra: Partial<GateChange> = {}): GateChange => ({
  op: 'change',
  path,
  mode_old: '100644',
  mode_new: '100644',
  sha256_old: '1'.repeat(64),
  sha256_new: '2'.repeat(64),
  size_old: 10,
  size_new: 20,
  label_old: 'private:owner',
  label_new: 'private:owner',
  ...extra,
})

export const subjectOf = (extra: Partial<GateSubject> = {}): GateSubject => ({
  kind: 'merge',
  home: HOME,
  owner: owner.did,
  target: 'main',
  source: 'runs/7f3c',
  base: BASE,
  head: HEAD,
  resultTree: TREE,
  changes: [change('notes/a.md'), change('notes/b.md')],
  conflicts: 0,
  commits: [COMMIT],
  policy: policyDigest({ protected: ['main'] }),
  ...extra,
})

export const REQUEST = { kind: 'merge', home: HOME, from: 'runs/7f3c', into: 'main' } as const

/** The lease under which the card is asked for. */
export const lease = ownerGrant({ lease: wideLease(), ttlMs: 48 * HOUR })

/** Keep the lease and let its run make the commit that is to be merged. */
export async function workDone(store: Store, label = 'private:owner'): Promise<void> {
  await store.transact((tx) => {
    storeGrant(tx, { chain: [lease] })
    const entry = {
      operation: 'files.write',
      outcome: 'done' as const,
      actor: lease.delegation.grantee_key,
      door: 'http',
      run: 'run_1800000000000_aaaaaaaaaa',
      lease: grantHash(lease),
      reads: [],
      label,
      effect: {},
      commit: COMMIT,
    }
    appendRecord(tx, entry, NOW)
  })
}

export const opened = (store: Store, subject: GateSubject = subjectOf(), now = NOW): Promise<Card> =>
  store.transact(async (tx) => {
    const asker = {
      did: lease.delegation.grantee_key,
      name: '若兰 🌸',
      run: 'run_1800000000000_bbbbbbbbbb',
      lease: grantHash(lease),
      door: 'http',
    }
    return (await openCard(tx, { subject, request: REQUEST, asker, node: node.did, now })).card
  })

export const signed = (card: Card, decision: Decision = 'approve', key: KeyPair = owner, now = NOW): Approval =>
  signApproval({ card, decision, shownAt: now, now }, key)

export type Deciding = {
  readonly subject?: GateSubject | undefined
  readonly now?: number
  readonly decision?: 'approve' | 'reject'
  readonly id?: string
  readonly node?: string
  readonly act?: () => void
}

/** Decide; the act counts itself in `meta`. */
export const decided = (store: Store, approval: unknown, card: Card, how: Deciding = {}) =>
  store.transact((tx) =>
    decide(tx, {
      id: how.id ?? card.id,
      approval,
      decision: how.decision ?? 'approve',
      node: how.node ?? node.did,
      now: how.now ?? NOW,
      ownerOf: () => ('subject' in how ? how.subject : undefined)?.owner ?? owner.did,
      recompute: async () => ('subject' in how ? how.subject : subjectOf()),
      act: async () => {
        how.act?.()
        tx.putJson('m/acts', actsOf(tx) + 1)
        return 'done'
      },
    }),
  )

/** How often something was done. */
export const actsOf = (view: { getJson<T>(key: string): T | undefined }): number => view.getJson<number>('m/acts') ?? 0

/** A store with a card that is open. */
export async function stand(subject: GateSubject = subjectOf()) {
  const store = await testStore()
  await workDone(store)
  return { store, card: await opened(store, subject) }
}

/** Signed again after a change, as only the owner could. */
export function resigned(approval: Approval, extra: Record<string, unknown>, by = owner): unknown {
  const { signature: _, ...rest } = approval.gate
  const body = { ...rest, ...extra }
  return { gate: { ...body, signature: signDocument('gate', { gate: body }, by) } }
}
