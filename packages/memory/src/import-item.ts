/**
 * What an import gives, whatever it read: entries with ids that are made from where they were found, so that
 * importing the same thing again makes no twins. Long texts become parts, each linked to the one before.
 */
import { LIMITS, sha256, type Memory } from '@csb/core'
import { splitText } from './split.ts'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TAIL_CHARS = 20

/** One entry to create, or one thing that was left out and why. */
export type ImportItem =
  | {
      readonly kind: 'note'
      /** where it was found, `/` between folders */
      readonly path: string
      readonly input: { readonly entry: Memory; readonly extra: Readonly<Record<string, unknown>> }
      /** what was odd about it, for a person to read */
      readonly warnings: readonly string[]
    }
  | { readonly kind: 'skipped'; readonly path: string; readonly reason: string }

/** A text that was found, before it is parted. */
export type Found = {
  readonly path: string
  /** names the text for ever, within and without this import */
  readonly origin: readonly string[]
  /** ms since epoch, 0 to 13 digits */
  readonly timestamp: number
  readonly text: string
  readonly entry: Pick<Memory, 'type' | 'source'> & { readonly tags?: string[] }
  /** members of `metadata` */
  readonly about: Readonly<Record<string, unknown>>
  readonly extra: Readonly<Record<string, unknown>>
  readonly warnings: readonly string[]
  /** ids that a piece of the text links to */
  readonly linksOf?: (piece: string) => readonly string[]
}

/**
 * The id of a text, or of one part of it.
 * @param timestamp ms since epoch
 * @param part 1 for the first or only one
 */
export function importId(timestamp: number, origin: readonly string[], part = 1): string {
  const digest = sha256(JSON.stringify(origin.map((name) => name.normalize('NFC'))))
  const tail = Array.from(digest.subarray(0, TAIL_CHARS), (byte) => ALPHABET[byte & 31]).join('')
  const suffix = part === 1 ? '' : `p${String(part).padStart(4, '0')}`
  return `mem_${String(timestamp).padStart(13, '0')}_${tail}${suffix}`
}

/** The entries of a text: one, or parts of at most LIMITS.memoryContentChars that joined are the text (in NFC). */
export function* itemsOf(found: Found): Generator<ImportItem> {
  const { path, origin, timestamp, entry, about, linksOf = () => [] } = found
  const parts = splitText(found.text.normalize('NFC'), LIMITS.memoryContentChars)
  for (const [at, content] of parts.entries()) {
    const id = importId(timestamp, origin, at + 1)
    const before = at === 0 ? [] : [{ target_id: importId(timestamp, origin, at), relation: 'extends' as const }]
    const related = linksOf(content).filter((target) => target !== id)
    const links = [
      ...before,
      ...[...new Set(related)].map((target) => ({ target_id: target, relation: 'relates_to' as const })),
    ]
    const place = parts.length === 1 ? {} : { part: at + 1, parts: parts.length }
    yield {
      kind: 'note',
      path,
      input: {
        entry: {
          id,
          content,
          timestamp,
          level: 'warm',
          ...entry,
          ...(links.length === 0 ? {} : { links }),
          metadata: { ...about, ...place },
        },
        extra: at === 0 ? found.extra : {},
      },
      warnings: at === 0 ? found.warnings : [],
    }
  }
}
