/**
 * Ids of commits and folders as a reader may know them. An id is a digest of all that lies behind it, so a reader of a
 * part is told those of what it sees: the same that a clone of it has. What it hands back is understood by them. Where it
 * sees nothing, in the branch of the notes, and as long as a long history is not worked out, no id is told.
 * @clause L1.2 L4.2
 */
import { LIMITS, NodeError, fail, toNodeError } from '@csb/core'
import { MAIN, MEMORY, entryAt, getRef, isNearlyProjected, readCommit, seesEverything, type Sight } from '@csb/files'
import { projectCommit, projectWithin } from '@csb/guard'
import type { Transaction, View } from '@csb/store'
import { sightOf } from './view.ts'
import type { Context, Effect } from '../operation.ts'

/** Members of the details of an error that may be ids of what was not seen. */
const IDS: ReadonlySet<string> = new Set(['head', 'oid', 'commit', 'tree', 'base'])

/** True where somebody sees a part only. */
export const isPart = (context: Context): boolean => !seesEverything(sightOf(context))

/**
 * A commit as it is shown; null where nothing of it is, undefined where that is not known yet: the history behind it is
 * long, and is worked out behind the back of who asks.
 */
export async function commitKnown(context: Context, home: string, commit: string): Promise<string | null | undefined> {
  if (!isPart(context)) return commit
  const { store, runs } = context
  const asked = { home, commit, clearance: sightOf(context) }
  if (isNear(store.view(), asked)) return projectCommit(store, asked)
  const name = `${home} ${commit} ${JSON.stringify(asked.clearance)}`
  context.background(runs.projecting.begin(name, (signal) => projectCommit(store, asked, signal)))
  return undefined
}

/**
 * The same, undefined where no id is told.
 * @param branch that it is the head of, or was
 */
export async function commitShown(
  context: Context,
  home: string,
  branch: string,
  commit: string,
): Promise<string | undefined> {
  if (branch === MEMORY && isPart(context)) return undefined
  return (await commitKnown(context, home, commit)) ?? undefined
}

/** The same, however long it takes: for what is to be compared. */
export async function commitToCompare(context: Context, home: string, commit: string): Promise<string | undefined> {
  if (!isPart(context)) return commit
  return (await projectCommit(context.store, { home, commit, clearance: sightOf(context) })) ?? undefined
}

/** A commit as it is shown, and its tree. */
export async function headShown(
  context: Context,
  home: string,
  branch: string,
  head: string,
): Promise<{ readonly commit?: string; readonly tree?: string }> {
  const commit = await commitShown(context, home, branch, head)
  return commit === undefined ? {} : { commit, tree: readCommit(context.store.view(), home, commit).tree }
}

/** What a write turns ids into, and what they stand for. */
export type IdReader = {
  /** what is shown is what is there */
  readonly isWhole: boolean
  /** the head that is meant by one that was shown; it is there to be compared */
  meant(branch: string, expect: string): Promise<string>
  /** a commit as it is shown; undefined where nothing of it is */
  shown(commit: string): Promise<string | undefined>
}

/**
 * Write, for somebody who may see a part only: what is handed back is understood as it was shown, what is told is shown,
 * and a refusal tells no ids.
 * @param branches that the write builds on
 * @clause L1.2 L4.2
 */
export async function writeShown<T>(
  context: Context,
  home: string,
  branches: readonly string[],
  work: (tx: Transaction, ids: IdReader) => Promise<T>,
  effect: (value: T) => Effect,
): Promise<T> {
  if (!isPart(context)) return context.write((tx) => work(tx, AS_IT_IS), effect)
  // what is old is worked out before: within the transaction little is left
  for (const branch of new Set([...branches, MAIN])) {
    const head = getRef(context.store.view(), home, branch)?.commit
    if (head !== undefined) await commitShown(context, home, branch, head)
  }
  return withoutIds(context, () => context.write((tx) => work(tx, readerOf(tx, context, home)), effect))
}

/** Do what may be refused with ids that somebody does not see. @throws the same without them */
export async function withoutIds<T>(context: Context, work: () => Promise<T> | T): Promise<T> {
  if (!isPart(context)) return work()
  try {
    return await work()
  } catch (error) {
    throw errorShown(context, toNodeError(error))
  }
}

/** An error as a reader of a part is told it. */
export function errorShown(context: Context, error: NodeError): NodeError {
  if (!isPart(context) || Object.keys(error.details).every((name) => !IDS.has(name))) return error
  const told = Object.entries(error.details).filter(([name]) => !IDS.has(name))
  return new NodeError(error.code, Object.fromEntries(told), error)
}

/** What became of files, by ids: of each what is shown before and after. */
export function changesShown(
  view: View,
  home: string,
  { commit, parent }: { readonly commit: string | undefined; readonly parent: string | undefined },
  changed: readonly { readonly path: string }[],
): { path: string; before: string | null; after: string | null }[] {
  const [now, old] = [commit, parent].map((at) => (at === undefined ? undefined : readCommit(view, home, at).tree))
  const oidIn = (tree: string | undefined, path: string): string | null =>
    tree === undefined ? null : (entryAt(view, home, tree, path)?.oid ?? null)
  return changed
    .map(({ path }) => ({ path, before: oidIn(old, path), after: oidIn(now, path) }))
    .filter(({ before, after }) => before !== after)
}

/** A commit of the branch of the notes, for who is told it. */
export const noteCommit = (context: Context, commit: string): { readonly commit?: string } =>
  isPart(context) ? {} : { commit }

/** Only what is known: an id that is not shown is left out. */
export const known = <T extends object>(told: T): Partial<T> =>
  Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined)) as Partial<T>

const isNear = (view: View, asked: { readonly home: string; readonly commit: string; readonly clearance: Sight }) =>
  isNearlyProjected(view, asked, asked.commit, LIMITS.projectedAtOnce)

const AS_IT_IS: IdReader = {
  isWhole: true,
  meant: async (_, expect) => expect,
  shown: async (commit) => commit,
}

function readerOf(tx: Transaction, context: Context, home: string): IdReader {
  const clearance = sightOf(context)
  const shown = async (commit: string): Promise<string | undefined> => {
    const asked = { home, commit, clearance }
    return isNear(tx, asked) ? ((await projectWithin(tx, asked)) ?? undefined) : undefined
  }
  return {
    isWhole: false,
    shown,
    meant: async (branch, expect) => {
      const head = getRef(tx, home, branch)?.commit
      if (head === undefined || (await shown(head)) !== expect) return fail('CONFLICT', { home, branch, expect })
      return head
    },
  }
}
