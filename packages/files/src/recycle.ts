/**
 * The recycle area: what a merge deleted, and branches that were removed, kept with their labels until a date.
 * Forgetting reaches in here too: what was forgotten is not restored.
 * @clause L0.3
 */
import { LIMITS, dominates, fail, formatLabel, joinLabels, parseLabel, type Clearance, type Label } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { commitTree, type CommitOn, type Committed } from './change.ts'
import { LABELS_PATH, changeLabels, labelReader, readLabels } from './labels.ts'
import { isErased, objectSize, readBlob, readCommit, writeBlob } from './objects.ts'
import { validatePath } from './paths.ts'
import { checkPlaced } from './placed-check.ts'
import { dropRef, getRef, marksIn, moveRef, resolveCommit, type Ref } from './refs.ts'
import { placeFiles } from './tree-place.ts'
import { FILE, FOLDER, SUBMODULE, isBlob, type Mode } from './tree.ts'
import { MEMORY } from './homes.ts'
import { entryAt } from './walk.ts'

/** What was deleted. Times in ms since epoch. */
export type Recycled = {
  /** branch that it was deleted from, or the branch that was removed */
  readonly branch: string
  /** null: the whole branch */
  readonly path: string | null
  /** blob of the file, or head of the branch */
  readonly oid: string
  readonly mode: Mode | null
  /** as {@link formatLabel} spells it */
  readonly label: string
  readonly deletedAt: number
  /** from then on it may be collected */
  readonly until: number
  /** the merge that deleted it, or the head of the branch */
  readonly commit: string
  /** the name of the branch was given by a session that had read from outside */
  readonly outside?: true
  /** of a whole branch: commits on it were made by a session that had read from outside */
  readonly words?: true
  /** of a whole branch: a session pushed to it */
  readonly agent?: true
}

export type ListRecycled = {
  /** ms since epoch */
  readonly now: number
  readonly limit: number
  /** cursor of the page before */
  readonly after?: string
  /** what the reader may see */
  readonly clearance: Clearance
  /** false for what the reader is not told of; omitted: it is told of all it may see */
  readonly isTold?: (entry: Recycled) => boolean
}

export type RestoreRecycled = CommitOn & {
  readonly path: string
  /** the merge that deleted it; omitted: the latest that did */
  readonly deletedBy?: string
  readonly clearance: Clearance
}

export type RestoreBranch = {
  /** ms since epoch */
  readonly now: number
  readonly as?: string
  readonly head?: string
  readonly outside?: boolean
}

/** What bears no label of its own. */
const BRANCH_LABEL = 'private:owner'

/**
 * Keep files that a merge deletes.
 * @param input `from`: the commit that still has them
 * @throws NOT_FOUND, OBJECT_DAMAGED
 * @clause L0.3
 */
export function recycleFiles(
  tx: Transaction,
  home: string,
  input: {
    readonly branch: string
    readonly commit: string
    readonly from: string
    readonly files: readonly { readonly path: string; readonly label: Label }[]
    readonly now: number
  },
): void {
  const { branch, commit, from, files, now } = input
  const { tree } = readCommit(tx, home, from)
  const named = nameOf(getRef(tx, home, branch))
  for (const { path, label } of files) {
    const entry = entryAt(tx, home, tree, path)
    if (entry === undefined) continue
    const { mode, oid } = entry
    keepRecycled(tx, home, {
      branch,
      path,
      oid,
      mode,
      label: formatLabel(label),
      deletedAt: now,
      until: untilOf(now),
      commit,
      ...named,
    })
  }
}

/**
 * Take a branch away; its head is kept in the recycle area.
 * @param input `expect`: the head the caller saw; `now` in ms since epoch
 * @throws PROTECTED for protected branches, snapshots and the branch of the notes; CONFLICT, NOT_FOUND
 * @clause L1.4
 */
export function removeBranch(
  tx: Transaction,
  home: string,
  branch: string,
  { expect, now }: { readonly expect: string; readonly now: number },
): void {
  if (branch === MEMORY) fail('PROTECTED', { home, branch })
  const ref = getRef(tx, home, branch)
  dropRef(tx, home, branch, expect)
  keepHead(tx, home, branch, { head: expect, now, ref })
}

/** Keep the head that a branch had before it went, or moved to where nothing leads to it. */
export function keepHead(
  tx: Transaction,
  home: string,
  branch: string,
  { head, now, ref }: { readonly head: string; readonly now: number; readonly ref: Ref | undefined },
): void {
  const what = {
    branch,
    path: null,
    oid: head,
    mode: null,
    label: BRANCH_LABEL,
    commit: head,
    ...nameOf(ref),
    ...marksIn(ref),
  }
  keepRecycled(tx, home, { ...what, deletedAt: now, until: untilOf(now) })
}

/**
 * What can be restored, latest first.
 * @returns `next`: cursor of the next page, null at the end; it says when the last one that was told ends, and the how
 *   many of that time it was, and nothing of any other
 * @throws INVALID_INPUT for a cursor that is none
 */
export async function listRecycled(
  view: View,
  home: string,
  { now, limit, after, clearance, isTold = () => true }: ListRecycled,
): Promise<{ items: Recycled[]; next: string | null }> {
  const items: Recycled[] = []
  const begin = after === undefined ? undefined : placeOf(after)
  let last = begin ?? { until: Number.NaN, count: 0 }
  let skip = begin?.count ?? 0
  const from = begin === undefined ? {} : { after: key('recycle', home, begin.until + 1) }
  for await (const [k] of view.range({ prefix: prefix('recycle', home), reverse: true, ...from })) {
    const entry = rowOf(view, k)
    if (entry === undefined) continue
    if (entry.until <= now) break
    if (!dominates(clearance, parseLabel(entry.label)) || isGone(view, home, entry) || !isTold(entry)) continue
    if (entry.until === begin?.until && skip-- > 0) continue
    if (items.length === limit) return { items, next: `${last.until}.${last.count}` }
    items.push(entry)
    last = { until: entry.until, count: entry.until === last.until ? last.count + 1 : 1 }
  }
  return { items, next: null }
}

/** @throws INVALID_INPUT */
function placeOf(cursor: string): { readonly until: number; readonly count: number } {
  const [until, count] = (/^([0-9]{1,15})\.([0-9]{1,9})$/.exec(cursor) ?? []).slice(1).map(Number)
  return until === undefined || count === undefined ? fail('INVALID_INPUT', { field: 'cursor' }) : { until, count }
}

/**
 * Put a deleted file back, byte for byte, with its mode and its label, by a commit on a branch.
 * @throws NOT_FOUND where it is not in the recycle area, or no longer; FORGOTTEN; CONFLICT where something else stands
 *   at its path; INVALID_INPUT, TOO_LARGE where it does harm there; otherwise as {@link commitTree}
 * @clause L0.3
 */
export async function restoreRecycled(
  tx: Transaction,
  input: RestoreRecycled,
): Promise<Omit<Committed, 'changed'> & { readonly restored: Recycled }> {
  const { home, path, deletedBy, clearance, now } = input
  validatePath(path)
  const wanted = (entry: Recycled) => entry.path === path && (deletedBy === undefined || entry.commit === deletedBy)
  const restored = await findRecycled(tx, home, now, wanted)
  if (restored === undefined || restored.mode === null || !dominates(clearance, parseLabel(restored.label)))
    return fail('NOT_FOUND', { home, path })
  if (isErased(tx, home, `/${path}`)) fail('FORGOTTEN', { home, path })
  const side = { mode: restored.mode, oid: restored.oid }
  // an archive may have brought it
  checkPlaced(tx, home, side, path)
  // also proves that the bytes are whole, where they can be held
  if (isBlob(side) && objectSize(tx, home, side.oid) <= LIMITS.blobBytes) readBlob(tx, home, side.oid)
  const done = commitTree(tx, input, (tree) => {
    const clash = clashOf(tx, home, tree, path)
    if (clash !== undefined && clash.oid !== side.oid)
      fail('CONFLICT', { home, path, reason: 'something stands there' })
    const labels = readLabels(tx, home, tree) ?? fail('OBJECT_DAMAGED', { home, path: LABELS_PATH })
    const label = joinLabels([labelReader(labels)(path), parseLabel(restored.label)])
    const isLabelled = formatLabel(labelReader(labels)(path)) === formatLabel(label)
    const bytes = isLabelled ? null : changeLabels(labels, [{ path, label }])
    const file = bytes === null ? [] : ([[LABELS_PATH, { mode: FILE, oid: writeBlob(tx, home, bytes) }]] as const)
    return placeFiles(tx, home, tree, new Map([[path, side], ...file]))
  })
  return { ...done, restored }
}

/**
 * Bring a head back that a branch had before it was removed or moved to other history.
 * @param as name of the branch that it becomes; default the name it had
 * @param head which head, where the branch had several; default the latest
 * @param outside who gives it another name has read from outside; the one it had keeps what it bore
 * @throws NOT_FOUND; CONFLICT where there is a branch of that name; PROTECTED, INVALID_INPUT
 */
export async function restoreBranch(
  tx: Transaction,
  home: string,
  branch: string,
  { now, as = branch, head, outside = false }: RestoreBranch,
): Promise<{ readonly commit: string }> {
  const isWanted = (entry: Recycled): boolean =>
    entry.path === null && entry.branch === branch && (head === undefined || entry.oid === head)
  const found = (await findRecycled(tx, home, now, isWanted)) ?? fail('NOT_FOUND', { home, branch })
  const { oid } = found
  if (getRef(tx, home, as) !== undefined) fail('CONFLICT', { home, branch: as, reason: 'there is one of that name' })
  const isOutside = outside || (as === branch && found.outside === true)
  moveRef(tx, home, as, { expect: null, to: resolveCommit(tx, home, oid), now, outside: isOutside, ...marksIn(found) })
  return { commit: oid }
}

/**
 * Let go of what is past its date.
 * @param limit rows at most
 * @returns how many rows went
 */
export async function expireRecycled(tx: Transaction, home: string, now: number, limit: number): Promise<number> {
  const gone: string[] = []
  for await (const [k] of tx.range({ prefix: prefix('recycle', home), limit })) {
    if ((rowOf(tx, k)?.until ?? now) > now) break
    gone.push(k)
  }
  for (const k of gone) tx.del(k)
  return gone.length
}

/** Everything in the recycle area, past its date or not. */
export async function recycledOf(view: View, home: string): Promise<Recycled[]> {
  const found: Recycled[] = []
  for await (const [k] of view.range({ prefix: prefix('recycle', home) })) {
    const entry = rowOf(view, k)
    if (entry !== undefined) found.push(entry)
  }
  return found
}

async function findRecycled(
  view: View,
  home: string,
  now: number,
  isWanted: (entry: Recycled) => boolean,
): Promise<Recycled | undefined> {
  for await (const [k] of view.range({ prefix: prefix('recycle', home), reverse: true })) {
    const entry = rowOf(view, k)
    if (entry === undefined) continue
    if (entry.until <= now) return undefined
    if (isWanted(entry)) return entry
  }
  return undefined
}

/** A file where the path wants a folder, or whatever stands at the path itself. */
function clashOf(view: View, home: string, tree: string, path: string) {
  const names = path.split('/')
  for (let depth = 1; depth < names.length; depth++) {
    const above = entryAt(view, home, tree, names.slice(0, depth).join('/'))
    if (above === undefined) return undefined
    if (above.mode !== FOLDER) return above
  }
  return entryAt(view, home, tree, path)
}

/** True where it was forgotten since. */
export const isGone = (view: View, home: string, { path, oid, mode }: Recycled): boolean =>
  (mode !== SUBMODULE && isErased(view, home, oid)) || (path !== null && isErased(view, home, `/${path}`))

/** What is said of the name of a branch. */
const nameOf = (ref: Ref | undefined): { readonly outside?: true } => (ref?.outside === true ? { outside: true } : {})

const untilOf = (now: number): number => now + LIMITS.recycleMs

/** Undefined where it went since its range was read. */
const rowOf = (view: View, k: string): Recycled | undefined => view.getJson<Recycled>(k)

/** Stage an entry as it is. */
export function keepRecycled(tx: Transaction, home: string, entry: Recycled): void {
  tx.putJson(recycleKey(home, entry), entry)
}

/** Where it stands: by the time until which it is kept. */
export const recycleKey = (home: string, { until, commit, path, branch }: Recycled): string =>
  key('recycle', home, until, commit, path ?? `/${branch}`)
