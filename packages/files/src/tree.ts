/**
 * Git's encoding of a tree: `mode name\0` and the raw object id, entries in git's own order.
 *
 * Strict both ways: what decodes encodes to the same bytes.
 */
import { fail, fromHex, fromUtf8, toHex, utf8 } from '@csb/core'
import { problemOfName } from './paths.ts'

/** How git spells the kinds of entry: file, executable file, symbolic link, folder. */
export const MODES = ['100644', '100755', '120000', '40000'] as const
export const FILE = '100644'
export const FOLDER = '40000'

export type Mode = (typeof MODES)[number]
/** One line of a folder. `oid` is in lower-case hex. */
export type TreeEntry = { readonly mode: Mode; readonly name: string; readonly oid: string }

const SPACE = 0x20
const NUL = 0x00

/**
 * @param entries in any order, names unique
 * @param oidBytes 20 or 32
 * @throws INVALID_INPUT for a name no path may hold, two equal names or an id of the wrong length
 */
export function encodeTree(entries: readonly TreeEntry[], oidBytes: number): Uint8Array {
  const seen = new Set<string>()
  const parts = entries.map((entry) => {
    const reason = seen.has(entry.name) ? 'two entries of one name' : problemOfName(entry.name)
    if (reason !== undefined) fail('INVALID_INPUT', { reason, name: entry.name.toWellFormed() })
    seen.add(entry.name)
    const oid = fromHex(entry.oid)
    if (oid?.byteLength !== oidBytes)
      return fail('INVALID_INPUT', { reason: 'not an object id of this home', oid: entry.oid })
    return {
      order: orderOf(entry.mode, entry.name),
      bytes: Buffer.concat([utf8(`${entry.mode} ${entry.name}\0`), oid]),
    }
  })
  parts.sort((a, b) => Buffer.compare(a.order, b.order))
  return Buffer.concat(parts.map((part) => part.bytes))
}

/**
 * @param oidBytes 20 or 32
 * @throws MALFORMED where git would not have written these bytes, or a name is one no path may hold
 */
export function decodeTree(bytes: Uint8Array, oidBytes: number): TreeEntry[] {
  const entries: TreeEntry[] = []
  const seen = new Set<string>()
  let last: Uint8Array | undefined
  for (let at = 0; at < bytes.byteLength;) {
    const space = bytes.indexOf(SPACE, at)
    const nul = bytes.indexOf(NUL, space)
    const end = nul + 1 + oidBytes
    if (space < 0 || nul < 0 || end > bytes.byteLength) return fail('MALFORMED', { reason: 'tree entry cut short' })
    const mode = MODES.find((known) => known === fromUtf8(bytes.subarray(at, space)))
    const name = fromUtf8(bytes.subarray(space + 1, nul))
    if (mode === undefined || name === undefined) return fail('MALFORMED', { reason: 'mode or name of a tree entry' })
    const order = orderOf(mode, name)
    const reason =
      problemOfName(name) ??
      (seen.has(name) ? 'two entries of one name' : undefined) ??
      (last !== undefined && Buffer.compare(last, order) >= 0 ? 'tree entries out of order' : undefined)
    if (reason !== undefined) fail('MALFORMED', { reason })
    entries.push({ mode, name, oid: toHex(bytes.subarray(nul + 1, end)) })
    seen.add(name)
    last = order
    at = end
  }
  return entries
}

/** Git sorts by bytes, and a folder as if its name ended in a slash. */
const orderOf = (mode: Mode, name: string): Uint8Array => utf8(mode === FOLDER ? `${name}/` : name)
