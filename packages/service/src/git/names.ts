/**
 * Names of branches, snapshots and tags are words that a session can write for others to read. Who gives one after it has
 * read from outside leaves that on the name, and whoever is told the name has read from outside then. A name that the node
 * itself gives says nothing.
 * @clause L1.7
 */
import type { View } from '@csb/store'
import { takeShown } from '../session/bulk-reads.ts'
import { isOfOwner } from '../session/foreign-home.ts'
import { heard, labelOfSession, withoutOutside } from '../session/taint.ts'
import { runBranch } from '../runs/lease.ts'
import type { Context } from '../operation.ts'

type Named = { readonly branch: string; readonly outside?: true }

/** The branch that holds what a run proposes by a push. */
export const proposalBranch = ({ run }: Pick<Context, 'run'>): string => `proposals/${run}`

/** Does a name that this session gives come from outside? */
export const givesOutside = (context: Context, view: View, branch: string): boolean =>
  ![runBranch(context.run), proposalBranch(context)].includes(branch) && speaksOutside(context, view)

/** Does what this session commits bear words from outside: its message, who is said to have made it? */
export const speaksOutside = (context: Context, view: View): boolean =>
  labelOfSession(context, view).integrity === 'external'

/** What a commit of this session leaves on its branch. @clause L1.7 */
export const marksOf = (context: Context, view: View, branch: string) => ({
  outside: givesOutside(context, view, branch),
  words: speaksOutside(context, view),
})

/**
 * The names that a listing tells: those from outside are taken in, and left out for a lease that reads nothing of that.
 * @clause L1.7
 */
export function namesTold<T extends Named>(context: Context, home: string, names: readonly T[]): readonly T[] {
  const told = namesOpen(context, home, names)
  for (const name of told)
    if (isFromOutside(context, home, name)) takeShown(context, { ...heard(context, name.branch), home })
  return told
}

/** The same where the names are not told. */
export const namesOpen = <T extends Named>(context: Context, home: string, names: readonly T[]): readonly T[] =>
  names.some((name) => isFromOutside(context, home, name))
    ? withoutOutside(context, names, (name) => labelOfName(context, home, name))
    : names

/** Is a name somebody's word from outside? In a home of another owner each is. */
export const isFromOutside = (context: Context, home: string, { outside }: { readonly outside?: true }): boolean =>
  outside === true || !isOfOwner(context, context.store.view(), home)

const labelOfName = (context: Context, home: string, name: Named) => {
  const { label } = heard(context, name.branch)
  return isFromOutside(context, home, name) ? label : { ...label, integrity: 'owner' as const }
}
