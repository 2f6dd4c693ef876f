/**
 * A view that remembers bodies: for walks through history, where each tree stands as a delta on the one before and
 * would be made anew each time.
 */
import { LIMITS } from '@csb/core'
import { prefix, type View } from '@csb/store'
import { CODES, decodeHeader } from './entry.ts'
import { deltaApplied, parseEntry, plainEntry, wholeIn, type Body } from './stored.ts'

/** A larger body is made anew. */
const KEPT_BYTES = 1024 * 1024
/** Walks read commits and trees again and again, blobs hardly ever. */
const NOT_KEPT: ReadonlySet<number> = new Set([CODES.blob, CODES.pieces, CODES.plain])

/**
 * @param extra entries that are not in the store, by object id; they come first
 * @returns a view in which objects of `home` are kept in memory up to {@link LIMITS.objectCacheBytes}
 */
export function createObjectView(
  view: View,
  home: string,
  extra: (oid: string) => Uint8Array | undefined = () => undefined,
): View {
  const start = prefix('object', home)
  const kept = new Map<string, Uint8Array>()
  let keptBytes = 0
  const remember = (k: string, value: Uint8Array): void => {
    if (kept.has(k)) return
    keptBytes += value.byteLength
    kept.set(k, value)
    for (const [oldest, bytes] of kept) {
      if (keptBytes <= LIMITS.objectCacheBytes) break
      kept.delete(oldest)
      keptBytes -= bytes.byteLength
    }
  }
  const stored = (k: string): Uint8Array | undefined => {
    const known = kept.get(k)
    if (known === undefined) return extra(k.slice(start.length)) ?? view.get(k)
    // the one that was used last goes last
    kept.delete(k)
    kept.set(k, known)
    return known
  }
  /** The object made from the chain of deltas it stands on, each step remembered. */
  const made = (k: string, value: Uint8Array): Uint8Array => {
    const oidBytes = (k.length - start.length) / 2
    const chain = [{ k, value }]
    for (let base = baseOf(value, oidBytes); base !== undefined; base = baseOf(chain.at(-1)?.value, oidBytes)) {
      const below = stored(start + base)
      // a base that is missing or a chain without an end is the reader's to find out
      if (below === undefined || chain.length > LIMITS.packChain) return value
      chain.push({ k: start + base, value: below })
    }
    let above = chain.pop()
    let body = above === undefined ? undefined : wholeIn(view, home, above.k.slice(start.length), above.value)
    if (above !== undefined && body !== undefined && body.kind !== 'blob' && body.body.byteLength <= KEPT_BYTES)
      remember(above.k, plainEntry(body))
    for (above = chain.pop(); body !== undefined && above !== undefined; above = chain.pop()) {
      const next: Body = { kind: body.kind, body: deltaApplied(body.body, above.value, above.k.slice(start.length)) }
      if (next.body.byteLength > KEPT_BYTES) return value
      body = next
      remember(above.k, plainEntry(body))
    }
    return kept.get(k) ?? value
  }
  return {
    get: (k) => {
      if (!k.startsWith(start)) return view.get(k)
      const value = stored(k)
      if (value === undefined || NOT_KEPT.has(decodeHeader(value).code)) return value
      return decodeHeader(value).code === CODES.delta ? made(k, value) : value
    },
    getJson: (k) => view.getJson(k),
    has: (k) => (k.startsWith(start) && extra(k.slice(start.length)) !== undefined) || view.has(k),
    missing: (keys) =>
      view.missing(keys.filter((k) => !k.startsWith(start) || extra(k.slice(start.length)) === undefined)),
    range: (options) => view.range(options),
    pages: (options) => view.pages(options),
    noteRead: (entry) => view.noteRead(entry),
    get reads() {
      return view.reads
    },
  }
}

function baseOf(value: Uint8Array | undefined, oidBytes: number): string | undefined {
  return value === undefined ? undefined : parseEntry(value, oidBytes).base
}
