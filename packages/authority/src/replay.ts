/**
 * What may happen only once: a signed message (its nonce) and a single-use grant. Both are staged in the
 * transaction that does what was asked, so that a crash between the two can not happen.
 * @clause DEL-001, DEL-003.3.2
 */
import { LIMITS, type Authority } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'

/** Old nonces that are looked at for every new one: more than one, so the table shrinks again after a flood. */
const SWEPT = 4

/** Was a message with this holder and nonce accepted before? */
export const isReplayed = (view: View, { holder, nonce }: Pick<Authority, 'holder' | 'nonce'>): boolean =>
  view.has(key('nonce', holder, nonce))

/**
 * Remember the nonce for as long as the message could come again, and drop some whose time is over.
 * @param now ms since epoch
 */
export async function consumeNonce(
  tx: Transaction,
  authority: Pick<Authority, 'holder' | 'nonce' | 'expires_at'>,
  now: number,
): Promise<void> {
  const { holder, nonce, expires_at } = authority
  const own = key('nonce', holder, nonce)
  // nonces are random, so what stands behind this one is a fair sample of the table
  for await (const [fullKey] of tx.range({ prefix: prefix('nonce'), after: own, limit: SWEPT })) {
    if ((tx.getJson<number>(fullKey) ?? 0) < now) tx.del(fullKey)
  }
  tx.putJson(own, (expires_at ?? Number.MAX_SAFE_INTEGER - LIMITS.clockSkewMs) + LIMITS.clockSkewMs)
}

/** Where a single-use grant went. */
type Use = { readonly holder: string; readonly nonce: string; readonly at: number }

/** Was the single-use grant of that hash used? */
export const isUsed = (view: View, grantHash: string): boolean => view.has(key('used', grantHash))

/** @param now ms since epoch */
export function consumeGrant(tx: Transaction, grantHash: string, { holder, nonce }: Authority, now: number): void {
  tx.putJson(key('used', grantHash), { holder, nonce, at: now } satisfies Use)
}
