/**
 * The grants this node keeps: each once under its hash, with the ways to find it by id, by holder, by token.
 *
 * What is stored was verified when it came; whoever uses it verifies again, since time passes and trust ends.
 * Of a bearer token only the SHA-256 is kept: what is on the disk opens nothing.
 */
import { digestOf, fail, random, sha256Hex, toBase64Url, type Grant } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { checkJoints, checkSignatures, checkTypes, readChain } from './chain.ts'

/** Marks a token of this system, so that scanners for leaked secrets can find it. */
const TOKEN_PREFIX = 'csb_'

export type StoreGrantInit = {
  /** parsed grants, root first */
  readonly chain: readonly unknown[]
  /** `sha256:…` of a bearer token that acts under the leaf, see {@link tokenHash} */
  readonly tokenHash?: string
}

/**
 * Keep a chain, every link under its own hash. Whether its origin is trusted here is not asked: a node also
 * keeps grants that it uses elsewhere.
 * @returns hash of the leaf
 * @throws GRANT_INVALID where a link does not hold together or is not signed by its grantor
 * @throws INVALID_INPUT where the token hash is none
 */
export function storeGrant(tx: Transaction, { chain, tokenHash: token }: StoreGrantInit): string {
  const links = readChain(chain)
  checkJoints(links)
  checkTypes(links)
  checkSignatures(links)
  for (const { grant, hash } of links) {
    tx.putJson(key('grant', hash), grant)
    addTo(tx, key('grantById', grant.delegation.id), hash)
    // what a node made out to itself for one task is nothing to be found and shown: there is one for every run
    if (!isOwnErrand(grant)) addTo(tx, key('grantByHolder', grant.delegation.grantee_key), hash)
  }
  const leafHash = links.at(-1)?.hash ?? ''
  if (token !== undefined) tx.putJson(tokenKey(token), { grant: leafHash })
  return leafHash
}

/** A new bearer token: 256 random bits. It is shown once and never stored. */
export const createToken = (): string => `${TOKEN_PREFIX}${toBase64Url(random(32))}`

/** Stage the end of a token; its grant stays. */
export const dropToken = (tx: Transaction, token: string): void => tx.del(tokenKey(tokenHash(token)))

/** `sha256:…` of a token, the form in which it is handed to {@link storeGrant}. */
export const tokenHash = (token: string): string => digestOf(token)

/**
 * The chain a bearer token acts under, root first, or undefined. The lookup is by the digest of the whole token,
 * so how long it takes tells nothing about a token that is near a right one.
 */
export function chainOfToken(view: View, token: string): readonly Grant[] | undefined {
  const entry = view.getJson<{ grant: string }>(key('token', sha256Hex(token)))
  return entry === undefined ? undefined : storedChain(view, entry.grant)
}

/**
 * Find a chain by the hash of its leaf or by its delegation id. Ids are names, not keys: where several grants
 * bear one, the newest is meant.
 * @returns grants, root first
 * @throws NOT_FOUND
 */
export function findGrant(view: View, idOrHash: string): readonly Grant[] {
  const hash = view.has(key('grant', idOrHash)) ? idOrHash : listOf(view, key('grantById', idOrHash)).at(-1)
  const chain = hash === undefined ? undefined : storedChain(view, hash)
  return chain ?? fail('NOT_FOUND', { grant: idOrHash })
}

/** Hashes of the grants that bear a delegation id, oldest first. */
export const grantsNamed = (view: View, id: string): readonly string[] => listOf(view, key('grantById', id))

/** True where the grant of that hash is kept here. */
export const hasGrant = (view: View, hash: string): boolean => view.has(key('grant', hash))

/** Chains whose leaf is made out to `did`, oldest first. */
export function chainsOfHolder(view: View, did: string): readonly (readonly Grant[])[] {
  const chains: (readonly Grant[])[] = []
  for (const hash of listOf(view, key('grantByHolder', did))) {
    const chain = storedChain(view, hash)
    if (chain !== undefined) chains.push(chain)
  }
  return chains
}

/** Every grant that is kept, by hash. */
export async function listGrants(view: View): Promise<Grant[]> {
  const grants: Grant[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('grant') })) {
    const grant = view.getJson<Grant>(fullKey)
    if (grant !== undefined) grants.push(grant)
  }
  return grants
}

/** The grant of that hash and those above it, root first; undefined where one of them is not kept. */
export function storedChain(view: View, hash: string): readonly Grant[] | undefined {
  const chain: Grant[] = []
  for (let next: string | null = hash; next !== null;) {
    const grant: Grant | undefined = view.getJson<Grant>(key('grant', next))
    if (grant === undefined) return undefined
    chain.unshift(grant)
    next = grant.delegation.parent
  }
  return chain
}

function tokenKey(token: string): string {
  const match = /^sha256:([0-9a-f]{64})$/.exec(token)
  return key('token', match?.[1] ?? fail('INVALID_INPUT', { field: 'token_hash' }))
}

const listOf = (view: View, at: string): readonly string[] => view.getJson<string[]>(at) ?? []

/** The newest stands last; one that comes again moves there. */
function addTo(tx: Transaction, at: string, hash: string): void {
  tx.putJson(at, [...listOf(tx, at).filter((other) => other !== hash), hash])
}

const isOwnErrand = ({ delegation }: Grant): boolean =>
  delegation.task !== null && delegation.grantor_key === delegation.grantee_key
