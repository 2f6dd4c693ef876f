/**
 * What identity.json says of delegations (DEL-003 3.3, first way). An entry is a pointer to a signed grant and counts
 * only with it; an entry that is deleted ends its grant.
 * @clause DEL-003.3.3, DEL-003.3.4
 */
import { key, type Transaction, type View } from '@csb/store'

const DECLARED = key('meta', 'declared')

/** Delegation ids that stood in the file when it was looked at last. */
export const declaredBefore = (view: View): readonly string[] => view.getJson<string[]>(DECLARED) ?? []

/** One more stands there. */
export function noteDeclared(tx: Transaction, id: string): void {
  const before = declaredBefore(tx)
  if (!before.includes(id)) tx.putJson(DECLARED, [...before, id])
}

/** These stand there now, and no others. */
export const setDeclared = (tx: Transaction, ids: readonly string[]): void => tx.putJson(DECLARED, [...ids])
