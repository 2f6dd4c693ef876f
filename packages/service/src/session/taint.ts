/**
 * What a session has read from outside: kept with its lease before it is answered, borne by what it writes, and refused
 * under a lease that takes nothing of it.
 * @clause L1.2, L1.7
 */
import { fail, joinLabels, OUTSIDE, parseLabel, type Label } from '@csb/core'
import { grownTaint, taintLease, taintOf } from '@csb/authority'
import type { ReadEntry, View } from '@csb/store'
import type { Context } from '../operation.ts'
import { isOwner, isSession } from './session.ts'

const AGENT: Label = { level: 'public', integrity: 'agent', tags: [] }

/** The word of somebody else that no label tells, as something that was read. @param place whose it is, for people */
export const heard = ({ identity }: Pick<Context, 'identity'>, place: string): ReadEntry => ({
  home: identity.home ?? '',
  path: place,
  oid: '',
  label: OUTSIDE,
})

/**
 * A lease may say that nothing from outside is read under it: then what was read is not answered, and what rests on it is
 * not written.
 * @throws DENIED
 * @clause L1.2
 */
export function refuseOutside({ principal: { lease }, outside }: Pick<Context, 'principal' | 'outside'>): void {
  // what it was is not told: its name may be somebody's words as well
  if (outside.length > 0 && lease?.external === 'deny')
    fail('DENIED', { reason: 'this lease reads nothing from outside' })
}

/** Leave out of a list what comes from outside, where the lease reads nothing of that. */
export function withoutOutside<T>(
  { principal: { lease }, outside }: Pick<Context, 'principal' | 'outside'>,
  items: readonly T[],
  labelOf: (item: T) => Label,
): readonly T[] {
  if (lease?.external !== 'deny') return items
  outside.length = 0
  return items.filter((item) => labelOf(item).integrity !== 'external')
}

/**
 * Keep with a session's lease what this request has read from outside, before any of it is answered, or of how it failed.
 * @throws DENIED where its lease takes nothing of it
 * @clause L1.7
 */
export async function keepTaint(context: Context): Promise<void> {
  const { leaseHash, chain } = context.principal
  refuseOutside(context)
  const outside = context.outside.splice(0)
  if (leaseHash === null || outside.length === 0 || !isSession(context)) return
  if (grownTaint(context.store.view(), leaseHash, outside) === undefined) return
  // what a run says goes on under the name of its task
  const task = chain.at(-1)?.delegation.task ?? null
  await context.store.transact((tx) => {
    for (const name of [leaseHash, ...(task === null ? [] : [task])]) taintLease(tx, name, outside)
  })
}

/**
 * The least label of what is written: as strict as the lease demands, an agent's where not the owner writes, and that of
 * whatever was read from outside.
 * @clause L1.2, L3.2
 */
export function leastLabel(context: Context, view: View): Label {
  const own = writesAsAgent(context) ? [AGENT] : []
  return joinLabels([...own, leastPushed(context, view)])
}

/** Is what is written an agent's word? */
export const writesAsAgent = (context: Context): boolean => !isOwner(context) && context.principal.kind !== 'node'

/**
 * The least label of what is pushed and goes in as it came: of whoever wrote it the branch tells.
 * @clause L1.2, L1.7
 */
export function leastPushed(context: Context, view: View): Label {
  const floor: Label = { level: context.principal.lease?.label_floor ?? 'public', integrity: 'owner', tags: [] }
  return joinLabels([floor, labelOfSession(context, view)])
}

/** What a session writes bears the label of whatever it has read from outside. */
export function labelOfSession(context: Context, view: View): Label {
  const { leaseHash } = context.principal
  const kept = leaseHash === null || !isSession(context) ? undefined : taintOf(view, leaseHash)
  const read = isSession(context) ? context.outside.map(({ label }) => label) : []
  return joinLabels([...(kept === undefined ? [] : [parseLabel(kept.label)]), ...read])
}
