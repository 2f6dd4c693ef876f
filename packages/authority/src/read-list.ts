/**
 * What was read, as an entry of the record keeps it: each thing once, and many files of one snapshot by their places
 * in it instead of their names. Whoever explains an entry gets the same list back.
 *
 * A snapshot is the head of `memory` or of `main` as it is on the disk: their history stays. What is in neither, as it
 * was read, is named.
 * @clause L1.5
 */
import { formatLabel, isNodeError, parseLabel } from '@csb/core'
import { getRef, readCommit } from '@csb/files'
import { createReadList, type ReadEntry, type View } from '@csb/store'
import { filesAt, placesOf } from './read-set.ts'

/** Reads of one home under one label. */
export type ReadGroup =
  /** path and object id each */
  | { readonly files: readonly (readonly [string, string])[]; readonly home: string; readonly label: string }
  /** of the commit `at`; `set` as {@link placesOf} writes it */
  | { readonly at: string; readonly home: string; readonly label: string; readonly set: string }

/** The reads of a run. What was stored once is not worked out again. */
export type RunReads = {
  noteRead(entry: ReadEntry): void
  readonly reads: readonly ReadEntry[]
  /** @param view on what is durable */
  groups(view: View): readonly ReadGroup[]
}

const BRANCHES = ['memory', 'main'] as const
/** Fewer are named: looking for them in trees would take longer than it saves. */
const LEAST = 8

export function createRunReads(): RunReads {
  let list = createReadList()
  /** in groups already; a label that changed since makes it another read */
  const stored: ReadEntry[] = []
  let groups: readonly ReadGroup[] = []
  const known = new Set<string>()

  return {
    noteRead: (entry) => {
      if (!known.has(nameOf(entry))) list.noteRead(entry)
    },
    get reads() {
      return [...stored, ...list.reads]
    },
    groups: (view) => {
      const fresh = list.reads
      groups = joined(groups, groupsOf(view, fresh))
      for (const entry of fresh) known.add(nameOf(entry))
      stored.push(...fresh)
      list = createReadList()
      return groups
    },
  }
}

/**
 * The stored form of a list.
 * @param reads each thing once
 */
export function groupsOf(view: View, reads: readonly ReadEntry[]): readonly ReadGroup[] {
  const alike = Map.groupBy(reads, ({ home, label }) => JSON.stringify([home, formatLabel(label)]))
  return [...alike.values()].flatMap((entries) => {
    const [first] = entries
    if (first === undefined) return []
    const place = { home: first.home, label: formatLabel(first.label) }
    const { groups, rest } = placed(view, place, entries)
    const files = rest.map(({ path, oid }) => [path, oid] as const)
    return files.length === 0 ? groups : [...groups, { files, ...place }]
  })
}

/** The list again; a snapshot that can not be read gives nothing: that some are missing, the number in the header tells. */
export function readsIn(viewOf: (home: string) => View, groups: readonly ReadGroup[]): ReadEntry[] {
  return groups.flatMap((group) => {
    const { home } = group
    const label = parseLabel(group.label)
    const files = 'files' in group ? group.files.map(([path, oid]) => ({ path, oid })) : filesOf(viewOf(home), group)
    return files.map(({ path, oid }) => ({ home, path, oid, label }))
  })
}

function placed(view: View, place: { home: string; label: string }, entries: readonly ReadEntry[]) {
  const groups: ReadGroup[] = []
  let rest = entries
  for (const branch of BRANCHES) {
    const at = rest.length < LEAST ? undefined : getRef(view, place.home, branch)?.commit
    if (at === undefined) continue
    const { set, found } = placesOf(view, place.home, readCommit(view, place.home, at).tree, rest)
    if (found.size < LEAST) continue
    groups.push({ at, ...place, set })
    rest = rest.filter((entry) => !found.has(entry))
  }
  return { groups, rest }
}

function filesOf(view: View, { at, home, set }: Extract<ReadGroup, { at: string }>) {
  try {
    return filesAt(view, home, readCommit(view, home, at).tree, set)
  } catch (error) {
    if (isNodeError(error, 'NOT_FOUND') || isNodeError(error, 'OBJECT_DAMAGED') || isNodeError(error, 'MALFORMED'))
      return []
    throw error
  }
}

/** Named files of one home and label stay one group, however often some came along. */
function joined(before: readonly ReadGroup[], after: readonly ReadGroup[]): readonly ReadGroup[] {
  const groups = [...before]
  for (const group of after) {
    const at = groups.findIndex((other) => 'files' in other && isAlike(other, group))
    const other = groups[at]
    if ('files' in group && other !== undefined && 'files' in other)
      groups[at] = { ...other, files: [...other.files, ...group.files] }
    else groups.push(group)
  }
  return groups
}

const isAlike = (one: ReadGroup, other: ReadGroup): boolean => one.home === other.home && one.label === other.label

const nameOf = ({ home, path, oid, label }: ReadEntry): string => JSON.stringify([home, path, oid, formatLabel(label)])
