/**
 * What was read under a lease that was handed out and stands in no entry of the record yet. Its holder asks over and over,
 * for as long as the lease lasts, so what it read lies on the disk until the next entry under that lease lists it.
 *
 * It is written behind the answer, in the order of the writes: whatever rests on it and is written here comes after it. A
 * crash may lose what was read in the instant before.
 * @clause L1.5
 */
import { formatLabel, parseLabel, random, salt, toHex } from '@csb/core'
import { key, prefix, tail, type ReadEntry, type Transaction, type View } from '@csb/store'
import { payloadText, saltedRow } from './record-row.ts'
import type { Mentioning } from './record.ts'

type Kept = { readonly home: string; readonly path: string; readonly oid: string; readonly label: string }

/**
 * Keep reads until an entry lists them.
 * @param lease hash of its grant
 * @param now ms since epoch
 */
export function keepReads(tx: Transaction, lease: string, reads: readonly ReadEntry[], now: number): void {
  const kept = reads.map(({ label, ...read }): Kept => ({ ...read, label: formatLabel(label) }))
  const at = `${String(now).padStart(16, '0')}-${toHex(random(6))}`
  // with a salt, as a payload has one: a scan of the disk for a row that was erased finds that row and nothing else
  tx.put(key('unlisted', lease, at), saltedRow(salt(), JSON.stringify(kept)))
}

/** All that is kept for a lease; it is kept no longer. Oldest first, and some may be there twice. */
export async function takeReads(tx: Transaction, lease: string): Promise<readonly ReadEntry[]> {
  const found: ReadEntry[] = []
  for await (const [fullKey, row] of tx.range({ prefix: prefix('unlisted', lease) })) {
    found.push(...readsOf(row))
    tx.del(fullKey)
  }
  return found
}

/** Leases whose holder read what stands in no entry yet. */
export async function unlistedLeases(view: View): Promise<readonly string[]> {
  const found = new Set<string>()
  for await (const [fullKey] of view.range({ prefix: prefix('unlisted') })) {
    const [lease] = tail(fullKey, 'unlisted').split('/')
    if (lease !== undefined) found.add(lease)
  }
  return [...found]
}

/** Rows that name one of the words, as for the payloads of the record. */
export async function unlistedThatMention(view: View, words: readonly string[]): Promise<Omit<Mentioning, 'seq'>[]> {
  const found: Omit<Mentioning, 'seq'>[] = []
  for await (const [fullKey, bytes] of view.range({ prefix: prefix('unlisted') })) {
    const text = payloadText(bytes) ?? ''
    const named = words.filter((word) => text.includes(word))
    if (named.length > 0) found.push({ key: fullKey, bytes, words: named })
  }
  return found
}

function readsOf(row: Uint8Array): ReadEntry[] {
  const kept = JSON.parse(payloadText(row) ?? '[]') as readonly Kept[]
  return kept.map(({ label, ...read }) => ({ ...read, label: parseLabel(label) }))
}
