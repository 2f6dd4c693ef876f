/**
 * To whom this node showed which grant, and who of them has not heard yet that it ended: so that a revocation follows
 * a grant wherever it went from here.
 * @clause L1.3, DEL-003.3.4
 */
import type { Grant, Revocation } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { grantHash } from './grant.ts'
import { isKeyOf } from './key-line.ts'

/** Old rows that are looked at for every new one, so that the table does not grow with every handoff. */
const SWEPT = 4

/** Until when it is of interest; null for a grant that lives until it is revoked. */
type Shown = { readonly at: number; readonly until: number | null }

/**
 * Remember that a peer is shown a chain.
 * @param did of the peer
 * @param now ms since epoch
 */
export async function noteShown(tx: Transaction, did: string, chain: readonly Grant[], now: number): Promise<void> {
  for (const grant of chain) {
    const own = key('shown', grantHash(grant), did)
    if (tx.has(own)) continue
    for await (const [fullKey] of tx.range({ prefix: prefix('shown'), after: own, limit: SWEPT })) {
      const until = tx.getJson<Shown>(fullKey)?.until ?? null
      if (until !== null && until < now) tx.del(fullKey)
    }
    tx.putJson(own, { at: now, until: grant.delegation.expires_at } satisfies Shown)
  }
}

/** Was every grant of the chain shown to that peer before? */
export const wasShown = (view: View, did: string, chain: readonly Grant[]): boolean =>
  chain.every((grant) => view.has(key('shown', grantHash(grant), did)))

/**
 * The grant of that hash is revoked: everyone it was shown to is to hear of it.
 * @param except dids that know already
 * @returns dids of the peers that are to hear
 */
export async function noteUntold(
  tx: Transaction,
  hash: string,
  except: readonly string[],
  now: number,
): Promise<string[]> {
  const dids: string[] = []
  for await (const [fullKey] of tx.range({ prefix: prefix('shown', hash) })) {
    const did = tail(fullKey, 'shown', hash)
    if (except.includes(did)) continue
    dids.push(did)
    tx.putJson(key('untold', did, hash), { since: now })
  }
  return dids
}

/**
 * Something was said of a key: everyone who was shown a grant of it, or of one that it followed, is to hear, and `also`.
 * @param did of the key
 * @param also dids of more peers
 * @param except dids that know already
 * @returns dids of the peers that are to hear
 */
export async function noteUntoldKey(
  tx: Transaction,
  did: string,
  { also, except, now }: { also: readonly string[]; except: readonly string[]; now: number },
): Promise<string[]> {
  const dids = new Set(also)
  for await (const [fullKey] of tx.range({ prefix: prefix('shown') })) {
    const [hash = '', ...rest] = tail(fullKey, 'shown').split('/')
    const grantor = tx.getJson<Grant>(key('grant', hash))?.delegation.grantor_key
    if (grantor !== undefined && isKeyOf(tx, grantor, did)) dids.add(rest.join('/'))
  }
  const told = [...dids].filter((one) => !except.includes(one))
  for (const one of told) tx.putJson(key('untold', one, did), { since: now })
  return told
}

/** A peer is shown a chain for the first time: what was said of the keys that it begins with goes before it. */
export function noteUntoldBefore(tx: Transaction, peer: string, dids: readonly string[], now: number): void {
  for (const did of dids) tx.putJson(key('untold', peer, did), { since: now })
}

/** Hashes of revoked grants, and dids of keys of which something was said, that a peer has not heard of. */
export async function untoldTo(view: View, did: string): Promise<string[]> {
  const hashes: string[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('untold', did) })) hashes.push(tail(fullKey, 'untold', did))
  return hashes
}

/** Peers that have not heard of something, by did. */
export async function untoldPeers(view: View): Promise<string[]> {
  const dids = new Set<string>()
  for await (const [fullKey] of view.range({ prefix: prefix('untold') }))
    dids.add(tail(fullKey, 'untold').split('/')[0] ?? '')
  return [...dids]
}

/** It has heard of that grant or key. */
export const markTold = (tx: Transaction, did: string, what: string): void => tx.del(key('untold', did, what))

/** The signed words that ended a grant, without what a status key said of it. */
export async function revocationsOf(view: View, hash: string): Promise<Revocation[]> {
  const words: Revocation[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('revoked', hash) })) {
    const { revocation } = view.getJson<Partial<Revocation>>(fullKey) ?? {}
    if (revocation !== undefined) words.push({ revocation })
  }
  return words
}
