/** Read files, folders and history of a branch or a commit. What is read of files is noted in the view. */
import { fail, utf8, type Label } from '@csb/core'
import type { View } from '@csb/store'
import { labelsOn } from './agent-label.ts'
import type { Person } from './commit.ts'
import { readBlob, readCommit, readTree } from './objects.ts'
import { validatePath } from './paths.ts'
import { resolveCommit } from './refs.ts'
import { FOLDER, SUBMODULE, submoduleWords, type Mode } from './tree.ts'
import { entryAt, walkCommits } from './walk.ts'

/** `at`: name of a branch, or id of a commit. */
export type ReadAt = { readonly home: string; readonly at: string }

export type FileRead = { readonly bytes: Uint8Array; readonly oid: string; readonly label: Label }

export type Listed = {
  readonly path: string
  readonly oid: string
  /** a submodule is a commit of another repository, by its id */
  readonly kind: 'file' | 'folder' | 'submodule'
  readonly label: Label
}

export type LogEntry = {
  readonly commit: string
  readonly parents: readonly string[]
  readonly author: Person
  readonly message: string
  readonly trailers: Readonly<Record<string, string>>
  /** ms since epoch */
  readonly at: number
}

const KINDS: Readonly<Partial<Record<Mode, Listed['kind']>>> = { [FOLDER]: 'folder', [SUBMODULE]: 'submodule' }

/**
 * One file with its label; the read is noted.
 * @throws NOT_FOUND, FORGOTTEN, OBJECT_DAMAGED, INVALID_INPUT
 * @clause L1.5
 */
export function readFile(view: View, { home, at, path }: ReadAt & { readonly path: string }): FileRead {
  validatePath(path)
  const { tree } = readCommit(view, home, resolveCommit(view, home, at))
  const entry = entryAt(view, home, tree, path)
  if (entry?.mode === SUBMODULE) fail('NOT_FOUND', { home, at, path, reason: 'a submodule: its files are elsewhere' })
  if (entry === undefined || entry.mode === FOLDER) return fail('NOT_FOUND', { home, at, path })
  const label = labelsOn(view, home, at, tree)(path)
  const bytes = readBlob(view, home, entry.oid)
  view.noteRead({ home, path, oid: entry.oid, label })
  return { bytes, oid: entry.oid, label }
}

/**
 * What a difference shows of a path: the bytes of a file, the read of which is noted, or a line with the commit of a
 * submodule, of which nothing is read.
 * @throws as {@link readFile}
 * @clause L1.5
 */
export function readForDiff(view: View, { home, at, path }: ReadAt & { readonly path: string }): Uint8Array {
  const entry = entryAt(view, home, readCommit(view, home, resolveCommit(view, home, at)).tree, path)
  return entry?.mode === SUBMODULE ? utf8(submoduleWords(entry.oid)) : readFile(view, { home, at, path }).bytes
}

/**
 * What is in a folder, in git's order; with `recursive` also what is in the folders below.
 * @param input `path` omitted or empty: the root
 * @throws NOT_FOUND where there is no such folder, OBJECT_DAMAGED, INVALID_INPUT
 */
export function listFiles(
  view: View,
  { home, at, path = '', recursive = false }: ReadAt & { readonly path?: string; readonly recursive?: boolean },
): Listed[] {
  if (path !== '') validatePath(path)
  const { tree } = readCommit(view, home, resolveCommit(view, home, at))
  const start = path === '' ? { mode: FOLDER, oid: tree } : entryAt(view, home, tree, path)
  if (start?.mode !== FOLDER) return fail('NOT_FOUND', { home, at, path })
  const labelOf = labelsOn(view, home, at, tree)
  const found: Listed[] = []
  const list = (folder: string, above: string): void => {
    for (const entry of readTree(view, home, folder)) {
      const entryPath = above + entry.name
      const kind = KINDS[entry.mode] ?? 'file'
      found.push({ path: entryPath, oid: entry.oid, kind, label: labelOf(entryPath) })
      if (recursive && kind === 'folder') list(entry.oid, `${entryPath}/`)
    }
  }
  list(start.oid, path === '' ? '' : `${path}/`)
  return found
}

/**
 * The label in force for a path, of what stands there or would.
 * @throws NOT_FOUND without the branch, OBJECT_DAMAGED, INVALID_INPUT
 */
export function labelAt(
  view: View,
  { home, at, path }: ReadAt & { readonly path: string },
): { readonly label: Label; readonly isThere: boolean } {
  const { tree } = readCommit(view, home, resolveCommit(view, home, at))
  return {
    label: labelsOn(view, home, at, tree)(path),
    isThere: entryAt(view, home, tree, validatePath(path)) !== undefined,
  }
}

/**
 * Commits from newest to oldest, as `git log` has them.
 * @param input `limit` commits at most
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function readLog(view: View, { home, at, limit }: ReadAt & { readonly limit: number }): LogEntry[] {
  const log: LogEntry[] = []
  for (const { oid, commit } of walkCommits(view, home, [resolveCommit(view, home, at)])) {
    if (log.length >= limit) break
    const { parents, author, message, trailers } = commit
    log.push({ commit: oid, parents, author, message, trailers, at: author.at })
  }
  return log
}
