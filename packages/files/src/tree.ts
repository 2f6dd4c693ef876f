/**
 * Git's encoding of a tree: `mode name\0` and the raw object id, entries in git's own order.
 *
 * Strict both ways: what decodes encodes to the same bytes.
 */
import { fail, fromUtf8 } from '@csb/core'
import { problemOfName } from './paths.ts'

/** How git spells the kinds of entry: file, executable file, symbolic link, folder, submodule, and an early file. */
export const MODES = ['100644', '100755', '120000', '40000', '160000', '100664'] as const
export const FILE = '100644'
export const EXECUTABLE = '100755'
export const FOLDER = '40000'
export const LINK = '120000'
/** A commit of another repository: its object is not here and is never looked for. */
export const SUBMODULE = '160000'
/** What early versions of git wrote for a file; it counts as one and stays spelled as it came. */
const EARLY_FILE = '100664'

export type Mode = (typeof MODES)[number]
/** One line of a folder. `oid` is in lower-case hex. */
export type TreeEntry = { readonly mode: Mode; readonly name: string; readonly oid: string }

/** The mode that counts where two are compared. */
export const modeOf = (mode: Mode): Mode => (mode === EARLY_FILE ? FILE : mode)

/** True where the entry's id is that of a blob of this home. */
export const isBlob = ({ mode }: Pick<TreeEntry, 'mode'>): boolean => mode !== FOLDER && mode !== SUBMODULE

/** The blob of an entry; null where it has none. */
export const blobOf = (entry: Pick<TreeEntry, 'mode' | 'oid'>): string | null => (isBlob(entry) ? entry.oid : null)

/** What git shows where the content of a submodule would be. */
export const submoduleText = (oid: string): string => `Subproject commit ${oid}\n`

/** The same for a person to read. */
export const submoduleWords = (oid: string): string => `submodule at ${oid}\n`

const SPACE = 0x20
const NUL = 0x00
const HEX = /^[0-9a-f]+$/
const SURROGATE = /[\ud800-\udfff]/

/**
 * @param entries in any order, names unique
 * @param oidBytes 20 or 32
 * @throws INVALID_INPUT for a name no path may hold, two equal names or an id of the wrong length
 */
export function encodeTree(entries: readonly TreeEntry[], oidBytes: number): Uint8Array {
  const seen = new Set<string>()
  let size = 0
  for (const { mode, name, oid } of entries) {
    const reason = seen.has(name) ? 'two entries of one name' : problemOfName(name)
    if (reason !== undefined) fail('INVALID_INPUT', { reason, name: name.toWellFormed() })
    if (oid.length !== oidBytes * 2 || !HEX.test(oid))
      fail('INVALID_INPUT', { reason: 'not an object id of this home', oid })
    seen.add(name)
    size += mode.length + Buffer.byteLength(name) + 2 + oidBytes
  }
  const bytes = Buffer.alloc(size)
  let at = 0
  for (const { mode, name, oid } of entries.toSorted(inGitOrder)) {
    at += bytes.write(`${mode} ${name}\0`, at)
    at += bytes.write(oid, at, 'hex')
  }
  return bytes
}

/**
 * @param oidBytes 20 or 32
 * @throws MALFORMED where git would not have written these bytes, or a name is one no path may hold
 */
export function decodeTree(bytes: Uint8Array, oidBytes: number): TreeEntry[] {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: TreeEntry[] = []
  const seen = new Set<string>()
  for (let at = 0; at < source.byteLength;) {
    const space = source.indexOf(SPACE, at)
    const nul = source.indexOf(NUL, space)
    const end = nul + 1 + oidBytes
    if (space < 0 || nul < 0 || end > source.byteLength) return fail('MALFORMED', { reason: 'tree entry cut short' })
    const spelled = source.toString('latin1', at, space)
    const mode = MODES.find((known) => known === spelled)
    const name = nameOf(source.subarray(space + 1, nul))
    if (mode === undefined || name === undefined) return fail('MALFORMED', { reason: 'mode or name of a tree entry' })
    const entry = { mode, name, oid: source.toString('hex', nul + 1, end) }
    const last = entries.at(-1)
    const reason =
      problemOfName(name) ??
      (seen.has(name) ? 'two entries of one name' : undefined) ??
      (last !== undefined && inGitOrder(last, entry) >= 0 ? 'tree entries out of order' : undefined)
    if (reason !== undefined) fail('MALFORMED', { reason })
    entries.push(entry)
    seen.add(name)
    at = end
  }
  return entries
}

/**
 * Entries of certain names, without making the others: for walks through trees that hash to their ids.
 * @param wanted by name, as {@link spelledOf} has it
 * @throws MALFORMED where the bytes are no tree
 */
export function* entriesNamed<T>(
  bytes: Buffer,
  oidBytes: number,
  wanted: ReadonlyMap<string, T>,
): Generator<Pick<TreeEntry, 'mode' | 'oid'> & { readonly as: T }> {
  let left = wanted.size
  for (let at = 0; at < bytes.byteLength && left > 0;) {
    const space = bytes.indexOf(SPACE, at)
    const nul = bytes.indexOf(NUL, space)
    if (space < 0 || nul < 0) fail('MALFORMED', { reason: 'tree entry cut short' })
    const as = wanted.get(bytes.toString('latin1', space + 1, nul))
    if (as !== undefined) {
      const spelled = bytes.toString('latin1', at, space)
      const mode = MODES.find((known) => known === spelled) ?? fail('MALFORMED', { reason: 'mode of a tree entry' })
      yield { mode, oid: bytes.toString('hex', nul + 1, nul + 1 + oidBytes), as }
      left--
    }
    at = nul + 1 + oidBytes
  }
}

/** A name by its bytes, one character each. */
export const spelledOf = (name: string): string => Buffer.from(name).toString('latin1')

/** A replacement character may stand for bytes that are no UTF-8, or for itself: only then look closer. */
function nameOf(bytes: Buffer): string | undefined {
  const name = bytes.toString()
  return name.includes('\ufffd') ? fromUtf8(bytes) : name
}

/** Git sorts by bytes, and a folder as if its name ended in a slash. */
function inGitOrder(a: TreeEntry, b: TreeEntry): number {
  const [x, y] = [orderOf(a), orderOf(b)]
  // UTF-16 and UTF-8 sort alike but for surrogates
  if (SURROGATE.test(x) || SURROGATE.test(y)) return Buffer.compare(Buffer.from(x), Buffer.from(y))
  if (x === y) return 0
  return x < y ? -1 : 1
}

const orderOf = ({ mode, name }: TreeEntry): string => (mode === FOLDER ? `${name}/` : name)
