/**
 * L1 operations: take in grants, narrow them, tell peers of them. The owner's key is never here: documents arrive signed.
 * @clause DEL-003.3.3, DEL-003.3.4, A2A-003
 */
import { LIMITS, fail, type Grant, type Lease } from '@csb/core'
import {
  attenuate,
  childOf,
  countChild,
  grantHash,
  hasGrant,
  holderOf,
  isSameOwner,
  keepGrant,
  listGrants,
  noteDeclared,
  readGrant,
  trusted,
  usedOf,
  verifyChain,
  isRevoked,
  type Attenuation,
  type Rank,
} from '@csb/authority'
import type { Transaction } from '@csb/store'
import { answerStatus } from '../revocation/freshness.ts'
import type { Wish } from '../gate/wishes.ts'
import { checkBrought, checkToken, mintThroughGate } from '../session/minting.ts'
import { readingAll, ruling, type Context, type Operation } from '../operation.ts'
import { knowKey, takeStatement } from './keys.ts'
import { revokeGrant } from './revoking.ts'
import type { MessagePort } from '../peers.ts'
import { showing, spread, tellPeer } from '../revocation/spreading.ts'

type Accepting = {
  readonly grant: unknown
  readonly chain?: readonly unknown[]
  readonly token_hash?: string
  readonly declared?: boolean
}

/** A child as a card shows it. @throws SCOPE_EXCEEDED, INVALID_INPUT: what can not be is not asked for */
function wishOf({ principal: { chain, leaseHash }, clock, key }: Context, asked: Attenuation): Wish {
  const { parent, lease, mostMs, scope, level, maxDepth } = childOf({ chain, asked, now: clock.now() })
  const { max_age_ms } = parent.delegation.revocation
  return {
    operation: 'authority.attenuate',
    to: { name: asked.name.normalize('NFC'), did: null },
    from: null,
    lease,
    grant: { level, scope, audience: [key.did], depth: maxDepth, task: null, max_age_ms },
    work: null,
    notes: [],
    ttl_ms: mostMs,
    expires_at: null,
    token: true,
    parent: leaseHash ?? fail('LEASE_REQUIRED'),
    chain,
    document: null,
  }
}

/** A grant that comes signed, as a card shows it. @throws GRANT_INVALID */
function wishOfChain(chain: readonly unknown[], token: boolean): Wish {
  const [parent, leaf] = [chain.at(-2) ?? chain.at(-1), chain.at(-1)].map((grant) => readGrant(grant))
  if (parent === undefined || leaf === undefined) fail('GRANT_INVALID', { reason: 'chain_shape' })
  const { delegation } = leaf
  const { scope, level, audience, max_depth: depth, task, revocation } = delegation
  return {
    operation: 'authority.accept',
    to: { name: delegation.grantee, did: delegation.grantee_key },
    from: { name: delegation.grantor, did: delegation.grantor_key },
    lease: leaf.authorization_details?.[0] ?? null,
    grant: { level, scope, audience, depth, task, max_age_ms: revocation.max_age_ms },
    work: null,
    notes: [],
    ttl_ms: null,
    expires_at: delegation.expires_at,
    token,
    parent: grantHash(parent),
    chain: chain.slice(0, -1).map((grant) => readGrant(grant)),
    document: grantHash(leaf),
  }
}

/** What the owner's key signed needs no other word of the owner. */
function isOwnerSigned({ store, identity }: Context, chain: readonly unknown[]): boolean {
  const { delegation } = (chain.at(-1) ?? {}) as Partial<Grant>
  return (
    typeof delegation?.grantor_key === 'string' && isSameOwner(store.view(), identity.owner.did, delegation.grantor_key)
  )
}

type Keeping = {
  readonly tokenHash?: string | undefined
  readonly isDeclared?: boolean | undefined
  /** it may be kept for what its holder does with it elsewhere */
  readonly isHeld?: boolean
}

/** Check a chain against the origins this node trusts and keep it. */
async function accept(context: Context, chain: readonly unknown[], { tokenHash, isDeclared, isHeld }: Keeping) {
  const now = context.clock.now()
  const isSigned = isOwnerSigned(context, chain)
  const keep = (tx: Transaction) => {
    const verified = verifyChain({
      chain,
      now,
      isRevoked: (hash, by, grant) => isRevoked(tx, hash, by, grant),
      trustedRoot: (did) => trusted(tx, did) ?? (isHeld === true ? vouched(tx, context, chain) : undefined),
    })
    if (!isSigned) checkBrought(tx, context, verified.chain)
    if (tokenHash !== undefined) {
      checkToken(tx, context, verified.leaf)
      if (!isSigned) countBrought(tx, verified.chain)
    }
    keepGrant(tx, verified, { owner: context.identity.owner.did, node: context.key.did, now }, tokenHash)
    if (isDeclared === true) noteDeclared(tx, verified.leaf.delegation.id)
    return verified
  }
  const told = ({ leaf, leafHash }: ReturnType<typeof keep>) => ({
    grant: leafHash,
    id: leaf.delegation.id,
    grantee: leaf.delegation.grantee_key,
  })
  return isSigned
    ? context.write(keep, told)
    : mintThroughGate(context, () => wishOfChain(chain, tokenHash !== undefined), keep, told)
}

/** A child that is made elsewhere and gets its token here is one of those its parent may have. @throws SCOPE_EXCEEDED */
function countBrought(tx: Transaction, chain: readonly Grant[]): void {
  const [parent, leaf] = [chain.at(-2), chain.at(-1)]
  if (parent === undefined || leaf === undefined || hasGrant(tx, grantHash(leaf))) return
  countChild(tx, grantHash(parent), parent.authorization_details?.[0]?.max_children ?? 0)
}

/**
 * What was passed on to this node or its owner is kept to be used elsewhere, though its origin is a stranger here, where
 * somebody who passed it on is none. Here it counts for nothing: whoever honours a chain trusts its origin.
 */
function vouched(
  tx: Transaction,
  { key, identity }: Context,
  chain: readonly unknown[],
): { ceiling: Rank } | undefined {
  const grants = chain.slice(0, LIMITS.chainLinks) as readonly Partial<Grant>[]
  const holder = grants.at(-1)?.delegation?.grantee_key
  const isOwn = holder === key.did || holder === identity.owner.did
  const isKnown = grants.some((grant) => {
    const by = grant?.delegation?.grantor_key
    return typeof by === 'string' && trusted(tx, by) !== undefined
  })
  return isOwn && isKnown ? { ceiling: 'inform' } : undefined
}

type Brought = {
  readonly chain?: unknown
  readonly revocation?: unknown
  readonly status?: unknown
  readonly key_statement?: unknown
}

export const authorityOperations: readonly Operation[] = [
  {
    name: 'authority.accept',
    input: 'AuthorityAccept',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: Accepting) => {
      const chain = [...(input.chain ?? []), input.grant]
      const { leaf, leafHash } = await accept(context, chain, {
        tokenHash: input.token_hash,
        isDeclared: input.declared,
      })
      return { hash: leafHash, id: leaf.delegation.id }
    },
  },
  {
    name: 'authority.attenuate',
    input: 'AuthorityAttenuate',
    kind: 'write',
    open: 'lease',
    run: async (context: Context, input: { name: string; lease: Partial<Lease>; ttl_ms?: number }) => {
      const { caller, principal, key, clock } = context
      // to hand on what one may do is to change who may do what
      if (principal.lease?.capabilities?.includes('C') !== true) fail('SCOPE_EXCEEDED', { field: 'capabilities' })
      // only who shows the token can sign for its holder
      const token = caller.kind === 'bearer' ? caller.token : fail('UNAUTHENTICATED')
      const signer = principal.did === key.did ? key : holderOf(token)
      const { name, lease, ttl_ms: ttlMs } = input
      const asked = { name, lease, ...(ttlMs === undefined ? {} : { ttlMs }) }
      const made = await mintThroughGate(
        context,
        () => wishOf(context, asked),
        (tx) => attenuate(tx, { chain: principal.chain, asked, self: key.did, now: clock.now() }, signer),
        ({ hash, grant }) => ({ grant: hash, id: grant.delegation.id, parent: principal.leaseHash }),
      )
      const { id, expires_at } = made.grant.delegation
      return { token: made.token, hash: made.hash, id, expires_at, lease: made.grant.authorization_details?.[0] }
    },
  },
  {
    name: 'authority.receive',
    input: 'AuthorityReceive',
    kind: 'session',
    // that something ended is taken in, and is said to whoever asks
    evenHeld: true,
    open: 'peer',
    run: async (context: Context, _input: unknown, port: MessagePort) => {
      const message = (await port.receive()) as Brought | undefined
      if (Array.isArray(message?.chain)) {
        const { leafHash } = await accept(context, message.chain, { isHeld: true })
        await port.send({ accepted: leafHash })
      } else if (message?.status !== undefined) {
        await port.send({ status: await answerStatus(context, message.status) })
      } else if (message?.revocation !== undefined) {
        knowSigner(context, message.revocation)
        const { target, peers } = await revokeGrant(context, message.revocation, [context.principal.did ?? ''])
        context.background(spread(context, target, peers))
        await port.send({ revoked: target })
      } else if (message?.key_statement !== undefined) {
        await knowKey(context, message.key_statement)
        await port.send(await takeStatement(context, message.key_statement))
      } else {
        fail('MALFORMED', { reason: 'a chain, a revocation, a question or a word on a key is needed' })
      }
    },
  },
  {
    name: 'authority.distribute',
    input: 'AuthorityDistribute',
    kind: 'call',
    open: 'lease',
    needs: ruling,
    hears: ({ did }: { did: string }) => `answer of ${did}`,
    run: async (context: Context, input: { did: string; chain?: readonly unknown[]; revocation?: unknown }) => {
      const message = input.chain === undefined ? { revocation: input.revocation } : { chain: input.chain }
      await showing(context, input.did, (input.chain ?? []) as readonly Grant[])
      const answer = await tellPeer(context, input.did, message, context.signal)
      await context.write(
        () => answer,
        () => ({ to: input.did, what: input.chain === undefined ? 'revocation' : 'grant' }),
      )
      return answer
    },
  },
  {
    name: 'authority.grants',
    input: 'AuthorityGrants',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    hears: () => 'names in grants',
    run: async ({ view }: Context) => {
      const grants: readonly Grant[] = await listGrants(view)
      return {
        items: grants.map((grant) => kept(view, grant)),
      }
    },
  },
]

/** A grant as it is listed, with what was used of its lease where that has a budget. */
function kept(view: Context['view'], grant: Grant) {
  const hash = grantHash(grant)
  const isCounted = grant.authorization_details?.[0]?.budget !== undefined
  return { hash, revoked: isRevoked(view, hash), grant, ...(isCounted ? { used: usedOf(view, hash) } : {}) }
}

/** Anybody may bring a revocation; to fill the disk with strangers' ones nobody may. @throws DENIED */
function knowSigner(context: Context, document: unknown): void {
  const { by, target } = ((document as { revocation?: unknown } | null)?.revocation ?? {}) as {
    by?: unknown
    target?: unknown
  }
  const isKnown = typeof by === 'string' && trusted(context.view, by) !== undefined
  const isHeld = typeof target === 'string' && hasGrant(context.view, target)
  if (!isKnown && !isHeld) fail('DENIED', { reason: 'neither the signer nor the grant is known here' })
}
