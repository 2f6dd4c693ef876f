/**
 * Passing on what was delegated to this node, and ending it: both are signed by the node's key, which it was made out to.
 * What was delegated to the owner is passed on by the owner's key, at the command line.
 * @clause DEL-001, DEL-003.3.4
 */
import { fail, type Grant, type Lease } from '@csb/core'
import {
  PASSED_MS,
  findGrant,
  grantHash,
  grantsNamed,
  hasGrant,
  isRevoked,
  isSameOwner,
  leaseOf,
  passOn,
  signRevocation,
  storeGrant,
  verifyChain,
  type Passing,
  type Rank,
} from '@csb/authority'
import type { View } from '@csb/store'
import type { Wish } from '../gate/wishes.ts'
import { mintThroughGate } from '../session/minting.ts'
import { ruling, type Context, type Operation, type Parts } from '../operation.ts'
import { spread } from '../revocation/spreading.ts'
import { revokeGrant } from './revoking.ts'

type Asked = {
  readonly grant: string
  readonly to: { readonly name: string; readonly did: string }
  readonly audience?: readonly string[]
  readonly scope?: readonly string[]
  readonly level?: Rank
  readonly ttl_ms?: number
  readonly max_depth?: number
  readonly max_age_ms?: number
  readonly task?: string
  readonly lease?: Partial<Lease>
}

export const passingOperations: readonly Operation[] = [
  {
    name: 'authority.pass',
    input: 'AuthorityPass',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    hears: ({ grant }: Asked, { store, identity }: Parts) => {
      const view = store.view()
      const isOthers = (link: Grant) => !isSameOwner(view, identity.owner.did, link.delegation.grantor_key)
      const named = hasGrant(view, grant) ? [grant] : grantsNamed(view, grant)
      return named.some((hash) => findGrant(view, hash).some(isOthers)) ? 'names in grants' : undefined
    },
    run: async (context: Context, input: Asked) => {
      // before anybody is asked: what can not be made is not worth a card
      const first = made(context, context.store.view(), input)
      const { chain, child } = await mintThroughGate(
        context,
        () => wishOf(first.chain, first.child, input),
        (tx) => {
          const done = made(context, tx, input)
          storeGrant(tx, { chain: done.chain })
          return done
        },
        (done) => ({
          grant: grantHash(done.child),
          id: done.child.delegation.id,
          grantee: done.child.delegation.grantee_key,
          parent: done.child.delegation.parent,
        }),
      )
      return { hash: grantHash(child), id: child.delegation.id, chain }
    },
  },
  {
    name: 'authority.end',
    input: 'AuthorityEnd',
    kind: 'write',
    evenHeld: true,
    open: 'lease',
    needs: ruling,
    run: async (context: Context, { grant }: { grant: string }) => {
      if (!hasGrant(context.view, grant)) fail('NOT_FOUND', { grant })
      const document = signRevocation({ target: grant, reason: 'ended', now: context.clock.now() }, context.key)
      const { target, peers } = await revokeGrant(context, document, [])
      return { revoked: target, document, ...(await spread(context, target, peers)) }
    },
  },
]

type Made = { readonly chain: readonly Grant[]; readonly child: Grant }

/** @throws NOT_FOUND, GRANT_INVALID, SCOPE_EXCEEDED with the field, INVALID_INPUT */
function made({ clock, key }: Context, view: View, asked: Asked): Made {
  const now = clock.now()
  const { chain } = verifyChain({
    chain: findGrant(view, asked.grant),
    now,
    isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
    // who it leads from is for whoever honours it to judge
    trustedRoot: () => ({ ceiling: 'override' }),
  })
  const child = passOn({ chain, asked: passingOf(asked), statusKey: key.did, now }, key)
  return { chain: [...chain, child], child }
}

const passingOf = (asked: Asked): Passing => {
  const { to, audience, scope, level, task, lease, ttl_ms: ttlMs, max_depth: maxDepth, max_age_ms: maxAgeMs } = asked
  const given = { audience, scope, level, task, lease, ttlMs, maxDepth, maxAgeMs }
  return { to, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
}

function wishOf(chain: readonly Grant[], child: Grant, { to, ttl_ms: ttlMs }: Asked): Wish {
  const { scope, level, audience, max_depth: depth, task, revocation } = child.delegation
  return {
    operation: 'authority.pass',
    to: { name: to.name.normalize('NFC'), did: to.did },
    from: null,
    lease: leaseOf(child),
    grant: { level, scope, audience, depth, task, max_age_ms: revocation.max_age_ms },
    work: null,
    notes: [],
    ttl_ms: ttlMs ?? PASSED_MS,
    expires_at: null,
    token: false,
    parent: grantHash(chain.at(-2) ?? child),
    chain: chain.slice(0, -1),
    document: null,
  }
}
