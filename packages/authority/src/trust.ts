/**
 * The local trust list: whose grants this node honours, under which name, up to which level.
 *
 * The owner fills it; nothing a peer sends does. The name is the owner's own for that key and the only one
 * that is ever shown as the source of authority.
 * @clause DEL-003.3.2, A2A-002, A2A-010
 */
import { fail, isLevel, publicKeyFromDid, type Clearance } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { LEVEL_RANKS, isAtMost, type Rank } from './rank.ts'

/** One origin or peer that the owner listed. */
export type TrustEntry = {
  readonly did: string
  /** the owner's name for it */
  readonly name: string
  /** highest level its grants have here */
  readonly ceiling: Rank
  /** what it may see at most, whatever a grant says; null sets no bound */
  readonly clearance: Clearance | null
  /** what it may say in somebody's name, as a person told the owner; absent or null: nothing */
  readonly speaks?: Spoken | null
  /** did of the key that it followed, where it is listed for that alone: it ends where a recovery says that it did not */
  readonly after?: string
}

/** A delegation by word of mouth. */
export type Spoken = {
  /** in whose name, as the owner calls them */
  readonly name: string
  readonly scope: readonly string[]
  readonly level: Rank
  /** ms since epoch; null until it is taken back */
  readonly until: number | null
}

export type TrustInput = Omit<TrustEntry, 'clearance'> & { readonly clearance?: Clearance | null }

/**
 * List an origin, or change what was said of it.
 * @returns the entry as stored
 * @throws INVALID_INPUT where `did` is no Ed25519 did:key or a value is none of the closed lists
 */
export function trust(
  tx: Transaction,
  { did, name, ceiling, clearance = null, speaks = null, after = trusted(tx, did)?.after }: TrustInput,
): TrustEntry {
  if (publicKeyFromDid(did) === undefined) fail('INVALID_INPUT', { field: 'did' })
  if (!LEVEL_RANKS.includes(ceiling)) fail('INVALID_INPUT', { field: 'ceiling' })
  if (clearance !== null && !isLevel(clearance.level)) fail('INVALID_INPUT', { field: 'clearance' })
  if (speaks !== null && !isAtMost(speaks.level, ceiling)) fail('INVALID_INPUT', { field: 'speaks.level' })
  const entry: TrustEntry = {
    did,
    name,
    ceiling,
    clearance,
    ...(speaks === null ? {} : { speaks }),
    ...(after === undefined ? {} : { after }),
  }
  tx.putJson(key('trust', did), entry)
  return entry
}

/** @returns true where it was listed */
export function untrust(tx: Transaction, did: string): boolean {
  const wasListed = tx.has(key('trust', did))
  tx.del(key('trust', did))
  return wasListed
}

/** What the owner said of that did, or undefined. */
export const trusted = (view: View, did: string): TrustEntry | undefined => view.getJson<TrustEntry>(key('trust', did))

/** Everyone who is listed, by did. */
export async function listTrust(view: View): Promise<TrustEntry[]> {
  const entries: TrustEntry[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('trust') })) {
    const entry = trusted(view, tail(fullKey, 'trust'))
    if (entry !== undefined) entries.push(entry)
  }
  return entries
}
