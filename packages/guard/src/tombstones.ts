/**
 * Tombstones: one signed line per forgotten note. It beats every put, on every node, and is never removed;
 * time plays no part in it.
 * @clause L4.3
 */
import {
  dominates,
  fail,
  parseLabel,
  signDocument,
  validate,
  verifyDocument,
  type Clearance,
  type KeyPair,
  type Label,
  type Tombstone,
} from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'

/** True where the note was forgotten here. @clause L4.3 */
export const isForgotten = (view: View, home: string, id: string): boolean => view.has(key('tombstone', home, id))

/** The tombstone of a note, for rooms that decide by its label themselves; undefined where it was not forgotten here. */
export const getTombstone = (view: View, home: string, id: string): Tombstone | undefined =>
  view.getJson<Tombstone>(key('tombstone', home, id))

/** True where a reader with `clearance` may see what bears `label`, spelled or read. @clause L4.2 */
export const isVisible = (clearance: Clearance, label: Label | string): boolean =>
  dominates(clearance, typeof label === 'string' ? parseLabel(label) : label)

/**
 * The tombstones of a home that a reader with this clearance may know of, in id order.
 * @throws OBJECT_DAMAGED
 * @clause L4.2 L4.3
 */
export async function* listTombstones(view: View, home: string, clearance: Clearance): AsyncGenerator<Tombstone> {
  for await (const [row] of view.range({ prefix: prefix('tombstone', home) })) {
    const tombstone = view.getJson<Tombstone>(key('tombstone', home, tail(row, 'tombstone', home)))
    if (tombstone !== undefined && isVisible(clearance, tombstone.label)) yield tombstone
  }
}

/** @throws INVALID_INPUT where the body does not fit the schema */
export function signTombstone(body: Omit<Tombstone, 'signature'>, signer: KeyPair): Tombstone {
  return validate('Tombstone', { ...body, signature: signDocument('tombstone', body, signer) })
}

/**
 * Check a tombstone from elsewhere: its form, its home, its signature.
 * @throws MALFORMED, DENIED with the reason
 */
export function checkTombstone(value: unknown, home: string): Tombstone {
  const tombstone = validate('Tombstone', value, 'MALFORMED')
  const { signature, ...body } = tombstone
  if (tombstone.home !== home) fail('DENIED', { reason: 'a tombstone of another home', home: tombstone.home })
  if (!verifyDocument('tombstone', body, signature, tombstone.by))
    fail('DENIED', { reason: 'signature of a tombstone', id: tombstone.id })
  return tombstone
}

/** Stage a tombstone. */
export function putTombstone(tx: Transaction, tombstone: Tombstone): void {
  tx.putJson(key('tombstone', tombstone.home, tombstone.id), tombstone)
}
