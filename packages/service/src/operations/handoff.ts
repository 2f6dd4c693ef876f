/** L4.4 operations: hand work to a peer, and take it in. */
import { giveHandoff } from '../handoff/giving.ts'
import type { Offer } from '../handoff/offering.ts'
import { takeHandoff } from '../handoff/taking.ts'
import { homeOf, locationOf, type Operation } from '../operation.ts'

export const handoffOperations: readonly Operation[] = [
  {
    name: 'handoff.offer',
    input: 'HandoffOffer',
    kind: 'call',
    open: 'lease',
    needs: (_input: Offer, parts) => ({
      location: locationOf(parts, homeOf({}, parts)),
      action: 'send',
      branch: 'memory',
      // it mints a lease for somebody else
      capability: 'C',
    }),
    hears: (input: Offer) => `answer of ${input.agent} at ${input.did}`,
    run: giveHandoff,
  },
  { name: 'handoff.receive', input: 'HandoffReceive', kind: 'session', open: 'peer', run: takeHandoff },
]
