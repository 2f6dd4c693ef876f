/**
 * L1 operations that end grants: by a signed revocation, or because the entry that declared one is gone.
 * @clause L1.3, DEL-003.3.4
 */
import { isNodeError } from '@csb/core'
import { declaredBefore, grantsNamed, isRevoked, noteUntold, revoke, setDeclared, signRevocation } from '@csb/authority'
import { ruling, type Context, type Operation } from '../operation.ts'
import { spread } from '../revocation/spreading.ts'

export const revokingOperations: readonly Operation[] = [
  {
    name: 'authority.revoke',
    input: 'AuthorityRevoke',
    kind: 'write',
    evenHeld: true,
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: { revocation: unknown }) => {
      const { target, peers } = await revokeGrant(context, input, [])
      return { revoked: target, ...(await spread(context, target, peers)) }
    },
  },
  {
    name: 'authority.declared',
    input: 'AuthorityDeclared',
    kind: 'write',
    evenHeld: true,
    open: 'lease',
    needs: ruling,
    run: async (context: Context, { ids }: { ids: readonly string[] }) => {
      const gone = declaredBefore(context.view).filter((id) => !ids.includes(id))
      const hashes = gone
        .flatMap((id) => grantsNamed(context.view, id))
        .filter((hash) => !isRevoked(context.view, hash))
      for (const target of hashes) await endDeclared(context, target)
      // last: what a crash keeps from being ended is ended the next time
      if (!isSameSet(declaredBefore(context.view), ids))
        await context.end(
          (tx) => setDeclared(tx, ids),
          () => ({ declared: ids, gone }),
        )
      return { revoked: hashes }
    },
  },
]

const isSameSet = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).symmetricDifference(new Set(b)).size === 0

/** End a grant whose entry is gone from identity.json: the owner has said so, and this node signs what follows. */
async function endDeclared(context: Context, target: string): Promise<void> {
  const { clock, key: node } = context
  try {
    const document = signRevocation({ target, reason: 'ended', now: clock.now() }, node)
    const { peers } = await revokeGrant(context, document, [])
    context.background(spread(context, target, peers))
  } catch (error) {
    // one that another node answers for is ended there
    if (!isNodeError(error, 'DENIED')) throw error
    context.log('warn', 'a delegation is no longer declared, and is not ended here', { grant: target })
  }
}

/**
 * @param except dids that know already
 * @returns the hash that was revoked, and who is to hear of it
 */
export async function revokeGrant(
  context: Context,
  document: unknown,
  except: readonly string[],
): Promise<{ target: string; peers: readonly string[] }> {
  const { revocation, peers } = await context.end(
    async (tx) => {
      const now = context.clock.now()
      const done = revoke(tx, document, now)
      const { target } = done.revocation
      // a word of somebody who may not end it is kept, and goes nowhere
      return { ...done, peers: isRevoked(tx, target) ? await noteUntold(tx, target, except, now) : [] }
    },
    (done) => ({ revoked: done.revocation.target, by: done.revocation.by, reason: done.revocation.reason }),
  )
  context.runs.bell.ring()
  return { target: revocation.target, peers }
}
