/**
 * What comes with a push, looked through before any of it is stored: every object that the new tips need is there,
 * every name is one a tree may hold on any system, no link leads out of the tree, git is told nothing that harms who
 * clones, no label is lowered, no word of the node is forged. Only what differs from history that is here already is looked at.
 * @clause L0.5
 */
import { LIMITS, OWNER_PRIVATE, fail, formatLabel, isNodeError, joinLabels } from '@csb/core'
import type { View } from '@csb/store'
import { decodeCommit, type Commit } from './commit.ts'
import { checkGitFile, climbOf, gitFileOf } from './git-files.ts'
import { createHistory } from './history.ts'
import { LABELS_PATH, labelsOf, readLabels, type LabelReader } from './labels.ts'
import { isErased, objectSize, readObject, readTree } from './objects.ts'
import { createOidList, type OidList } from './oid-list.ts'
import type { PackView } from './pack-object.ts'
import { markTree } from './pack-write.ts'
import { isReserved, validatePath } from './paths.ts'
import { peel } from './tags.ts'
import { FOLDER, LINK, SUBMODULE, isBlob, type TreeEntry } from './tree.ts'
import { checkTwins } from './twins.ts'

export type PushRules = {
  /** commits that are known to be whole: the heads of branches and tags */
  readonly heads: readonly string[]
  /** Called for each path that a new commit writes or takes away; throws where that may not be. */
  onPath(path: string): void
  /**
   * What is named and does not come along must be in what the new commits build on: an id alone opens nothing. Of what
   * was forgotten only bytes are refused, since the name of a path may be hidden.
   */
  readonly onlySeen: boolean
  /** who owns the home may bring commits that carry words of a node */
  readonly mayCarryTrailers: boolean
}

export type PushedHistory = {
  /** new commits, in the order in which they were reached */
  readonly commits: readonly string[]
  /** ids of all new objects */
  readonly objects: ReadonlySet<string>
  /** commits that were here before and that new ones have as parents */
  readonly grounds: readonly string[]
}

const EMPTY: ReadonlyMap<string, TreeEntry> = new Map()
/** Entries of decoded trees that are kept: some 20 MB. */
const KEPT_ENTRIES = 100_000
const LABELS_FOLDER = LABELS_PATH.slice(0, LABELS_PATH.indexOf('/'))
const OWN_TRAILER = /^csb-[a-z0-9-]*\s*:/im

/**
 * @param seen the home with what came
 * @param tips commits, or tags that lead to one
 * @throws MALFORMED, INVALID_INPUT, NOT_FOUND, FORGOTTEN, DENIED, TOO_LARGE; and what `onPath` throws
 */
export function checkPush(seen: PackView, home: string, tips: readonly string[], rules: PushRules): PushedHistory {
  const isKnown = createHistory(seen.view, home, rules.heads)
  const grounds = new Set<string>()
  const walk = createTreeWalk(seen, home, rules, grounds)
  const commits: string[] = []
  const objects = walk.objects
  const queue = tips.map((tip) => {
    const { commit, tags } = peel(seen.view, home, tip)
    for (const tag of tags) objects.add(tag)
    return commit
  })
  for (let oid = queue.pop(); oid !== undefined; oid = queue.pop()) {
    if (objects.has(oid) || isKnown(oid)) continue
    if (rules.onlySeen && seen.placeOf(oid) < 0) fail('NOT_FOUND', { home, oid, wanted: 'commit' })
    objects.add(oid)
    commits.push(oid)
    const { parents } = commitAt(seen, home, oid, rules)
    for (const parent of parents.filter(isKnown)) grounds.add(parent)
    queue.push(...parents)
  }
  // trees come behind: one may be like another in what all of it builds on
  for (const oid of commits) {
    const commit = commitAt(seen, home, oid, undefined)
    const parents = commit.parents.map((parent) => commitAt(seen, home, parent, undefined).tree)
    walk.folder(commit.tree, parents, '')
    if (parents.length === 0 || parents.some((parent) => walk.labelsOf(parent) !== walk.labelsOf(commit.tree)))
      checkLabels(seen.view, home, commit.tree, parents)
  }
  return { commits, objects, grounds: [...grounds] }
}

/** @param rules where the commit is new */
function commitAt(seen: PackView, home: string, oid: string, rules: PushRules | undefined): Commit {
  if (seen.kindOf(oid) !== 'commit') fail('NOT_FOUND', { home, oid, wanted: 'commit' })
  const body = readObject(seen.view, home, oid, 'commit')
  try {
    const commit = decodeCommit(body)
    if (rules?.mayCarryTrailers === false && OWN_TRAILER.test(body.toString('latin1', body.indexOf('\n\n'))))
      fail('DENIED', { reason: 'a commit that is pushed can not carry Csb- trailers', commit: oid })
    return commit
  } catch (error) {
    if (isNodeError(error, 'MALFORMED')) fail('MALFORMED', { ...error.details, commit: oid }, error)
    throw error
  }
}

function createTreeWalk(seen: PackView, home: string, rules: PushRules, grounds: ReadonlySet<string>) {
  const objects = new Set<string>()
  const { view } = seen
  const trees = createTrees(seen, home)
  let built: OidList | undefined
  /** What neither comes along nor is in the trees that new commits build on is not there for who pushes. */
  const need = (oid: string, path: string): void => {
    if (!rules.onlySeen || seen.placeOf(oid) >= 0) return
    if (built === undefined) {
      built = createOidList(oid.length / 2)
      for (const commit of grounds) {
        const { tree } = commitAt(seen, home, commit, undefined)
        markTree(view, home, Buffer.from(tree, 'hex'), built, undefined)
      }
    }
    if (built.find(Buffer.from(oid, 'hex')) < 0) fail('NOT_FOUND', { home, oid, path })
  }
  const touch = (path: string): void => {
    if (isReserved(path) && path !== LABELS_PATH && path !== LABELS_FOLDER)
      fail('INVALID_INPUT', { reason: 'that folder is the node’s own', path })
    if (!rules.onlySeen && isErased(view, home, `/${path}`)) fail('FORGOTTEN', { home, path })
    rules.onPath(path)
  }
  const file = ({ mode, name, oid }: TreeEntry, path: string): void => {
    if (isErased(view, home, oid)) fail('FORGOTTEN', { home, oid, path })
    const kind = seen.kindOf(oid)
    if (kind !== 'blob') fail('NOT_FOUND', { home, oid, path, wanted: 'blob', found: kind ?? null })
    need(oid, path)
    objects.add(oid)
    if (mode === LINK && climbOf(readObject(view, home, oid, 'blob'), path) > path.split('/').length - 1)
      fail('INVALID_INPUT', { reason: 'a symbolic link out of the tree', path })
    const own = gitFileOf(name)
    // a link by the name of attributes or the like is only not read; one of submodules is an error
    if (own === undefined || (mode === LINK && own === 'attributes')) return
    checkGitFile(own, mode === LINK ? null : bytesToCheck(view, home, oid, path), path)
  }
  const folder = (tree: string, parents: readonly string[], above: string): void => {
    if (parents.includes(tree)) return
    const before = parents.map((parent) => trees.names(parent))
    need(tree, above)
    const entries = trees.entries(tree, above)
    objects.add(tree)
    checkTwins(entries, above)
    for (const entry of entries) {
      const isAsBefore = (names: ReadonlyMap<string, TreeEntry>): boolean => {
        const was = names.get(entry.name)
        return was?.oid === entry.oid && was.mode === entry.mode
      }
      if (before.some(isAsBefore)) continue
      const old = before.flatMap((names) => names.get(entry.name) ?? [])
      const path = validatePath(above + entry.name)
      const own = isBlob(entry) ? undefined : gitFileOf(entry.name)
      if (own !== undefined) checkGitFile(own, null, path)
      if (entry.mode !== FOLDER) {
        touch(path)
        // the commit of a submodule is of another repository: neither looked for here nor followed
        if (entry.mode !== SUBMODULE) file(entry, path)
        continue
      }
      const folders = old.filter(({ mode }) => mode === FOLDER).map(({ oid }) => oid)
      // a folder that became one, or that is empty, is itself what is written
      if (folders.length === 0) touch(path)
      folder(entry.oid, folders, `${path}/`)
    }
    const [first, ...others] = before
    const names = first === undefined ? EMPTY : trees.names(tree)
    for (const name of first?.keys() ?? []) {
      if (!names.has(name) && others.every((other) => other.has(name))) touch(above + name)
    }
  }
  /** The folder of the labels in a root tree. */
  const labelsIn = (tree: string): string | undefined => trees.names(tree).get(LABELS_FOLDER)?.oid
  return { objects, folder, labelsOf: labelsIn }
}

/** Trees as they are decoded: each is asked for as it comes and again as what the next one builds on. */
function createTrees(seen: PackView, home: string) {
  const kept = new Map<string, { readonly entries: TreeEntry[]; readonly names: ReadonlyMap<string, TreeEntry> }>()
  let count = 0
  const get = (oid: string, above: string) => {
    const known = kept.get(oid)
    if (known !== undefined) return known
    const entries = treeAt(seen, home, oid, above)
    const tree = { entries, names: new Map(entries.map((entry) => [entry.name, entry])) }
    kept.set(oid, tree)
    count += entries.length
    for (const [oldest, { entries: gone }] of kept) {
      if (count <= KEPT_ENTRIES || oldest === oid) break
      kept.delete(oldest)
      count -= gone.length
    }
    return tree
  }
  return {
    entries: (oid: string, above: string): readonly TreeEntry[] => get(oid, above).entries,
    names: (oid: string): ReadonlyMap<string, TreeEntry> => get(oid, '').names,
  }
}

function treeAt(seen: PackView, home: string, oid: string, above: string): TreeEntry[] {
  const kind = seen.kindOf(oid)
  if (kind !== 'tree') return fail('NOT_FOUND', { home, oid, path: above, wanted: 'tree', found: kind ?? null })
  try {
    return readTree(seen.view, home, oid)
  } catch (error) {
    // of what is stored it is damage; of what comes in it is a tree that git or this node would not have made
    if (isNodeError(error, 'OBJECT_DAMAGED') && seen.placeOf(oid) >= 0)
      fail('MALFORMED', { ...error.details, tree: oid, above }, error)
    throw error
  }
}

/** Not more than is looked at. */
function bytesToCheck(view: View, home: string, oid: string, path: string): Uint8Array {
  if (objectSize(view, home, oid) > LIMITS.gitFileBytes) fail('TOO_LARGE', { maxBytes: LIMITS.gitFileBytes, path })
  return readObject(view, home, oid, 'blob')
}

/** A label can be raised by a push, never lowered: that takes a person's approval. @throws DENIED */
function checkLabels(view: View, home: string, tree: string, parents: readonly string[]): void {
  const now =
    readLabels(view, home, tree) ?? fail('INVALID_INPUT', { reason: 'labels can not be read', path: LABELS_PATH })
  const after = labelsOf(view, home, tree)
  const befores: { names: string[]; of: LabelReader }[] =
    parents.length === 0 ? [{ names: [], of: () => OWNER_PRIVATE }] : []
  for (const parent of parents.filter((one) => one !== tree)) {
    befores.push({ names: [...(readLabels(view, home, parent)?.keys() ?? [])], of: labelsOf(view, home, parent) })
  }
  for (const { names, of } of befores) {
    for (const path of new Set([...names, ...now.keys()])) {
      const raised = joinLabels([of(path), after(path)])
      if (formatLabel(raised) !== formatLabel(after(path)))
        fail('DENIED', { reason: 'a label is not lowered by a push', path })
    }
  }
}
