/**
 * What a run rests on, and how it ends when that does: the delegation that came with its message, the lease of who sent
 * it from here, or what the owner wrote down of the sender. It goes on as long as the message would still be taken as
 * it was: work that must be done needs a young word on its grants all the time, a request goes on without one and
 * changes nothing until there is one again.
 * @clause L1.3
 */
import { isNodeError, type Grant } from '@csb/core'
import { checkHeld, checkSpoken, isAtMost, type Outcome } from '@csb/authority'
import { checkStands, type Footing } from '../revocation/freshness.ts'
import type { Context } from '../operation.ts'

/** A footing, with the hashes of the grants whose revocation ends it. */
export type RunFooting = Footing & {
  readonly heldBy: readonly string[]
  /**
   * May it change something now?
   * @throws GRANT_INVALID `{reason}`, LEASE_EXPIRED, LEASE_REVOKED
   */
  checkWriting(): void
}

type Resting = {
  readonly outcome: Outcome
  /** did of the peer that sent it */
  readonly owner: string
}

/** The footing of a message that was judged so. */
export function footingOf(context: Context, { outcome, owner }: Resting): RunFooting {
  const { caller, principal, store, clock } = context
  const isForeign = caller.kind === 'peer'
  const accepted = outcome.kind === 'accepted' ? outcome : undefined
  const brought = accepted?.chain ?? []
  const isSpoken = accepted !== undefined && brought.length === 0
  const isUrgent = accepted !== undefined && !isAtMost(accepted.level, 'request')
  const own: readonly Grant[] = principal.leaseHash === null ? [] : principal.chain
  const check = (isFresh: boolean) => {
    checkHeld(store.view(), principal, clock.now())
    if (brought.length > 0) checkStands(context, brought, isFresh)
    if (isSpoken) checkSpoken(store.view(), owner, clock.now())
  }
  return {
    chain: brought,
    from: isForeign ? owner : undefined,
    heldBy: [
      ...(principal.leaseHash === null ? [] : [principal.leaseHash]),
      ...(accepted === undefined || isSpoken ? [] : [accepted.leafHash]),
    ],
    endsAt: endOf([...own, ...brought]),
    check: () => check(isUrgent),
    checkWriting: () => check(true),
  }
}

/** Why a run's right ended, where that is what ended the run. */
export function endOfRight(error: unknown): string | undefined {
  if (isNodeError(error, 'LEASE_REVOKED')) return 'revoked'
  if (isNodeError(error, 'LEASE_EXPIRED')) return 'expired'
  if (!isNodeError(error, 'GRANT_INVALID')) return undefined
  const { reason } = error.details
  return typeof reason === 'string' ? reason : undefined
}

function endOf(grants: readonly Grant[]): number | null {
  const ends = grants.flatMap(({ delegation: { expires_at: end } }) => (end === null ? [] : [end]))
  return ends.length === 0 ? null : Math.min(...ends)
}
