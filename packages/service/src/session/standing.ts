/**
 * Who stands at a door, and whether it may do what it asks for: by the lease that it holds, the run that it belongs to and
 * what that rests on. Asked when a request is let in, and again in each batch that it writes.
 * @clause L1.1, L1.2, L1.3
 */
import { fail, isNodeError } from '@csb/core'
import { hasEnded } from '@csb/agents'
import {
  chainOfToken,
  checkHeld,
  checkNotHeld,
  isRevoked,
  principalOf,
  type ChainCache,
  type Principal,
} from '@csb/authority'
import type { View } from '@csb/store'
import type { Caller } from '../caller.ts'
import type { MessagePort } from '../peers.ts'
import { checkReach, onlyLooks, type Context, type Operation, type Parts } from '../operation.ts'
import { isOwner } from './session.ts'
import { heard, refuseOutside } from './taint.ts'

/**
 * Who it is, by what it shows. A lease that is over still looks.
 * @throws UNAUTHENTICATED, LEASE_REQUIRED, LEASE_EXPIRED, LEASE_REVOKED
 */
export function identify(
  { chains, ...parts }: Parts & { readonly chains: ChainCache },
  caller: Caller,
  operation: Operation,
  input: unknown,
): Principal {
  if (operation.open === 'nobody' && caller.kind !== 'bearer') return visitor(caller)
  // a session is with the node whose key the stream proved: a token proves no key
  if (operation.open === 'peer' && caller.kind !== 'peer') fail('LEASE_REQUIRED', { operation: operation.name })
  const options = { self: parts.key.did, owner: parts.identity.owner.did, now: parts.clock.now(), chains }
  const view = parts.store.view()
  try {
    return ofOpenRun(parts, view, principalOf(view, caller, options))
  } catch (error) {
    if (!isNodeError(error, 'LEASE_EXPIRED')) throw error
    // that its run has ended is said whether its token is gone already or not yet
    if (caller.kind === 'bearer') checkOpen(view, chainOfToken(view, caller.token) ?? [])
    if (!isLooking(parts, operation, input)) throw error
    return ofOpenRun(parts, view, principalOf(view, caller, { ...options, isLooking: true }))
  }
}

/**
 * Does it still stand, in the batch that writes? A lease or a run that ended since the request began must not write.
 * @throws UNAUTHENTICATED, LEASE_EXPIRED, LEASE_REVOKED, GRANT_INVALID `{reason}`
 * @clause L1.3
 */
export function checkStanding(view: View, parts: Parts, { principal, run, isForRun = false }: Writing): void {
  checkHeld(view, principal, parts.clock.now())
  ofOpenRun(parts, view, principal)
  if (!isForRun) parts.runs.active.get(run)?.checkWriting()
}

/**
 * Does it still stand, where an answer comes in parts? What only looks goes on when its lease is over.
 * @throws UNAUTHENTICATED, LEASE_EXPIRED, LEASE_REVOKED
 * @clause L1.3
 */
export function checkHearing(context: Context, operation: Operation, input: unknown): void {
  const { store, clock, principal } = context
  const view = store.view()
  ofOpenRun(context, view, principal)
  try {
    checkHeld(view, principal, clock.now())
  } catch (error) {
    if (!isNodeError(error, 'LEASE_EXPIRED') || !isLooking(context, operation, input)) throw error
    if (principal.leaseHash !== null && isRevoked(view, principal.leaseHash)) fail('LEASE_REVOKED', error.details)
  }
}

/** A port that tells nothing to whom it is not for any more. @clause L1.3 */
export const heldPort = (context: Context, operation: Operation, input: unknown, port: MessagePort): MessagePort => ({
  ...port,
  send: async (message) => {
    checkHearing(context, operation, input)
    await port.send(message)
  },
})

type Writing = {
  readonly principal: Principal
  readonly run: string
  /** the node's own work for a run: what the run says goes on, and what it changes is judged where that is done */
  readonly isForRun?: boolean
}

/**
 * What was made out for one task ends with it, in the batch that ends the task: however that came, by its result, a
 * cancel or a crash, and though its lease has time left. It ends with what the task rests on as well, in the batch in
 * which a revocation of that is taken in.
 * @throws UNAUTHENTICATED, LEASE_REVOKED
 * @clause L1.2, L1.3
 */
function ofOpenRun({ runs }: Pick<Parts, 'runs'>, view: View, principal: Principal): Principal {
  const task = checkOpen(view, principal.chain)
  if (task === null) return principal
  const gone = runs.active.get(task)?.heldBy.find((hash) => isRevoked(view, hash))
  if (gone !== undefined) fail('LEASE_REVOKED', { lease: gone })
  return principal
}

/** @returns the task that the chain was made out for, null for none. @throws UNAUTHENTICATED where that has ended */
function checkOpen(view: View, chain: Principal['chain']): string | null {
  const task = chain.at(-1)?.delegation.task ?? null
  if (task !== null && hasEnded(view, task)) fail('UNAUTHENTICATED', { reason: 'its run has ended', run: task })
  return task
}

/**
 * May anything be changed or sent now? Not by a run while there is no young word on what it rests on, by whichever door,
 * and not by anybody while the record is held. What only looks goes on.
 * @throws GRANT_INVALID `{reason}`, LEASE_EXPIRED, LEASE_REVOKED, RECORD_HELD
 * @clause L1.3, L1.6
 */
export function checkActing(parts: Parts, operation: Operation, input: unknown, run: string): void {
  if (onlyLooks(operation, input, parts)) return
  if (operation.evenHeld !== true) checkNotHeld(parts.store.view())
  parts.runs.active.get(run)?.checkWriting()
}

/**
 * Does it only show what is there? That is what every view goes on doing when a lease is over.
 * @clause L1.3
 */
function isLooking(parts: Parts, operation: Operation, input: unknown): boolean {
  if (!onlyLooks(operation, input, parts)) return false
  const action = operation.needs?.(input as never, parts).action
  return action === 'read' || action === 'list'
}

const visitor = (caller: Caller): Principal => ({
  kind: 'visitor',
  did: caller.kind === 'peer' ? caller.did : null,
  name: 'visitor',
  leaseHash: null,
  lease: null,
  chain: [],
})

/**
 * May it do this?
 * @throws LEASE_REQUIRED, SCOPE_EXCEEDED with the field that does not reach
 * @throws DENIED where only the owner may, and where a lease takes nothing from outside and would hear something
 * @clause L1.1, L1.2
 */
export function authorize(parts: Parts, principal: Principal, operation: Operation, input: unknown): void {
  const { open, name } = operation
  if (open === 'lease' || open === 'owner') {
    if (principal.lease === null) fail('LEASE_REQUIRED', { operation: name })
    const needs = operation.needs?.(input as never, parts)
    if (needs !== undefined) checkReach({ principal }, needs)
  }
  if (open === 'owner' && !isOwner({ ...parts, principal })) fail('DENIED', { reason: 'only the owner does this' })
  const place = operation.hears?.(input as never, parts)
  if (place !== undefined) refuseOutside({ principal, outside: [heard(parts, place)] })
}
