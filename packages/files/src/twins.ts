/**
 * Names in one folder that some system takes for one and the same: letters of either case, other spellings in Unicode,
 * code points that nobody sees. Where they lie side by side, a clone there loses one of the files.
 *
 * One rule for every way into a tree: a push brings whole folders and may bring no twins, what is written, merged or
 * restored is looked at where it gives a folder a name it did not have. Twins that are there already stand in no way.
 * @clause L0.5
 */
import { fail } from '@csb/core'

/** Names that are spelled in the one way that nothing folds. */
const UNFOLDED = /^[a-z0-9._ -]*$/
/** Code points that no system shows, and some leave out when they compare names. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}/gu
const REASON = 'two names that some systems take for one'

type Named = { readonly name: string }

/** What two names have in common that some system takes for one. */
export const foldedName = (name: string): string =>
  UNFOLDED.test(name) ? name : name.replace(UNSEEN, '').normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')

/**
 * Refuse a folder that holds twins.
 * @param above its path with a slash behind it; empty for the root
 * @throws INVALID_INPUT with both names
 */
export function checkTwins(entries: readonly Named[], above: string): void {
  if (entries.every(({ name }) => UNFOLDED.test(name))) return
  const names = new Map<string, string>()
  for (const { name } of entries) {
    const folded = foldedName(name)
    const twin = names.get(folded)
    if (twin !== undefined) fail('INVALID_INPUT', { reason: REASON, path: above + name, twin })
    names.set(folded, name)
  }
}

/**
 * Refuse names that are new in a folder and become twins there. Who writes them need not see the others: which one it
 * is is not told.
 * @param entries the folder as it will be
 * @param fresh those of its names that it did not have
 * @throws INVALID_INPUT with the path
 */
export function checkFresh(entries: Iterable<Named>, fresh: readonly string[], above: string): void {
  if (fresh.length === 0) return
  const wanted = new Map(fresh.map((name) => [foldedName(name), name]))
  for (const { name } of entries) {
    const path = wanted.get(foldedName(name)) ?? name
    if (path !== name) fail('INVALID_INPUT', { reason: REASON, path: above + path })
  }
}
