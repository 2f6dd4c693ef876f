/**
 * Making authority for somebody else. Once a session has read anything from outside, what it asks to be minted waits for
 * the owner, and is made when it asks again.
 * @clause L1.2, L1.7
 */
import { fail, isNodeError, type Grant } from '@csb/core'
import { grantHash, hasGrant, takePass, taintLease, taintOf } from '@csb/authority'
import type { Transaction, View } from '@csb/store'
import { wishDigest, type Wish } from '../gate/wishes.ts'
import { askGate, subjectIfThere } from '../gate/gates.ts'
import { homeOf, type Context, type Effect } from '../operation.ts'
import { isOwner, isSession } from './session.ts'
import { labelOfSession } from './taint.ts'

/**
 * Write what makes authority for somebody else. A tainted session is sent to the owner first, with a card that shows
 * the wish and what taints it; approved, the same wish of the same lease is granted once.
 * @param wishOf what a card shows of it, as it is in the batch that makes it: the same as long as the same is asked for
 *   and what goes along is the same, no times, no chance in it
 * @throws GATE_REQUIRED with the card
 * @clause L1.2, L1.7
 */
export async function mintThroughGate<T>(
  context: Context,
  wishOf: (view: View) => Wish,
  mint: (tx: Transaction) => Promise<T> | T,
  effect: (value: T) => Effect,
): Promise<T> {
  const { leaseHash } = context.principal
  if (leaseHash === null || !isSession(context)) return context.write(mint, effect)
  let card: string | undefined
  try {
    return await context.write(
      async (tx) => {
        card = await mayMint(tx, context, leaseHash, wishOf)
        return mint(tx)
      },
      (value) => ({ ...effect(value), ...(card === undefined ? {} : { card }) }),
    )
  } catch (error) {
    if (!isNodeError(error, 'GATE_REQUIRED')) throw error
    return askGate(context, { kind: 'mint', home: homeOf({}, context), lease: leaseHash, wish: wishOf(context.view) })
  }
}

/**
 * A chain that somebody brings and that hangs below a lease of a tainted session was made past the gate: whoever holds
 * a token can sign children of its lease. Only the owner can bring it.
 * @throws DENIED
 * @clause L1.7
 */
export function checkBrought(tx: Transaction, context: Context, chain: readonly Grant[]): void {
  const [leaf] = chain.slice(-1)
  if (leaf === undefined || isOwner(context) || hasGrant(tx, grantHash(leaf))) return
  // every one above it: those between it and the lease need not be kept here
  if (chain.slice(0, -1).some((grant) => taintOf(tx, grantHash(grant)) !== undefined))
    fail('DENIED', { reason: 'it hangs below a lease of a session that has read from outside' })
}

/**
 * Whom this node trusts and what it runs widens what others may do here as a grant does, and no card shows it. So a session
 * that has read from outside, or whose lease has a person look at what it mints, leaves it to the owner.
 * @throws DENIED
 * @clause L1.7
 */
export function checkClean(tx: Transaction, context: Context): void {
  if (!isSession(context)) return
  const isGated = context.principal.lease?.gates?.includes('mint') === true
  if (isGated || labelOfSession(context, tx).integrity === 'external')
    fail('DENIED', {
      reason: 'left_to_the_owner',
      because: isGated ? 'its lease asks a person' : 'its session has read from outside',
    })
}

/**
 * Which token acts under a grant is not signed with it. So only the owner gives one to a grant that is kept already, or
 * that is made out to be shown at other nodes: whoever could see a grant would have it otherwise.
 * @throws DENIED
 * @clause L1.2
 */
export function checkToken(tx: Transaction, context: Context, leaf: Grant): void {
  const { audience } = leaf.delegation
  const isForHere = audience.length === 1 && audience[0] === context.key.did
  if (isOwner(context) || (isForHere && !hasGrant(tx, grantHash(leaf)))) return
  fail('DENIED', { reason: 'only the owner gives a token to this grant' })
}

/** @returns the card that allows it, undefined where none is needed @throws GATE_REQUIRED */
async function mayMint(
  tx: Transaction,
  context: Context,
  lease: string,
  wishOf: (view: View) => Wish,
): Promise<string | undefined> {
  // what it takes to say what is wished for may be read from outside
  const wish = wishDigest(wishOf(tx))
  taintLease(tx, lease, context.outside)
  const isGated = context.principal.lease?.gates?.includes('mint') === true
  if (taintOf(tx, lease) === undefined && !isGated) return undefined
  const recompute = (request: Parameters<typeof subjectIfThere>[2]) => subjectIfThere(context, tx, request)
  const card = await takePass(tx, { lease, wish }, { now: context.clock.now(), recompute })
  return card?.id ?? fail('GATE_REQUIRED')
}
