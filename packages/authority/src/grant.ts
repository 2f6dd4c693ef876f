/**
 * One grant: draft it, sign it, name it by its hash, read a foreign one, check what its type demands.
 *
 * A grant holds a DEL-003 delegation (rank) and perhaps one lease (reach); one signature covers both. Display
 * names are kept for people and never compared: only keys count. How grants join into a chain is chain.ts.
 * @clause DEL-001, DEL-003.3.1, A2A-030, A2A-032
 */
import {
  LIMITS,
  checkSchema,
  checkStrict,
  digestOf,
  documentBytes,
  isNodeError,
  isWeakKey,
  newId,
  publicKeyFromDid,
  random,
  signDocument,
  toBase64Url,
  verifyDocumentBytes,
  type Delegation,
  type Grant,
  type KeyPair,
  type Lease,
} from '@csb/core'
import { misspelledField } from './lease.ts'
import { isAtMost, type Rank } from './rank.ts'
import { refuse } from './reasons.ts'

/** Longest life of a grant that can not be revoked. */
const IRREVOCABLE_MS = 60 * 60 * 1000

/** A grant before it is signed. */
export type GrantBody = {
  readonly authorization_details?: [Lease]
  readonly delegation: Omit<Delegation, 'signature'>
}

/** A person, agent or node: a name for people and the key that counts. */
export type Party = { readonly name: string; readonly did: string }

export type GrantInit = {
  readonly type: Delegation['type']
  readonly from: Party
  readonly to: Party
  /** did of each node that may honour it, or `['*']` for any node at level request or below */
  readonly audience: readonly string[]
  readonly scope: readonly string[]
  readonly level: Rank
  /** ms since epoch */
  readonly now: number
  /** ms of life; null lives until revoked, for `global` only */
  readonly ttlMs: number | null
  /** how many further grants may hang below it, 0 to 4; default 0 */
  readonly maxDepth?: number
  /** the grant it is derived from; its times are kept to */
  readonly parent?: Grant
  /** for `single`: a task id, or `sha256:…` of the one message */
  readonly task?: string
  readonly lease?: Lease
  /** did of the node that says whether the grant is revoked: one that is always on; default the grantor itself */
  readonly statusKey?: string
  /** ms: how old that word may be, see {@link LIMITS}; default the parent's, or a minute */
  readonly maxAgeMs?: number
  /** default: a new one */
  readonly id?: string
}

/**
 * Fill in the members of a grant. Nothing is checked here; {@link signGrant} does.
 */
export function draftGrant(init: GrantInit): GrantBody {
  const { parent, now, ttlMs } = init
  const notBefore = Math.max(now, parent?.delegation.not_before ?? 0)
  const latest = parent?.delegation.expires_at ?? Number.MAX_SAFE_INTEGER
  return {
    ...(init.lease === undefined ? {} : { authorization_details: [init.lease] }),
    delegation: {
      v: 1,
      id: init.id ?? newId('delegation', now),
      type: init.type,
      grantor: init.from.name,
      grantor_key: init.from.did,
      grantee: init.to.name,
      grantee_key: init.to.did,
      audience: [...init.audience],
      granted_at: notBefore,
      not_before: notBefore,
      expires_at: ttlMs === null ? null : Math.min(notBefore + ttlMs, latest),
      scope: [...init.scope],
      level: init.level,
      revocable: true,
      revocation: {
        max_age_ms: init.maxAgeMs ?? parent?.delegation.revocation.max_age_ms ?? LIMITS.revocationMaxAgeMs,
        status_key: init.statusKey ?? init.from.did,
      },
      max_depth: init.maxDepth ?? 0,
      parent: parent === undefined ? null : grantHash(parent),
      task: init.task ?? null,
      nonce: toBase64Url(random(16)),
    },
  }
}

/**
 * Sign a grant as its grantor.
 * @throws GRANT_INVALID `{reason, field}` where the key is not the grantor's or the grant breaks its type's rules
 * @clause DEL-003.3.1
 */
export function signGrant(body: GrantBody, key: KeyPair): Grant {
  if (body.delegation.grantor_key !== key.did) refuse('holder_mismatch', { field: 'grantor_key' })
  const grant: Grant = { ...body, delegation: { ...body.delegation, signature: signDocument('grant', body, key) } }
  const read = readGrant(grant)
  checkType(read)
  return read
}

/** `sha256:` name of a grant, over what is signed: a re-spelled signature does not change it. */
export const grantHash = (grant: Grant): string => digestOf(signedBytes(grant))

/** What the grantor of a grant signs. */
export const signedBytes = (grant: Grant): Uint8Array => documentBytes('grant', unsigned(grant))

/** The lease of a grant; null where it only lends a voice. */
export const leaseOf = (grant: Grant): Lease | null => grant.authorization_details?.[0] ?? null

/**
 * Read a grant from a parsed value: bounded, closed schema, integers and NFC strings only, canonical paths.
 * @param bytes it takes at most, where that is known
 * @throws GRANT_INVALID with `malformed`, `unknown_version` or, for the document's example `sha256:`, `bad_signature`
 */
export function readGrant(value: unknown, bytes: number = sizeOf(value)): Grant {
  const { v, signature } = ((value as { delegation?: unknown } | null)?.delegation ?? {}) as Record<string, unknown>
  if (typeof v === 'number' && v !== 1) refuse('unknown_version', { field: 'delegation.v' })
  // a digest in the place of a signature, as in the document's example, proves nothing about who wrote it
  if (typeof signature === 'string' && !signature.startsWith('ed25519:'))
    refuse('bad_signature', { field: 'signature' })
  checkDocument('Grant', value, LIMITS.grantBytes, bytes)
  const grant = value as Grant
  const lease = leaseOf(grant)
  const field = lease === null ? undefined : misspelledField(lease)
  if (field !== undefined) refuse('malformed', { field: `authorization_details.${field}` })
  return grant
}

/**
 * What DEL-001's table demands of each type of delegation.
 * @throws GRANT_INVALID with `type_rule` and the field
 * @clause DEL-001
 */
export function checkType(grant: Grant): void {
  const { delegation } = grant
  const broken = brokenRule(delegation)
  if (broken !== undefined) refuse('type_rule', { field: broken })
}

/** @throws GRANT_INVALID with `weak_key` or `bad_signature` */
export function checkGrantSignature(grant: Grant, signed: Uint8Array = signedBytes(grant)): void {
  checkSigner(grant.delegation.grantor_key)
  const { grantor_key: did, signature } = grant.delegation
  if (!verifyDocumentBytes(signed, signature, did)) refuse('bad_signature')
}

/** @throws GRANT_INVALID with `malformed` where it is no Ed25519 did:key, `weak_key` where it is of small order */
export function checkSigner(did: string): void {
  const publicKey = publicKeyFromDid(did) ?? refuse('malformed', { field: 'did' })
  if (isWeakKey(publicKey)) refuse('weak_key')
}

/**
 * The demands on every document that carries authority: schema, strict values, size.
 * @throws GRANT_INVALID with `malformed`
 */
export function checkDocument(
  schema: 'Grant' | 'Authority' | 'Revocation' | 'Status' | 'Approval' | 'KeyStatement',
  value: unknown,
  maxBytes: number,
  bytes: number = sizeOf(value),
): void {
  try {
    if (bytes > maxBytes) refuse('malformed', { field: 'size' })
    checkSchema(schema, value)
    checkStrict(value)
  } catch (error) {
    if (!isNodeError(error) || error.code === 'GRANT_INVALID') throw error
    const [first] = (error.details['errors'] ?? []) as { path: string }[]
    refuse('malformed', first === undefined ? {} : { field: first.path.slice(1).replaceAll('/', '.') })
  }
}

/** Bytes a parsed document takes, before anything else is looked at. */
export const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '')

function brokenRule(delegation: Delegation): string | undefined {
  return brokenAudience(delegation) ?? brokenTime(delegation) ?? brokenReach(delegation)
}

function brokenAudience({
  audience,
  type,
  level,
  grantor_key,
  grantee_key,
  revocation,
}: Delegation): string | undefined {
  const isAnyone = audience.length === 1 && audience[0] === '*'
  if (!isAnyone && !audience.every((did) => publicKeyFromDid(did) !== undefined)) return 'audience'
  if (isAnyone && (type === 'single' || !isAtMost(level, 'request'))) return 'audience'
  if (type === 'single' && audience.length !== 1) return 'audience'
  if (publicKeyFromDid(grantor_key) === undefined) return 'grantor_key'
  if (publicKeyFromDid(grantee_key) === undefined) return 'grantee_key'
  return publicKeyFromDid(revocation.status_key) === undefined ? 'revocation.status_key' : undefined
}

function brokenTime({ type, granted_at, not_before, expires_at, revocable }: Delegation): string | undefined {
  if (not_before < granted_at) return 'not_before'
  if (expires_at === null) {
    if (type !== 'global') return 'expires_at'
    return revocable ? undefined : 'revocable'
  }
  if (expires_at <= not_before) return 'expires_at'
  const lifeMs = expires_at - granted_at
  if (type === 'scoped' && lifeMs > LIMITS.scopedGrantMs) return 'expires_at'
  if (type === 'single' && lifeMs > LIMITS.singleGrantMs) return 'expires_at'
  const mayBeFinal = type === 'single' || (type === 'scoped' && lifeMs <= IRREVOCABLE_MS)
  return revocable || mayBeFinal ? undefined : 'revocable'
}

function brokenReach({ type, scope, level, max_depth, parent, task }: Delegation): string | undefined {
  const isEverything = scope.length === 1 && scope[0] === '*'
  if (type === 'global' ? !isEverything : scope.includes('*')) return 'scope'
  // override is a root's own word: it is lent to nobody further
  if (level === 'override' && (type !== 'global' || parent !== null)) return 'level'
  if (level === 'override' && max_depth !== 0) return 'max_depth'
  if (type === 'global' && parent !== null) return 'type'
  if (type === 'single' && max_depth !== 0) return 'max_depth'
  return (type === 'single') === (task !== null) ? undefined : 'task'
}

/** A member that is undefined is in no canonical text; leaving it out by name would cost as much as the text. */
const unsigned = (grant: Grant) => ({ ...grant, delegation: { ...grant.delegation, signature: undefined } })
