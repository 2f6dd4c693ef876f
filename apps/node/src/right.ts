/**
 * By what right the command asks: in a run of an agent by the token that the run was given, else as the owner. It never
 * goes from the one to the other. An agent is run as the owner's user and finds the owner's files, so without this
 * whatever talks it into a command would have it done by the owner.
 * @clause L1.1
 */
import { fail } from '@csb/core'
import { addressOf, ownerAccess, sessionOf, type Access } from '@csb/node'

/**
 * @param directory of the node, for who is no run, and for a run that was not told where
 * @throws LEASE_REQUIRED in a run that was given no token; NOT_INITIALISED, PEER_UNREACHABLE
 */
export async function accessOf(directory: string): Promise<Access> {
  const { token, url } = sessionOf()
  if (!isRun()) return ownerAccess(directory)
  if (token === undefined) fail('LEASE_REQUIRED', { reason: 'run_without_token' })
  return { url: url ?? (await addressOf(directory)), token }
}

/** Is it a run of an agent that called the command? */
export const isRun = (): boolean => sessionOf().isRun

/** What the owner alone does is not begun in a run of an agent. @throws DENIED */
export function checkOwner(): void {
  if (isRun()) fail('DENIED', { reason: 'run_of_agent' })
}
