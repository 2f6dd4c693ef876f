/**
 * Part a text that is longer than an entry may be. Parts are slices, so that joined they are the text exactly;
 * a part ends with a paragraph where it can, else with a line, a sentence, a word.
 */

/** A part is at least this share of what fits, so that one early paragraph end does not make crumbs. */
const LEAST_SHARE = 0.25

/** From the best place to end a part to the worst; each matches up to and with the end. */
const ENDS = [/\n[ \t]*\r?\n/g, /\n/g, /[.!?]\s|[。！？]/g, /\s/g] as const

/**
 * @param text well-formed
 * @param maxChars of one part, in code points
 * @returns no empty part; of empty text none
 */
export function splitText(text: string, maxChars: number): string[] {
  const parts: string[] = []
  for (let at = 0; at < text.length;) {
    const window = firstChars(text, at, maxChars)
    const length = at + window.length === text.length ? window.length : endWithin(window)
    parts.push(text.slice(at, at + length))
    at += length
  }
  return parts
}

/** The next `count` code points, without ever looking at all of a long text. */
function firstChars(text: string, at: number, count: number): string {
  return Array.from(text.slice(at, at + 2 * count))
    .slice(0, count)
    .join('')
}

function endWithin(window: string): number {
  const least = window.length * LEAST_SHARE
  for (const end of ENDS) {
    const last = [...window.matchAll(end)].at(-1)
    const length = last === undefined ? 0 : last.index + last[0].length
    if (length >= least) return length
  }
  return window.length
}
