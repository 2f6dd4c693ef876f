/** How far a lease reaches in the branches of a home. */
import { fail } from '@csb/core'
import { MEMORY, getRef } from '@csb/files'
import { homeOf, locationOf, type Context, type Parts } from '../operation.ts'

export type Home = { readonly home?: string }

/** What a lease is asked for. */
export const on = (
  action: 'read' | 'write' | 'propose' | 'snapshot',
  branch: string,
  home: Home,
  parts: Pick<Parts, 'key' | 'identity'>,
) => ({
  location: locationOf(parts, homeOf(home, parts)),
  action,
  branch,
})

/**
 * A lease names branches, and a note bears its own label wherever it lies: commits and notes are not taken.
 * @throws PROTECTED, NOT_FOUND
 */
export function fileBranch(context: Context, home: string, branch: string): string {
  if (branch === MEMORY) fail('PROTECTED', { branch, reason: 'notes are kept as notes' })
  if (getRef(context.view, home, branch) === undefined) fail('NOT_FOUND', { branch })
  return branch
}
