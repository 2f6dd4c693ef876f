/**
 * Files of one snapshot by their places in its trees: a folder is a list of steps through its entries in git's order,
 * and a folder that was read as a whole is one step, as a file is. Two thousand names fit in as many bytes, and none of
 * them is spelled.
 *
 * Bytes of a folder: how many steps, then each step. A step is (entries passed over) * 4 + kind, and by kind: 0 one
 * entry, whole; 1 several in a row, whole, then how many more than two; 2 a folder in part, then its own bytes. Numbers
 * are LEB128. Only trees on the way to what was read are looked at, writing and reading.
 * @clause L1.5
 */
import { fail, fromBase64Url, toBase64Url } from '@csb/core'
import { readTree } from '@csb/files'
import type { View } from '@csb/store'

/** A file of a snapshot. */
export type Placed = { readonly path: string; readonly oid: string }

type TreeEntry = ReturnType<typeof readTree>[number]

/** What is looked for below a folder. */
type Wanted<T> = { readonly files: Map<string, T[]>; readonly folders: Map<string, Wanted<T>> }
type Step = { readonly at: number; readonly below: readonly number[] | null }
type Walk<T> = { readonly bytes: readonly number[]; readonly isWhole: boolean; readonly found: T[] }

const ONE = 0
const ROW = 1
const PART = 2
const FOLDER = '40000'
const SUBMODULE = '160000'

/**
 * Find files in a snapshot.
 * @param tree object id of its root tree
 * @returns their places, base64url, and those that are in it with the same bytes under the same path
 * @throws NOT_FOUND, OBJECT_DAMAGED where a tree on the way is
 */
export function placesOf<T extends Placed>(
  view: View,
  home: string,
  tree: string,
  files: readonly T[],
): { readonly set: string; readonly found: ReadonlySet<T> } {
  const { bytes, found } = walk(view, home, tree, wantedOf(files))
  return { set: toBase64Url(Uint8Array.from(bytes)), found: new Set(found) }
}

/**
 * The files at those places, in the order of the tree.
 * @throws MALFORMED where the places do not fit the tree; NOT_FOUND, OBJECT_DAMAGED where a tree on the way is
 */
export function filesAt(view: View, home: string, tree: string, set: string): Placed[] {
  const bytes = fromBase64Url(set) ?? fail('MALFORMED', { reason: 'places' })
  const found: Placed[] = []
  const reader = { bytes, next: 0 }
  readFolder(view, home, tree, '', reader, found)
  if (reader.next !== bytes.byteLength) fail('MALFORMED', { reason: 'places' })
  return found
}

function wantedOf<T extends Placed>(files: readonly T[]): Wanted<T> {
  const root: Wanted<T> = { files: new Map(), folders: new Map() }
  for (const file of files) {
    const names = file.path.split('/')
    const name = names.pop() ?? ''
    let folder = root
    for (const part of names) {
      const below = folder.folders.get(part) ?? { files: new Map(), folders: new Map() }
      folder.folders.set(part, below)
      folder = below
    }
    folder.files.set(name, [...(folder.files.get(name) ?? []), file])
  }
  return root
}

function walk<T extends Placed>(view: View, home: string, tree: string, wanted: Wanted<T>): Walk<T> {
  const entries = readTree(view, home, tree)
  const steps: Step[] = []
  const found: T[] = []
  entries.forEach((entry, at) => {
    const folder = entry.mode === FOLDER ? wanted.folders.get(entry.name) : undefined
    const below = folder === undefined ? undefined : walk(view, home, entry.oid, folder)
    const file = isFile(entry) ? wanted.files.get(entry.name)?.find(({ oid }) => oid === entry.oid) : undefined
    if (file !== undefined) found.push(file)
    found.push(...(below?.found ?? []))
    if (file !== undefined || below?.isWhole === true) steps.push({ at, below: null })
    else if (below !== undefined && below.found.length > 0) steps.push({ at, below: below.bytes })
  })
  const isWhole = entries.length > 0 && steps.length === entries.length && steps.every(({ below }) => below === null)
  return { bytes: bytesOf(steps), isWhole, found }
}

function bytesOf(steps: readonly Step[]): number[] {
  const bytes: number[] = []
  let count = 0
  let next = 0
  for (let i = 0; i < steps.length; count++) {
    const { at, below } = steps[i] ?? fail('INTERNAL')
    const row = below === null ? rowFrom(steps, i) : 1
    const whole = row > 1 ? ROW : ONE
    writeNumber(bytes, (at - next) * 4 + (below === null ? whole : PART))
    if (row > 1) writeNumber(bytes, row - 2)
    bytes.push(...(below ?? []))
    next = at + row
    i += row
  }
  const head: number[] = []
  writeNumber(head, count)
  return [...head, ...bytes]
}

/** How many steps from there on are whole and side by side. */
function rowFrom(steps: readonly Step[], from: number): number {
  const start = steps[from]?.at ?? 0
  const end = steps.findIndex(({ at, below }, i) => i > from && (below !== null || at !== start + i - from))
  return (end < 0 ? steps.length : end) - from
}

type Reader = { readonly bytes: Uint8Array; next: number }

function readFolder(view: View, home: string, tree: string, above: string, reader: Reader, found: Placed[]): void {
  const entries = readTree(view, home, tree)
  let at = 0
  for (let count = readNumber(reader); count > 0; count--) {
    const step = readNumber(reader)
    const kind = step % 4
    at += (step - kind) / 4
    const row = kind === ROW ? readNumber(reader) + 2 : 1
    if (at + row > entries.length) fail('MALFORMED', { reason: 'places' })
    for (const entry of entries.slice(at, at + row)) {
      const path = above + entry.name
      if (kind === PART && entry.mode === FOLDER) readFolder(view, home, entry.oid, `${path}/`, reader, found)
      else if (kind === ONE || kind === ROW) takeWhole(view, home, entry, path, found)
      else fail('MALFORMED', { reason: 'places' })
    }
    at += row
  }
}

function takeWhole(view: View, home: string, entry: TreeEntry, path: string, found: Placed[]): void {
  if (isFile(entry)) found.push({ path, oid: entry.oid })
  if (entry.mode !== FOLDER) return
  for (const below of readTree(view, home, entry.oid)) takeWhole(view, home, below, `${path}/${below.name}`, found)
}

const isFile = ({ mode }: TreeEntry): boolean => mode !== FOLDER && mode !== SUBMODULE

function writeNumber(bytes: number[], value: number): void {
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  bytes.push(rest)
}

function readNumber(reader: Reader): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    const byte = reader.bytes[reader.next++] ?? fail('MALFORMED', { reason: 'places' })
    value += (byte % 128) * scale
    if (!Number.isSafeInteger(value)) fail('MALFORMED', { reason: 'places' })
    if (byte < 128) return value
  }
}
