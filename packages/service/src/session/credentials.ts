/**
 * What this node shows elsewhere to prove its rights to a home, and what a peer may see and change of a home here.
 * @clause L4.2
 */
import { meetClearances, type Grant } from '@csb/core'
import { chainsOfHolder, rightsOf, trusted, verifyCredential, type Rights } from '@csb/authority'
import { getHome, type Home } from '@csb/files'
import type { Parts } from '../operation.ts'

type Here = Pick<Parts, 'store' | 'clock' | 'key'>

/** The newest chain from the home's owner to this node's key that gives it a view on the home; null where there is none. */
export function credentialOf({ store, key, clock }: Here, home: Home): readonly Grant[] | null {
  const view = store.view()
  const asked = { did: key.did, home, self: key.did, now: clock.now() }
  const gives = (chain: readonly Grant[]) => {
    try {
      // what was made out for one task says nothing of the home
      return (
        chain.at(-1)?.delegation.task === null && (verifyCredential(view, { ...asked, chain })?.lease ?? null) !== null
      )
    } catch {
      return false
    }
  }
  return chainsOfHolder(view, key.did).findLast(gives) ?? null
}

/** The grants on which the rights of a peer in a session rest: the chain it brought. Empty where it brought none that holds. */
export function chainsShownBy(
  { store, key, clock }: Here,
  did: string,
  home: Home,
  brought?: unknown,
): readonly Grant[] {
  const asked = { did, home, self: key.did, now: clock.now() }
  return verifyCredential(store.view(), { ...asked, chain: brought })?.chain ?? []
}

/**
 * Rights of a peer to a home, by grants kept here and by the chain it brought along. Asked again and again during a
 * session, so that a revocation counts at once. A bound that the owner of this node set for that peer holds
 * whatever a grant says.
 */
export function peerRights({ store, key, clock }: Here, did: string, homeId: string, brought?: unknown): Rights {
  const view = store.view()
  const asked = { did, home: getHome(view, homeId), self: key.did, now: clock.now() }
  const credential = verifyCredential(view, { ...asked, chain: brought })
  const rights = rightsOf(view, { ...asked, credential })
  const bound = trusted(view, did)?.clearance
  if (bound === undefined || bound === null || rights.clearance === undefined) return rights
  return { ...rights, clearance: meetClearances(bound, rights.clearance) }
}
