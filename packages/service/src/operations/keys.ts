/**
 * What owners say of their keys: another one follows, or it is in other hands. Statements arrive signed, from the
 * owner's command line, or from a peer where the key is one this node trusts.
 * @clause L1.3
 */
import { fail, type KeyStatement } from '@csb/core'
import { isKeyOf, isRevoked, listKeyStatements, takeKeyStatement, trusted, type verifyChain } from '@csb/authority'
import { key, type Transaction } from '@csb/store'
import { EVERYTHING, homeOf, locationOf, ruling, type Context, type Operation, type Parts } from '../operation.ts'

const NODE_GRANT = key('meta', 'node-grant')

const reading = (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'read' as const,
  label: EVERYTHING,
})

export const keyOperations: readonly Operation[] = [
  {
    name: 'keys.list',
    input: 'KeysList',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: async ({ view }: Context) => ({ items: await listKeyStatements(view) }),
  },
  {
    name: 'keys.state',
    input: 'KeysState',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: (context: Context, { statement }: { statement: unknown }) => takeStatement(context, statement),
  },
  {
    name: 'keys.tell',
    input: 'KeysTell',
    kind: 'call',
    open: 'lease',
    needs: ruling,
    run: async (context: Context, { did, statement }: { did: string; statement: unknown }) => {
      const port = await context.peers.session(did, 'delegation', {}, { signal: context.signal })
      try {
        await port.send({ key_statement: statement })
        const answer = (await port.receive()) ?? fail('PEER_UNREACHABLE', { did })
        await port.close()
        return await context.write(
          () => answer,
          () => ({ to: did, what: 'key statement' }),
        )
      } catch (error) {
        port.abort(error as Error)
        throw error
      }
    },
  },
]

/** @returns which key it was about, and what was said */
export async function takeStatement(context: Context, value: unknown): Promise<{ key: string; said: string }> {
  const taken = await context.write((tx) => takeKeyStatement(tx, value, context.clock.now()), toldOf)
  context.runs.bell.ring()
  return toldOf(taken)
}

/** A node whose own grant is void, as after its owner's key was stolen, lives by the next one its owner gives it. */
export function replaceNodeGrant(
  tx: Transaction,
  { key: own, identity }: Pick<Context, 'key' | 'identity'>,
  { leaf, leafHash, lease, rootDid }: ReturnType<typeof verifyChain>,
): void {
  const before = tx.getJson<string>(NODE_GRANT)
  const isNext = leaf.delegation.grantee_key === own.did && lease !== null && isKeyOf(tx, identity.owner.did, rootDid)
  if (isNext && before !== undefined && isRevoked(tx, before)) tx.putJson(NODE_GRANT, leafHash)
}

/** Strangers' keys are no concern of this node. @throws DENIED */
export function knowKey({ view, identity }: Context, value: unknown): void {
  const { keychange, compromise } = (value ?? {}) as { keychange?: { old?: unknown }; compromise?: { key?: unknown } }
  const did = keychange?.old ?? compromise?.key
  const isKnown =
    typeof did === 'string' && (trusted(view, did) !== undefined || isKeyOf(view, identity.owner.did, did))
  if (!isKnown) fail('DENIED', { reason: 'that key is not known here' })
}

function toldOf(statement: KeyStatement) {
  return 'keychange' in statement
    ? { key: statement.keychange.old, said: 'changed', to: statement.keychange.new }
    : { key: statement.compromise.key, said: 'compromised', all_before: statement.compromise.all_before }
}
