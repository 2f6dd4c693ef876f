/**
 * What owners say of their keys: another one follows, it is in other hands, which one recovers it, or that one did.
 * Statements arrive signed, from the owner's command line, or from a peer where the key is one this node trusts.
 *
 * A session that may rule brings them too, tainted or not: what counts is signed by the owner, whoever carries it adds
 * nothing, a peer brings the same without any right, and what ends a stolen key must not wait. What it can not do is choose
 * among old documents ({@link keepGrant}), or say which token acts under a grant (checkToken).
 * @clause L1.3
 */
import { fail, isNodeError, type KeyStatement } from '@csb/core'
import {
  currentKey,
  isSameOwner,
  isTrustedOwner,
  keepGrant,
  listKeyStatements,
  readOwnerGrant,
  recoveryOf,
  stepOf,
  subjectOf,
  takeKeyStatements,
  type Hearing,
  grantHash,
} from '@csb/authority'
import { listHomes } from '@csb/files'
import type { Transaction, View } from '@csb/store'
import { nodeChain } from '../runs/lease.ts'
import { checkToken } from '../session/minting.ts'
import { readingAll, ruling, type Context, type Operation } from '../operation.ts'
import { spreadKeys } from '../revocation/spreading.ts'

type Granting = { readonly grant: unknown; readonly token_hash?: string }
type Stating = {
  readonly statement: unknown
  /** taken in after it, in their order */
  readonly also?: readonly unknown[]
  readonly grants?: readonly Granting[]
}

/** Hash of the grant by which this node acts; null where it has none. */
function grantHashOf(view: View): string | null {
  const [leaf] = nodeChain(view).slice(-1)
  return leaf === undefined ? null : grantHash(leaf)
}

export const keyOperations: readonly Operation[] = [
  {
    name: 'keys.list',
    input: 'KeysList',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    run: async ({ view, identity }: Context) => ({
      items: await listKeyStatements(view),
      recovery: recoveryOf(view, identity.owner.did) ?? null,
      // what this node may do here hangs under it
      node_grant: grantHashOf(view),
    }),
  },
  {
    name: 'keys.state',
    input: 'KeysState',
    kind: 'write',
    evenHeld: true,
    open: 'lease',
    needs: ruling,
    run: async (context: Context, stating: Stating) => {
      const near = (await context.peers.list()).filter(({ connected }) => connected).map(({ did }) => did)
      const { told, grants, peers } = await state(context, stating, { also: near, except: [] })
      return { ...told, ...(grants.length === 0 ? {} : { grants }), ...(await spreadKeys(context, peers)) }
    },
  },
  {
    name: 'keys.tell',
    input: 'KeysTell',
    kind: 'call',
    open: 'lease',
    needs: ruling,
    hears: ({ did }: { did: string }) => `answer of ${did}`,
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

/** A peer says something of a key that this node knows. @returns which key it was about, and what was said */
export async function takeStatement(context: Context, statement: unknown) {
  const from = context.principal.did ?? ''
  const { told, peers } = await state(context, { statement }, { also: [], except: [from] }).catch((error: unknown) => {
    // said again it is no truer, and it is worth a record, since two hold that key; a write that failed is no word on it
    const isSaid = isNodeError(error, 'CONFLICT') && ('key' in error.details || 'digest' in error.details)
    if (isSaid) fail('DENIED', error.details, error)
    throw error
  })
  context.background(spreadKeys(context, peers))
  return told
}

/**
 * Take in what an owner says of a key, and what the next one grants with it, in one batch: nobody is without a right in
 * between, and a crash leaves all of it or nothing.
 * @throws GRANT_INVALID, CONFLICT, DENIED
 */
async function state(context: Context, { statement, also = [], grants = [] }: Stating, hearing: Hearing) {
  const now = context.clock.now()
  // what the next key grants with it is the owner's own right, and none that there was not before
  const done = await context.end(
    async (tx) => {
      const { statements, ended, peers } = await takeKeyStatements(tx, [statement, ...also], { ...hearing, now })
      const [about = ''] = statements.map(subjectOf)
      // a recovery leads from the key before elsewhere than to the one that counted until now
      const { did } = context.identity.owner
      const owner = currentKey(tx, isSameOwner(context.store.view(), did, about) ? about : did)
      const hashes = grants.map((one) => takeGrant(tx, context, owner, one))
      const [first, ...others] = statements.map(toldOf)
      const told = { ...first, ...(others.length === 0 ? {} : { also: others }), ended }
      return { told, grants: hashes, peers }
    },
    ({ told, grants: kept }) => ({ ...told, ...(kept.length === 0 ? {} : { grants: kept }) }),
  )
  context.runs.bell.ring()
  return done
}

/** What the owner's key of now grants to this node, or to its own command line. @throws GRANT_INVALID, DENIED */
function takeGrant(tx: Transaction, context: Context, owner: string, { grant, token_hash: token }: Granting): string {
  const own = { owner, node: context.key.did, now: context.clock.now() }
  const verified = readOwnerGrant(tx, grant, own)
  if (token !== undefined) checkToken(tx, context, verified.leaf)
  keepGrant(tx, verified, own, token)
  return verified.leafHash
}

/**
 * Strangers' keys are no concern of this node: those of its owner, of whom it trusts by one of the keys that are named, and
 * of homes kept here are.
 * @throws DENIED
 */
export async function knowKey({ view, identity }: Context, value: unknown): Promise<void> {
  const [body] = Object.values((value ?? {}) as Readonly<Record<string, Named | null>>)
  const named = [body?.old, body?.new, body?.key, body?.by].filter((did) => typeof did === 'string')
  const owners = [identity.owner.did, ...(await listHomes(view)).map(({ owner }) => owner)]
  const isKnown = named.some(
    (did) => isTrustedOwner(view, did) || owners.some((owner) => isSameOwner(view, owner, did)),
  )
  if (!isKnown) fail('DENIED', { reason: 'that key is not known here' })
}

type Named = { readonly old?: unknown; readonly new?: unknown; readonly key?: unknown; readonly by?: unknown }

function toldOf(statement: KeyStatement) {
  const about = subjectOf(statement)
  if ('compromise' in statement) return { key: about, said: 'compromised', all_before: statement.compromise.all_before }
  if ('recovery' in statement) return { key: about, said: 'recovery', digest: statement.recovery.digest }
  const said = 'recovered' in statement ? 'recovered' : 'changed'
  return { key: about, said, to: stepOf(statement)?.new }
}
