/**
 * Pins: objects that the garbage collection leaves alone although no branch leads to them, while an export or a
 * session is open or because evidence points at them. An ingest, whose objects come before the branch that needs
 * them, stops all sweeping of its home.
 */
import { key, prefix, type Transaction, type View } from '@csb/store'
import { hashOf } from './objects.ts'

export type Pin = {
  readonly id: string
  readonly kind: 'export' | 'session' | 'evidence' | 'ingest'
  /** object ids of any kind; all they lead to stays with them */
  readonly oids: readonly string[]
  /** ms since epoch; null: until it is unpinned. A crash forgets nothing, so whatever can crash has an end here */
  readonly until: number | null
}

/** Set a pin, or another one in the place of an older of the same id. @throws NOT_FOUND without the home */
export function pinObjects(tx: Transaction, home: string, pin: Pin): void {
  hashOf(tx, home)
  tx.putJson(key('pin', home, pin.id), pin)
}

export function unpin(tx: Transaction, home: string, id: string): void {
  tx.del(key('pin', home, id))
}

/** Pins that hold at a time. @param now ms since epoch */
export async function pinsOf(view: View, home: string, now: number): Promise<Pin[]> {
  return (await allPins(view, home)).filter(({ until }) => until === null || until > now)
}

/** Take away the pins whose time is over. @returns how many */
export async function expirePins(tx: Transaction, home: string, now: number): Promise<number> {
  const over = (await allPins(tx, home)).filter(({ until }) => until !== null && until <= now)
  for (const { id } of over) unpin(tx, home, id)
  return over.length
}

async function allPins(view: View, home: string): Promise<Pin[]> {
  const pins: Pin[] = []
  for await (const [k] of view.range({ prefix: prefix('pin', home) })) {
    const pin = view.getJson<Pin>(k)
    // undefined: taken away since the range was read
    if (pin !== undefined) pins.push(pin)
  }
  return pins
}
