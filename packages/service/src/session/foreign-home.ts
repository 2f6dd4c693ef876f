/**
 * Homes of other owners that are kept here. What lies in them was said to somebody else: for sessions of this node it is
 * from outside, whatever its label says, since that label is a word of the home's owner about the home. What is written
 * to them here is from outside there.
 * @clause L3.1, L3.2
 */
import { joinLabels, OUTSIDE, type Label } from '@csb/core'
import { isSameOwner } from '@csb/authority'
import { findHome } from '@csb/files'
import type { ReadEntry, View } from '@csb/store'
import type { Parts } from '../operation.ts'

type Here = Pick<Parts, 'identity'>

/** Is this a node of the home's owner? A home that is not here belongs to nobody else. */
export function isOfOwner({ identity }: Here, view: View, home: string): boolean {
  const owner = findHome(view, home)?.owner
  return owner === undefined || isSameOwner(view, owner, identity.owner.did)
}

/** The label under which something in a home is read here. */
export const labelHere = (here: Here, view: View, home: string, label: Label): Label =>
  isOfOwner(here, view, home) ? label : joinLabels([label, OUTSIDE])

/** The same of what was read. @clause L3.2 */
export const readHere = (here: Here, view: View, entry: ReadEntry): ReadEntry => ({
  ...entry,
  label: labelHere(here, view, entry.home, entry.label),
})
