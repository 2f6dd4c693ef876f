/**
 * Authority on a message: where it stands in an A2A JSON-RPC body, what of the body it binds, how it is signed.
 *
 * The holder of a grant signs one message to one node. The digest is taken of the body as it came, before any
 * library maps it to objects of its own and drops members it does not know.
 * @clause DEL-002, A2A-031
 */
import {
  EXTENSIONS,
  canonicalize,
  digestOf,
  random,
  signDocument,
  toBase64Url,
  type Authority,
  type Grant,
  type JsonRpcRequest,
  type KeyPair,
  type Status,
} from '@csb/core'
import { grantHash } from './grant.ts'
import type { Rank } from './rank.ts'
import { refuse } from './reasons.ts'

/** What of an authority its holder signs: the chain is bound by the hash of its leaf, statements by their own signers. */
export type AuthorityBody = Omit<Authority, 'signature' | 'chain' | 'status'>

type Members = Readonly<Record<string, unknown>>

export type AuthorityInit = {
  /** verified grants, root first; the leaf is made out to the signing key */
  readonly chain: readonly Grant[]
  /** see {@link payloadDigest} */
  readonly payload: string
  readonly level: Rank
  readonly scope: readonly string[]
  /** did of the node that is to honour it */
  readonly audience: string
  /** name of the origin, for people; default: as the first grant has it */
  readonly delegatedBy?: string
  /** ms since epoch */
  readonly now: number
  /** ms; kept within the life of the grant */
  readonly ttlMs: number
  /** what the status keys of the chain said last, for a receiver that can not ask them */
  readonly status?: readonly Status[]
}

/**
 * Sign the authority of one message.
 * @throws GRANT_INVALID with `holder_mismatch` where the key is not the grantee's, `chain_shape` for no chain
 * @clause DEL-002.2.1
 */
export function signAuthority(init: AuthorityInit, key: KeyPair): Authority {
  const leaf = init.chain.at(-1) ?? refuse('chain_shape')
  if (leaf.delegation.grantee_key !== key.did) refuse('holder_mismatch', { field: 'grantee_key' })
  const body: AuthorityBody = {
    delegated_by: init.delegatedBy ?? init.chain[0]?.delegation.grantor ?? leaf.delegation.grantor,
    scope: [...init.scope],
    level: init.level,
    delegation_id: leaf.delegation.id,
    issued_at: init.now,
    expires_at: Math.min(init.now + init.ttlMs, leaf.delegation.expires_at ?? Number.MAX_SAFE_INTEGER),
    delegation_hash: grantHash(leaf),
    holder: key.did,
    aud: init.audience,
    nonce: toBase64Url(random(16)),
    payload: init.payload,
  }
  const chain = [...init.chain] as unknown as Authority['chain']
  const said = (init.status ?? []) as unknown as NonNullable<Authority['status']>
  return {
    ...body,
    chain,
    ...(said.length === 0 ? {} : { status: [...said] }),
    signature: signDocument('authority', body, key),
  }
}

/**
 * SHA-256 of what a message asks: its method and its parameters without any authority.
 * An empty `metadata` counts as none, so that putting authority in does not change it.
 * @param body as it came, not yet mapped by any library
 * @returns `sha256:` and 64 hex digits
 * @clause DEL-002.2.1
 */
export function payloadDigest({ method, params }: Pick<JsonRpcRequest, 'method' | 'params'>): string {
  return digestOf(canonicalize({ method, params: params === undefined ? undefined : withoutAuthority(params) }))
}

/** Every copy of authority that a body carries, whatever it is. */
export function authorityCopies({ params }: Pick<JsonRpcRequest, 'params'>): readonly unknown[] {
  const message = membersOf(params?.['message'])
  return [
    params?.['authority'],
    membersOf(params?.['metadata'])?.[EXTENSIONS.authority],
    membersOf(message?.['metadata'])?.[EXTENSIONS.authority],
  ].filter((copy) => copy !== undefined)
}

/** The same body with the authority in its message's metadata. */
export function attachAuthority(body: JsonRpcRequest, authority: Authority): JsonRpcRequest {
  const message = membersOf(body.params?.['message']) ?? {}
  const metadata = { ...membersOf(message['metadata']), [EXTENSIONS.authority]: authority }
  return { ...body, params: { ...body.params, message: { ...message, metadata } } }
}

/** What the holder signed of a complete authority. */
export function signedPart(authority: Authority): AuthorityBody {
  const { signature: _, chain: _chain, status: _status, ...body } = authority
  return body
}

function withoutAuthority(all: Members): Members {
  const { authority: _, ...params } = all
  const message = membersOf(params['message'])
  return {
    ...params,
    metadata: withoutKey(params['metadata']),
    ...(message === undefined ? {} : { message: { ...message, metadata: withoutKey(message['metadata']) } }),
  }
}

/** Undefined members have no place in the canonical form. */
function withoutKey(metadata: unknown): unknown {
  const members = membersOf(metadata)
  if (members === undefined) return metadata
  const { [EXTENSIONS.authority]: _, ...rest } = members
  return Object.keys(rest).length === 0 ? undefined : rest
}

function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined
}
