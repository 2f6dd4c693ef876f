/**
 * Is every object of a home whole? Hashes all of them, and follows all branches for what is missing. What is found is
 * named together with everything that needs it. Repairs nothing.
 */
import { LIMITS, delay, isNodeError } from '@csb/core'
import { key, prefix, tail, type View } from '@csb/store'
import type { ObjectKind } from './entry.ts'
import { streamBlob } from './blob-stream.ts'
import { isErased, readCommit, readTree } from './objects.ts'
import { linksOf, rootsOf, type Link, type Root } from './reach.ts'
import { kindAt } from './stored.ts'
import { comparePaths } from './tree-diff.ts'
import { FOLDER, SUBMODULE } from './tree.ts'

/** An object that is not what it should be. Lists are cut at {@link LIMITS.checkNeededBy}; `isCut` says so. */
export type Damage = {
  readonly oid: string
  /** null where nothing tells */
  readonly kind: ObjectKind | null
  readonly reason: 'missing' | 'damaged'
  /** branches whose history needs it */
  readonly branches: readonly string[]
  /** commits whose tree or history begins with it */
  readonly commits: readonly string[]
  /** where it stands in those trees */
  readonly paths: readonly string[]
  /** names in the recycle area, and ids of pins */
  readonly holders: readonly string[]
  readonly isCut: boolean
}

export type HomeCheck = {
  /** stored, whether something needs them or not */
  readonly objects: number
  /** of them nothing leads to */
  readonly unneeded: number
  /** by id */
  readonly damaged: readonly Damage[]
}

type Bad = { readonly oid: string; readonly kind: ObjectKind | null; readonly reason: Damage['reason'] }
type Needed = {
  readonly branches: Set<string>
  readonly commits: Set<string>
  readonly paths: Set<string>
  readonly holders: Set<string>
}
type Held = readonly { readonly oid: string; readonly path: string }[]

const NONE: Held = []

/**
 * @param options `now` in ms since epoch
 * @throws NOT_FOUND without the home
 */
export async function checkHome(
  view: View,
  home: string,
  { now, signal }: { readonly now: number; readonly signal?: AbortSignal },
): Promise<HomeCheck> {
  const bad = new Map<string, Bad>()
  let objects = 0
  for await (const [k] of view.range({ prefix: prefix('object', home) })) {
    const oid = tail(k, 'object', home)
    if (!isErased(view, home, oid) && !(await isWhole(view, home, oid)))
      bad.set(oid, { oid, kind: kindOf(view, home, oid), reason: 'damaged' })
    if (++objects % LIMITS.collectStepObjects === 0) await delay(0, signal)
  }
  const roots = await rootsOf(view, home, now)
  const needed = await follow(view, home, roots, bad, signal)
  const damaged = bad.size === 0 ? [] : await whoNeeds(view, home, roots, bad, signal)
  return { objects, unneeded: objects - needed, damaged }
}

/** Go everywhere and note what is missing. @returns how many stored objects something leads to */
async function follow(
  view: View,
  home: string,
  roots: readonly Root[],
  bad: Map<string, Bad>,
  signal: AbortSignal | undefined,
): Promise<number> {
  const seen = new Set<string>()
  const open: Link[] = []
  let missing = 0
  const meet = (link: Link): void => {
    if (seen.has(link.oid)) return
    seen.add(link.oid)
    if (view.has(key('object', home, link.oid))) {
      if (link.kind !== 'blob') open.push(link)
    } else {
      missing++
      // the bytes of what was forgotten are meant to be gone
      if (!isErased(view, home, link.oid))
        bad.set(link.oid, { oid: link.oid, kind: link.kind ?? null, reason: 'missing' })
    }
  }
  for (const root of roots) meet(root)
  for (let link = open.pop(), step = 1; link !== undefined; link = open.pop(), step++) {
    if (!bad.has(link.oid)) for (const next of linksOf(view, home, link)) meet(next)
    if (step % LIMITS.collectStepObjects === 0) await delay(0, signal)
  }
  return seen.size - missing
}

/** Go through the history of every root once more, with what is bad in hand. */
async function whoNeeds(
  view: View,
  home: string,
  roots: readonly Root[],
  bad: ReadonlyMap<string, Bad>,
  signal: AbortSignal | undefined,
): Promise<Damage[]> {
  const found = new Map<string, Needed>()
  const neededBy = (oid: string): Needed => {
    const needed = found.get(oid) ?? { branches: new Set(), commits: new Set(), paths: new Set(), holders: new Set() }
    found.set(oid, needed)
    return needed
  }
  const heldBelow = createHeld(view, home, bad)
  for (const root of roots) {
    const seen = new Set<string>()
    const open: (Link & { readonly by: string | null })[] = [{ ...root, by: null }]
    for (let link = open.pop(); link !== undefined; link = open.pop()) {
      if (seen.has(link.oid)) continue
      seen.add(link.oid)
      const held = link.kind === 'tree' ? heldBelow(link.oid) : []
      for (const { oid, path } of bad.has(link.oid) ? [{ oid: link.oid, path: '' }] : held) {
        const needed = neededBy(oid)
        if (root.holder === 'branch') needed.branches.add(root.name)
        else needed.holders.add(root.name)
        if (link.by !== null) needed.commits.add(link.by)
        if (path !== '') needed.paths.add(path)
      }
      if (bad.has(link.oid) || link.kind === 'tree' || link.kind === 'blob') continue
      const by = link.oid
      open.push(...linksOf(view, home, link).map((next) => ({ ...next, by })))
      if (seen.size % LIMITS.collectStepObjects === 0) await delay(0, signal)
    }
  }
  return [...bad.values()].sort((a, b) => comparePaths(a.oid, b.oid)).map((item) => damageOf(item, neededBy(item.oid)))
}

/** What is bad in a tree and below it, with its path in there; each tree is read once. */
function createHeld(view: View, home: string, bad: ReadonlyMap<string, Bad>): (tree: string) => Held {
  const memo = new Map<string, Held>()
  const heldBelow = (tree: string): Held => {
    const known = memo.get(tree)
    if (known !== undefined) return known
    const held = bad.has(tree)
      ? NONE
      : readTree(view, home, tree).flatMap(({ mode, name, oid }) => {
          if (mode === SUBMODULE) return []
          if (bad.has(oid)) return [{ oid, path: name }]
          return mode === FOLDER ? heldBelow(oid).map((below) => ({ ...below, path: `${name}/${below.path}` })) : []
        })
    memo.set(tree, held.length === 0 ? NONE : held)
    return held
  }
  return heldBelow
}

function damageOf(item: Bad, needed: Needed): Damage {
  const cut = (names: ReadonlySet<string>) => [...names].sort(comparePaths).slice(0, LIMITS.checkNeededBy)
  const { branches, commits, paths, holders } = needed
  return {
    ...item,
    branches: cut(branches),
    commits: cut(commits),
    paths: cut(paths),
    holders: cut(holders),
    isCut: [branches, commits, paths, holders].some((names) => names.size > LIMITS.checkNeededBy),
  }
}

function kindOf(view: View, home: string, oid: string): ObjectKind | null {
  try {
    return kindAt(view, home, oid) ?? null
  } catch {
    return null
  }
}

/** True where it hashes to its id and can be read as what it is. */
async function isWhole(view: View, home: string, oid: string): Promise<boolean> {
  try {
    const kind = kindAt(view, home, oid)
    if (kind === 'tree') readTree(view, home, oid)
    else if (kind === 'commit') readCommit(view, home, oid)
    else if (kind === 'tag') linksOf(view, home, { oid, kind })
    else for await (const _ of streamBlob(view, home, oid)) continue
    return true
  } catch (error) {
    if (isNodeError(error)) return false
    throw error
  }
}
