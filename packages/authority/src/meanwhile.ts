/**
 * What ends a right while the record is held: it takes effect at once, since nobody may go on with a right because a
 * backup was restored, and its entry waits until the record goes on. Nothing gives a right so, but the owner's next key to
 * the owner.
 * @clause L1.3, L1.6
 */
import { key, prefix, type Transaction } from '@csb/store'
import { appendRecord, heldOf, type RecordEntry } from './record.ts'

/** Something that was done while nothing was written. */
export type Meanwhile = Pick<RecordEntry, 'operation' | 'actor' | 'door' | 'run' | 'lease' | 'effect'> & {
  /** ms since epoch */
  readonly at: number
}

const COUNT = key('meta', 'record-meanwhile')

/**
 * Stage the entry of something that ends rights.
 * @param entry one that lists no reads and names no commit
 * @param now ms since epoch
 * @returns its number and leaf hash; undefined where it waits
 * @clause L1.3
 */
export function recordEnding(
  tx: Transaction,
  entry: RecordEntry,
  now: number,
): ReturnType<typeof appendRecord> | undefined {
  if (heldOf(tx) === undefined) return appendRecord(tx, entry, now)
  const { operation, actor, door, run, lease, effect } = entry
  const count = tx.getJson<number>(COUNT) ?? 0
  tx.putJson(COUNT, count + 1)
  tx.putJson(key('meanwhile', count), { operation, actor, door, run, lease, effect, at: now } satisfies Meanwhile)
  return undefined
}

/** What waits, oldest first, for the entry with which the record goes on; it waits no longer. */
export async function takeMeanwhile(tx: Transaction): Promise<readonly Meanwhile[]> {
  const found: Meanwhile[] = []
  for await (const [fullKey] of tx.range({ prefix: prefix('meanwhile') })) {
    const done = tx.getJson<Meanwhile>(fullKey)
    if (done !== undefined) found.push(done)
    tx.del(fullKey)
  }
  tx.del(COUNT)
  return found
}
