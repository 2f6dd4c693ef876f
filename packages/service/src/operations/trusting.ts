/**
 * Whom this node trusts: the owner says so, and nothing a peer sends does. Saying less may end what runs.
 * @clause DEL-003.3.2, DEL-003.3.3, A2A-002, A2A-010
 */
import type { Clearance } from '@csb/core'
import { endOfKey, listTrust, trust, untrust, type Rank, type Spoken } from '@csb/authority'
import { checkClean } from '../session/minting.ts'
import { EVERYWHERE, homeOf, locationOf, ruling, type Context, type Operation, type Parts } from '../operation.ts'

type Trusting = {
  readonly did: string
  readonly name: string
  readonly ceiling?: Rank
  readonly clearance?: Clearance
  readonly speaks?: Spoken
}

const reading = (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'read' as const,
  ...EVERYWHERE,
})

export const trustingOperations: readonly Operation[] = [
  {
    name: 'authority.trust',
    input: 'AuthorityTrust',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: Trusting) => {
      const entry = await context.write(
        (tx) => {
          checkClean(tx, context)
          return trust(tx, {
            did: input.did,
            name: input.name,
            ceiling: input.ceiling ?? 'request',
            clearance: input.clearance ?? { level: 'public', tags: [] },
            speaks: input.speaks ?? null,
          })
        },
        ({ ceiling, clearance, speaks }) => ({
          trusts: input.did,
          ceiling,
          clearance,
          ...(speaks === undefined || speaks === null ? {} : { speaks: { level: speaks.level, scope: speaks.scope } }),
        }),
      )
      // it may be less than before
      context.runs.bell.ring()
      return entry
    },
  },
  {
    name: 'authority.untrust',
    input: 'AuthorityUntrust',
    kind: 'write',
    evenHeld: true,
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: { did: string }) => {
      await context.end(
        (tx) => untrust(tx, input.did),
        () => ({ trusts_no_more: input.did }),
      )
      context.runs.bell.ring()
      return { did: input.did }
    },
  },
  {
    name: 'authority.trusted',
    input: 'AuthorityTrusted',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: async ({ view }: Context) => {
      const told = (await listTrust(view)).map((entry) => {
        const endedAt = endOfKey(view, entry.did)
        return endedAt === undefined ? entry : { ...entry, ended_at: endedAt }
      })
      return { items: told }
    },
  },
]
