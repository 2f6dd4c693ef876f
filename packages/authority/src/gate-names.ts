/**
 * Names that are made to look like other names. Two fixed rules, and no more is claimed of them: one word with letters
 * of several scripts, and a name that looks like one the owner gave to somebody else's key. Looks are compared by a
 * small table of letters that most typefaces draw alike, in the manner of the skeletons of UTS 39; what is not in
 * the table is not found.
 * @clause L1.7
 */

/** A name as it stands on a card, and the key behind it; null where that is not made yet. */
export type NameOnCard = { readonly name: string; readonly did: string | null }

/** Letters of two of these in one word are how one name is made to look like another. */
const SCRIPTS = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u, /\p{Script=Armenian}/u] as const

/** What looks like each of these letters, capitals by themselves: they look alike where small ones do not. */
const ALIKE: Readonly<Record<string, string>> = {
  a: 'аɑαАΑ',
  b: 'ЬВΒƅ',
  c: 'сϲСϹ',
  d: 'ԁ',
  e: 'еєЕΕ',
  g: 'ɡց',
  h: 'һհНΗ',
  i: 'іιɩІΙ',
  j: 'јЈϳ',
  k: 'кκКΚ',
  l: '1IІΙ|ӏӀɩ',
  m: 'мМΜ',
  n: 'ոηΝ',
  o: '0оοОΟօσ',
  p: 'рρРΡ',
  q: 'ԛգ',
  r: 'гᴦ',
  s: 'ѕЅ5',
  t: 'тτТΤ',
  u: 'υսμ',
  v: 'ѵν',
  w: 'ԝωшѡ',
  x: 'хχХΧ×',
  y: 'уүγУΥ',
  z: 'ᴢΖ2',
}

const LETTER = new Map(
  Object.entries(ALIKE).flatMap(([letter, others]) => Array.from(others, (one) => [one, letter] as const)),
)

/** What the two rules go by, so that a card that was drawn by others does not hold any more. */
export const NAME_RULES = { scripts: SCRIPTS.map(({ source }) => source), alike: ALIKE } as const

/** True where one word of a text has letters of several scripts. */
export const isMixed = (text: string): boolean =>
  text.split(/[^\p{L}\p{M}]+/u).some((word) => SCRIPTS.filter((script) => script.test(word)).length > 1)

/**
 * The names that look like one the owner gave to another key, letter for letter or nearly so.
 * @param known names of the owner's own list
 * @param isSame does one key stand for whom the other stands for?
 */
export function lookalikes(
  names: readonly NameOnCard[],
  known: readonly { readonly name: string; readonly did: string }[],
  isSame: (did: string, other: string) => boolean,
): readonly NameOnCard[] {
  const listed = new Set(known.map(({ did }) => did))
  const looks = Map.groupBy(known, ({ name }) => lookOf(name))
  // a name that stands in the list is the owner's own word
  return names
    .filter(({ did }) => did === null || !listed.has(did))
    .filter(({ name, did }) => looks.get(lookOf(name))?.some((other) => did === null || !isSame(did, other.did)))
}

/** Names that look alike have one look. */
function lookOf(name: string): string {
  // before and after: what stands for a letter by itself may be something else once it is taken apart
  const apart = drawn(name).normalize('NFKD')
  const plain = drawn(apart.replaceAll(/[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, ''))
  const joined = plain.replaceAll('rn', 'm').replaceAll('vv', 'w')
  // a capital I, a small l and a one are one; so are all ways to part words
  const look = joined.replaceAll('i', 'l').replaceAll(/[\p{Z}\p{P}\p{Cc}]+/gu, '')
  return look === '' ? name : look
}

/** Each letter as the one that it looks like. */
const drawn = (text: string): string =>
  Array.from(text, (char) => LETTER.get(char) ?? LETTER.get(char.toLowerCase()) ?? char.toLowerCase()).join('')
