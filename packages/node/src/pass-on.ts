/**
 * Passing on what was received: by the node, where it was made out to the node, and by the owner's key, where it was made
 * out to the owner.
 * @clause DEL-001
 */
import { fail, type Grant, type Lease } from '@csb/core'
import { grantHash, passOn, type Passing } from '@csb/authority'
import { chosen, identityIn, type Desk, type Kept } from './authorise.ts'

export type Passed = {
  readonly id: string
  readonly hash: string
  /** root first; the last is the one that was made */
  readonly chain: readonly Grant[]
}

/**
 * @param idOrHash of what was received
 * @throws NOT_FOUND, SCOPE_EXCEEDED with the field in which it would be wider, GRANT_INVALID `holder_mismatch` where it
 *   was made out to somebody else
 */
export async function passOnFrom(desk: Desk, idOrHash: string, asked: Passing): Promise<Passed> {
  const { items } = await desk.client.call<{ items: readonly Kept[] }>('GET', '/v1/grants')
  const { hash: parent, grant } = chosen(items, idOrHash)
  const { did } = await identityIn(desk.directory)
  const { grantee_key: holder } = grant.delegation
  if (holder === did) return desk.client.call<Passed>('POST', '/v1/grants/pass', { grant: parent, ...bodyOf(asked) })
  if (holder !== desk.owner.did) fail('GRANT_INVALID', { reason: 'holder_mismatch', grant: parent })
  const chain = chainOf(items, parent)
  const child = passOn({ chain, asked, statusKey: did, now: desk.now }, desk.owner)
  await desk.client.call('POST', '/v1/grants', { grant: child, chain })
  return { id: child.delegation.id, hash: grantHash(child), chain: [...chain, child] }
}

/** A grant that is kept and those above it, root first. @throws NOT_FOUND where one of them is not kept */
function chainOf(items: readonly Kept[], leaf: string): readonly Grant[] {
  const chain: Grant[] = []
  for (let next: string | null = leaf; next !== null;) {
    const found: Grant = items.find(({ hash }) => hash === next)?.grant ?? fail('NOT_FOUND', { grant: next })
    chain.unshift(found)
    next = found.delegation.parent
  }
  return chain
}

function bodyOf({ to, audience, scope, level, task, lease, ttlMs, maxDepth, maxAgeMs }: Passing) {
  const given = { audience, scope, level, task, lease, ttl_ms: ttlMs, max_depth: maxDepth, max_age_ms: maxAgeMs }
  const members = Object.entries(given).filter(([, value]) => value !== undefined)
  return { to, ...Object.fromEntries(members) } as { to: Passing['to']; lease?: Partial<Lease> }
}
