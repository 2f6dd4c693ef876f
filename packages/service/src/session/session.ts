/**
 * Who asks. Whoever acts under a lease that was handed out is a session: a program that reads what others wrote and may
 * do as it says there. The owner's own command line and the node's own work are none.
 * @clause L1.1
 */
import { isSameOwner } from '@csb/authority'
import type { Context } from '../operation.ts'

type Asking = Pick<Context, 'principal' | 'identity' | 'store'>

/** Is it the owner's own command line that asks? */
export const isOwner = ({ principal: { did }, identity, store }: Asking): boolean =>
  did !== null && isSameOwner(store.view(), identity.owner.did, did)

/** Does somebody speak through this lease that is neither the owner nor the node? */
export const isSession = (asking: Asking): boolean =>
  asking.principal.leaseHash !== null && asking.principal.kind !== 'node' && !isOwner(asking)
