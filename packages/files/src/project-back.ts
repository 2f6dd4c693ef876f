/**
 * Changes that come back from a reader who saw a projection: they land on the full tree of the commit that was
 * projected, in a run branch. A path that hidden things stand in the way of gets another name, as it would beside a
 * file of somebody else; what is there is neither touched nor told.
 * @clause L4.2
 */
import { EVERY_TAG, fail, formatLabel, joinLabels, type Label } from '@csb/core'
import type { Transaction, View } from '@csb/store'
import { commitFiles, type CommitWords } from './change.ts'
import type { Change } from './edit.ts'
import { MAIN } from './homes.ts'
import { labelReader, readLabels } from './labels.ts'
import { hashOf, isErased, oidOf, readCommit, readTree } from './objects.ts'
import { isReserved, validateBranch, validatePath } from './paths.ts'
import { projectWithin, seenOf } from './project.ts'
import { FORGOTTEN_TEXT, createTreeProjector, type Projection, type TreeProjector } from './project-tree.ts'
import { CLEARANCE_TRAILER, spellClearance } from './project-words.ts'
import { leadsOn, reachesPath, type Sight } from './sight.ts'
import { writeMemo } from './projection-memo.ts'
import { getRef, marksIn, resolveCommit } from './refs.ts'
import { FOLDER, blobOf, type TreeEntry } from './tree.ts'
import { foldedName } from './twins.ts'
import { entryAt, walkCommits } from './walk.ts'

export type ApplyProjected = CommitWords &
  Projection & {
    /** a run branch; a new one starts at the newest commit of `from` that is seen as `base` */
    readonly branch: string
    /** branch or commit of the full history; default `main` */
    readonly from?: string
    /** the projected commit that the changes were made on */
    readonly base: string
    readonly changes: readonly Change[]
    /** who gives a new branch its name has read from outside */
    readonly outside?: boolean
    /** who commits has read from outside */
    readonly words?: boolean
    /** what each file that is written bears at least; omitted: nothing */
    readonly least?: Label
    /** names that earlier changes of the same reader got, as {@link AppliedProjected} tells them; it is added to */
    readonly renamed?: Map<string, string>
  }

export type AppliedProjected = {
  /** full commit: not for the eyes of who made the changes */
  readonly commit: string
  /** what that reader sees of it */
  readonly projected: string | null
  /** files that had to take another name */
  readonly placed: readonly { readonly path: string; readonly at: string }[]
}

/** Of a new file that nobody labelled: who wrote it knew no more than its clearance. */
const OWN_LABEL = { integrity: 'agent' } as const
/** Names that are tried for one path. */
const COPIES = 100

/**
 * Commit changes that were made on a projected commit.
 * @throws CONFLICT where nothing is seen as `base` any more; PROTECTED, INVALID_INPUT, TOO_LARGE, FORGOTTEN as of a
 *   commit of the same changes
 * @clause L4.2
 */
export async function applyProjected(tx: Transaction, input: ApplyProjected): Promise<AppliedProjected> {
  const {
    home,
    branch,
    base,
    changes,
    clearance,
    labelOf,
    from = MAIN,
    renamed = new Map(),
    least,
    words: isSpoken = false,
    ...words
  } = input
  const projection = { home, clearance, labelOf }
  const parent = await commitSeenAs(tx, projection, { branch: validateBranch(branch), from, base })
  const known = marksIn(getRef(tx, home, branch) ?? getRef(tx, home, from))
  const { tree } = readCommit(tx, home, parent)
  const trees = createTreeProjector(tx, projection, writeMemo(tx, home, clearance))
  const own: Label = { ...OWN_LABEL, level: clearance.level, tags: clearance.tags.filter((tag) => tag !== EVERY_TAG) }
  const labels = readLabels(tx, home, tree)
  const desk: Desk = { tx, home, tree, trees, changes, renamed, labels, sight: clearance }
  const fitted = changes.map((change) => fit(desk, change)).filter((change) => change !== undefined)
  const { commit } = commitFiles(tx, {
    ...words,
    trailers: { ...words.trailers, [CLEARANCE_TRAILER]: spellClearance(clearance) },
    home,
    branch,
    from: parent,
    // the branch begins with what is known of the other one
    words: isSpoken || known.words === true,
    agent: known.agent === true,
    changes: fitted.map(({ at, bytes }) => ({ path: at, bytes })),
    labels: fitted
      .filter(({ bytes }) => bytes !== null)
      .flatMap(({ at }) => {
        // under the owner's label, which is what bears none, it would be hidden from its author
        const given = trees.sees(tree, at, null) ? undefined : own
        const before = labelReader(labels)(at)
        const label = least === undefined ? given : joinLabels([given ?? before, least])
        // what it bears already is not said again
        const isSaid = label === undefined || (given === undefined && formatLabel(label) === formatLabel(before))
        return isSaid ? [] : [{ path: at, label }]
      }),
  })
  return {
    commit,
    projected: await projectWithin(tx, projection, commit),
    placed: fitted.filter(({ path, at }) => path !== at).map(({ path, at }) => ({ path, at })),
  }
}

/**
 * Where a file lands that somebody who sees a part writes as it is: where a push of it would. Each part of its path that
 * something hidden stands in the way of gets another name.
 * @param at the full tree, and the path that was asked for
 * @returns the path, or one beside it
 * @throws INVALID_INPUT where no name is free
 * @clause L4.2
 */
export function placeBeside(
  tx: Transaction,
  projection: Projection,
  { tree, path }: { readonly tree: string; readonly path: string },
): string {
  // that one is refused by its name
  if (isReserved(validatePath(path))) return path
  const { home, clearance } = projection
  const trees = createTreeProjector(tx, projection, writeMemo(tx, home, clearance))
  const labels = readLabels(tx, home, tree)
  return placeFor({ tx, home, tree, trees, changes: [], renamed: new Map(), labels, sight: clearance }, path)
}

/**
 * The newest commit in a full history that is seen as a projected one; undefined where none is.
 * @param head commit that was projected for this reader before
 */
export function newestSeenAs(
  view: View,
  projection: Omit<Projection, 'labelOf'>,
  head: string,
  base: string,
): string | undefined {
  for (const { oid } of walkCommits(view, projection.home, [head]))
    if (seenOf(view, projection, oid) === base) return oid
  return undefined
}

/** The full commit to build on: the branch's head, or for a new branch the newest of `from` that is seen as `base`. */
async function commitSeenAs(
  tx: Transaction,
  projection: Projection,
  { branch, from, base }: { readonly branch: string; readonly from: string; readonly base: string },
): Promise<string> {
  const { home } = projection
  const ref = getRef(tx, home, branch)
  if (ref?.protected === true) fail('PROTECTED', { home, branch })
  const head = ref?.commit ?? resolveCommit(tx, home, from)
  if ((await projectWithin(tx, projection, head)) === base) return head
  if (ref !== undefined) fail('CONFLICT', { branch, base })
  for (const { oid } of walkCommits(tx, home, [head])) {
    const seen = seenOf(tx, projection, oid) ?? (await projectWithin(tx, projection, oid))
    if (seen === base) return oid
  }
  return fail('CONFLICT', { branch, base })
}

type Desk = {
  readonly tx: Transaction
  readonly home: string
  /** the full tree */
  readonly tree: string
  readonly trees: TreeProjector
  readonly changes: readonly Change[]
  readonly sight: Sight
  readonly labels: ReadonlyMap<string, unknown> | undefined
  /** path as it was asked for to the name that its last segment got */
  readonly renamed: Map<string, string>
}

/** The change on the full tree; undefined where it changes nothing that the reader sees. */
function fit(desk: Desk, { path, bytes }: Change): (Change & { readonly at: string }) | undefined {
  if (isReserved(validatePath(path))) fail('INVALID_INPUT', { reason: 'labels are set, not written', path })
  const { tx, home, tree, trees, sight } = desk
  if (!reachesPath(sight, path)) fail('SCOPE_EXCEEDED', { field: 'paths', path })
  const entry = entryAt(tx, home, tree, path)
  if (bytes === null) {
    const at = knownPlace(desk, path)
    const gone = at === path ? entry : entryAt(tx, home, tree, at)
    if (gone === undefined) return { path, at, bytes }
    return isSeen(desk, { ...gone, name: at.slice(at.lastIndexOf('/') + 1), path: at })
      ? { path, at, bytes }
      : undefined
  }
  const was = entry === undefined ? null : blobOf(entry)
  const isUntouched = was !== null && isErased(tx, home, was) && isForgottenText(tx, home, bytes)
  if (isUntouched && trees.sees(tree, path, was)) return undefined
  return { path, at: placeFor(desk, path), bytes }
}

/** The path under the names that its segments got before. */
function knownPlace({ renamed }: Desk, path: string): string {
  const names = path.split('/')
  return names.map((name, depth) => renamed.get(names.slice(0, depth + 1).join('/')) ?? name).join('/')
}

/** The path, each segment that something hidden stands in the way of under another name. */
function placeFor(desk: Desk, path: string): string {
  const names = path.split('/')
  let at = ''
  for (const [depth, name] of names.entries()) {
    const asked = names.slice(0, depth + 1).join('/')
    const isLast = depth === names.length - 1
    const chosen = desk.renamed.get(asked) ?? nameFor(desk, at, name, isLast)
    if (chosen !== name) desk.renamed.set(asked, chosen)
    at += (at === '' ? '' : '/') + chosen
  }
  return validatePath(at)
}

function nameFor(desk: Desk, above: string, name: string, isFile: boolean): string {
  const pathOf = (candidate: string) => (above === '' ? candidate : `${above}/${candidate}`)
  if (!isHiddenIn(desk, pathOf(name), isFile)) return name
  const asked = new Set(desk.changes.map(({ path }) => path))
  return otherName(desk, above, name, {
    isFile,
    isFree: (path) => !asked.has(path) && canBear(desk, path, isFile),
  })
}

/** `plan (copy).md` for `plan.md`, or the first further one that is free. @throws INVALID_INPUT where none is */
function otherName(
  { tx, home, tree, ...desk }: Desk,
  above: string,
  name: string,
  { isFile, isFree }: { readonly isFile: boolean; isFree(path: string): boolean },
): string {
  const pathOf = (candidate: string) => (above === '' ? candidate : `${above}/${candidate}`)
  const dot = isFile ? name.lastIndexOf('.') : -1
  const [stem, suffix] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  for (let copy = 1; copy <= COPIES; copy++) {
    const candidate = `${stem} (copy${copy === 1 ? '' : ` ${copy}`})${suffix}`
    const path = pathOf(candidate)
    const isTaken = entryAt(tx, home, tree, path) !== undefined || twinsOf({ tx, home, tree, ...desk }, path).length > 0
    if (!isTaken && isFree(path)) return candidate
  }
  return fail('INVALID_INPUT', { reason: 'that name is not free', path: pathOf(name), advice: 'name' })
}

/** True where a file, or a folder on the way to one, can not be there for reasons that the reader does not see. */
function isHiddenIn(desk: Desk, path: string, isFile: boolean): boolean {
  const { tx, home, tree, trees } = desk
  const entry = entryAt(tx, home, tree, path)
  // one that is seen is refused by its name; of one that is not nothing is told
  if (entry === undefined)
    return twinsOf(desk, path).some((twin) => !isSeen(desk, twin)) || !canBear(desk, path, isFile)
  if (entry.mode !== FOLDER) return !trees.sees(tree, path, blobOf(entry))
  if (!isFile) return !canBear(desk, path, isFile)
  const files = filesBelow(desk, path)
  const gone = new Set(desk.changes.filter(({ bytes }) => bytes === null).map((change) => change.path))
  const isSeenFile = (file: Below) => trees.sees(tree, file.path, file.oid)
  return files.some((file) => !isSeenFile(file)) && files.every((file) => !isSeenFile(file) || gone.has(file.path))
}

/** What some system takes for that path, other than it. */
function twinsOf({ tx, home, tree }: Desk, path: string): (TreeEntry & { readonly path: string })[] {
  const slash = path.lastIndexOf('/')
  const [above, name] = [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)]
  const folder = above === '' ? { mode: FOLDER, oid: tree } : entryAt(tx, home, tree, above)
  if (folder?.mode !== FOLDER) return []
  return readTree(tx, home, folder.oid)
    .filter((entry) => entry.name !== name && foldedName(entry.name) === foldedName(name))
    .map((entry) => ({ ...entry, path: path.slice(0, slash + 1) + entry.name }))
}

function isSeen(desk: Desk, entry: TreeEntry & { readonly path: string }): boolean {
  if (entry.mode === FOLDER) return seenBelow(desk, entry.path).length > 0
  return desk.trees.sees(desk.tree, entry.path, blobOf(entry))
}

/** True where a new file would be seen by its author: as it is, or where no label speaks of it with one of its own. */
function canBear({ tree, trees, labels, sight }: Desk, path: string, isFile: boolean): boolean {
  if (!(isFile ? reachesPath(sight, path) : leadsOn(sight, path))) return false
  if (trees.bears(tree, path)) return true
  const names = path.split('/')
  return labels !== undefined && names.every((_, depth) => !labels.has(names.slice(0, depth + 1).join('/')))
}

/** `oid` is null for a submodule. */
type Below = { readonly path: string; readonly oid: string | null }

function filesBelow({ tx, home, tree }: Desk, folder: string): Below[] {
  const found: Below[] = []
  const list = (oid: string, above: string): void => {
    for (const entry of readTree(tx, home, oid)) {
      if (entry.mode === FOLDER) list(entry.oid, `${above}${entry.name}/`)
      else found.push({ path: above + entry.name, oid: blobOf(entry) })
    }
  }
  const start = entryAt(tx, home, tree, folder)
  if (start?.mode === FOLDER) list(start.oid, `${folder}/`)
  return found
}

const seenBelow = (desk: Desk, folder: string): Below[] =>
  filesBelow(desk, folder).filter(({ path, oid }) => desk.trees.sees(desk.tree, path, oid))

function isForgottenText(view: View, home: string, bytes: NonNullable<Change['bytes']>): boolean {
  if (bytes instanceof Uint8Array) return Buffer.compare(bytes, FORGOTTEN_TEXT) === 0
  return bytes.oid === oidOf(hashOf(view, home), 'blob', FORGOTTEN_TEXT)
}
