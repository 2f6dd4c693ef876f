/**
 * Standing witness for the records of peers. A peer is heard when the owner of this node trusts it, or when it shows
 * a chain of grants from somebody the owner trusts, as the other nodes of the same owner can.
 * @clause L1.6
 */
import { fail, isNodeError, validate } from '@csb/core'
import { addCheckpoint, chainsOfHolder, isRevoked, trusted, verifyChain } from '@csb/authority'
import { answerWitness } from '../witness/comparing.ts'
import type { Context, Operation } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

/** A session is one checkpoint and what has to be said about it. */
const MOST_MESSAGES = 8

export const witnessOperations: readonly Operation[] = [
  {
    name: 'witness.serve',
    input: 'WitnessServe',
    kind: 'session',
    // what others write is theirs
    evenHeld: true,
    open: 'peer',
    run: async (context: Context, { chain }: { chain?: readonly unknown[] }, port: MessagePort) => {
      const did = context.principal.did ?? fail('UNAUTHENTICATED')
      const isKnown = isHeard(context, did, chain)
      for (let count = 0; count < MOST_MESSAGES; count++) {
        const message = await port.receive()
        if (message === undefined) break
        await port.send(await answerTo(context, { did, isKnown }, message))
      }
      await port.close()
    },
  },
]

/** A proof of this node's own record says nothing of what is in it: whoever knows two sizes is given it. */
async function answerTo(
  context: Context,
  { did, isKnown }: { readonly did: string; readonly isKnown: boolean },
  message: unknown,
) {
  const asked = isKnown ? validate('WitnessMessage', message, 'MALFORMED') : question(message)
  if ('add_checkpoint' in asked) return judge(context, did, asked)
  if ('compare' in asked || 'prove' in asked) return answerWitness(context, asked)
  return fail('MALFORMED', { reason: 'a checkpoint or a question is needed' })
}

/** What a stranger may say. @throws DENIED */
function question(message: unknown) {
  if (typeof message !== 'object' || message === null || !('prove' in message))
    fail('DENIED', { reason: 'this node stands no witness for that log' })
  return validate('WitnessMessage', message, 'MALFORMED')
}

/** The answer is given when what it says is on the disk. What contradicts goes into this node's own record too. */
async function judge(context: Context, did: string, asked: { readonly add_checkpoint: string }) {
  const { store, key, clock, log } = context
  const { answer, found } = await store.transact((tx) =>
    addCheckpoint(tx, { body: asked.add_checkpoint, from: did, now: clock.now() }, key),
  )
  if (found !== null) {
    log('error', 'a log contradicts itself', { origin: found.origin, kind: found.kind })
    await context
      .write(
        () => found,
        ({ origin, kind }) => ({ contradiction: kind, origin, log: did }),
      )
      .catch((error: unknown) => {
        // one whose own record is held still stands witness
        if (!isNodeError(error, 'RECORD_HELD')) throw error
      })
  }
  return answer
}

function isHeard({ store, key, clock }: Context, did: string, chain: readonly unknown[] | undefined): boolean {
  const view = store.view()
  if (trusted(view, did) !== undefined || chainsOfHolder(view, did).length > 0) return true
  if (chain === undefined) return false
  try {
    const { leaf } = verifyChain({
      chain,
      now: clock.now(),
      audience: key.did,
      trustedRoot: (root) => trusted(view, root),
      isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
    })
    return leaf.delegation.grantee_key === did
  } catch (error) {
    if (isNodeError(error)) return false
    throw error
  }
}
