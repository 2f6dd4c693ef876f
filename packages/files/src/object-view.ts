/**
 * A view that remembers bodies: for walks through history, where each tree stands as a delta on the one before and
 * would be made anew each time.
 */
import { LIMITS } from '@csb/core'
import { prefix, type View } from '@csb/store'
import { CODES, decodeHeader } from './entry.ts'
import { bodyOf, plainEntry } from './stored.ts'

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
  const remember = (k: string, value: Uint8Array): Uint8Array => {
    keptBytes += value.byteLength
    kept.set(k, value)
    for (const [oldest, bytes] of kept) {
      if (keptBytes <= LIMITS.objectCacheBytes) break
      kept.delete(oldest)
      keptBytes -= bytes.byteLength
    }
    return value
  }
  const own: View = {
    get: (k) => {
      if (!k.startsWith(start)) return view.get(k)
      const known = kept.get(k)
      if (known !== undefined) {
        kept.delete(k)
        kept.set(k, known)
        return known
      }
      const oid = k.slice(start.length)
      const value = extra(oid) ?? view.get(k)
      if (value === undefined || NOT_KEPT.has(decodeHeader(value).code)) return value
      const whole = bodyOf(beneath(k, value), home, oid)
      return whole === undefined || whole.body.byteLength > KEPT_BYTES ? value : remember(k, plainEntry(whole))
    },
    getJson: (k) => view.getJson(k),
    has: (k) => (k.startsWith(start) && extra(k.slice(start.length)) !== undefined) || view.has(k),
    range: (options) => view.range(options),
    noteRead: (entry) => view.noteRead(entry),
    get reads() {
      return view.reads
    },
  }
  /** the same view, but for the row that is being made */
  const beneath = (k: string, value: Uint8Array): View => ({
    ...own,
    get: (asked) => (asked === k ? value : own.get(asked)),
  })
  return own
}
