/**
 * Branches: names for commits, moved by compare-and-swap. A protected one moves by a merge alone, a snapshot never.
 * @clause L0.1 L0.2 L1.4
 */
import { fail } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { hashOf, isOid, readCommit } from './objects.ts'
import { validateBranch } from './paths.ts'

export type Ref = {
  /** object id of the head */
  readonly commit: string
  /** moves only by an approved merge */
  readonly protected: boolean
  /** ms since epoch */
  readonly updatedAt: number
  /** its name was given by a session that had read from outside: a name is content too */
  readonly outside?: true
  /** commits on it were made by a session that had read from outside: their messages and authors are its words */
  readonly words?: true
  /** a session pushed commits to it as they are: what lies on it is nobody's word but an agent's */
  readonly agent?: true
}

/** What is known of the commits behind a branch, and goes along to where else they lead. */
export type RefMarks = Pick<Ref, 'words' | 'agent'>

export type MoveRef = {
  /** the head the caller saw; null: the branch must not exist yet */
  readonly expect: string | null
  readonly to: string
  /** ms since epoch */
  readonly now: number
  /** who gives a new branch its name has read from outside; one that is there keeps what it bears */
  readonly outside?: boolean
  /** what it moves to bears such words; a branch that holds some goes on holding them */
  readonly words?: boolean
  /** a session brings commits as they are; a branch that holds some goes on holding them */
  readonly agent?: boolean
}

const SNAPSHOTS = 'snapshots'

/** The branch that holds a snapshot of this name. */
export const snapshotRef = (name: string): string => `${SNAPSHOTS}/${name}`

/** True for the branches that nothing moves or removes. */
export const isSnapshot = (branch: string): boolean => branch === SNAPSHOTS || branch.startsWith(`${SNAPSHOTS}/`)

export const getRef = (view: View, home: string, branch: string): Ref | undefined =>
  view.getJson<Ref>(key('ref', home, branch))

/** The marks of a branch alone. */
export const marksIn = ({ words, agent }: RefMarks = {}): RefMarks => ({
  ...(words === true ? { words } : {}),
  ...(agent === true ? { agent } : {}),
})

/** All branches of a home, by name. @throws NOT_FOUND without the home, OBJECT_DAMAGED */
export async function listRefs(view: View, home: string): Promise<({ branch: string } & Ref)[]> {
  hashOf(view, home)
  const start = prefix('ref', home)
  const refs: ({ branch: string } & Ref)[] = []
  for await (const [k] of view.range({ prefix: start })) {
    const branch = k.slice(start.length)
    const ref = getRef(view, home, branch)
    // undefined: removed since the range was read
    if (ref !== undefined) refs.push({ branch, ...ref })
  }
  return refs
}

/**
 * Move a branch, or make one.
 * @throws PROTECTED, CONFLICT with the head that is there, NOT_FOUND where `to` is no commit of the home, INVALID_INPUT
 * @clause L0.2
 */
export function moveRef(tx: Transaction, home: string, branch: string, move: MoveRef): Ref {
  if (isSnapshot(branch) || getRef(tx, home, branch)?.protected === true) fail('PROTECTED', { home, branch })
  return advanceRef(tx, home, branch, move)
}

/**
 * Move a branch, also a protected one. For an approved merge only: it asks nothing. A snapshot does not move here either.
 * @throws PROTECTED, CONFLICT, NOT_FOUND, INVALID_INPUT
 */
export function advanceRef(tx: Transaction, home: string, branch: string, move: MoveRef): Ref {
  const { expect, to, now } = move
  validateBranch(branch)
  if (isSnapshot(branch)) fail('PROTECTED', { home, branch })
  const ref = getRef(tx, home, branch)
  const head = ref?.commit ?? null
  if (head !== expect) fail('CONFLICT', { home, branch, expect, head })
  readCommit(tx, home, to)
  const isOutside = ref === undefined ? move.outside === true : ref.outside === true
  const moved: Ref = {
    commit: to,
    protected: ref?.protected ?? false,
    updatedAt: now,
    ...(isOutside ? { outside: true } : {}),
    ...(move.words === true || ref?.words === true ? { words: true } : {}),
    ...(move.agent === true || ref?.agent === true ? { agent: true } : {}),
  }
  tx.putJson(key('ref', home, branch), moved)
  return moved
}

/**
 * Take a branch away. What only it led to is collected some day, unless something else holds it.
 * @throws PROTECTED for protected branches and snapshots, CONFLICT, NOT_FOUND
 * @clause L1.4
 */
export function dropRef(tx: Transaction, home: string, branch: string, expect: string): void {
  const ref = headOf(tx, home, branch)
  if (ref.protected || isSnapshot(branch)) fail('PROTECTED', { home, branch })
  if (ref.commit !== expect) fail('CONFLICT', { home, branch, expect, head: ref.commit })
  tx.del(key('ref', home, branch))
}

/** Stage a branch as a new home or a new snapshot has it. It asks nothing. */
export function startRef(tx: Transaction, home: string, branch: string, ref: Ref): void {
  tx.putJson(key('ref', home, branch), ref)
}

/**
 * The commit that a branch name or a commit id stands for.
 * @throws NOT_FOUND
 */
export function resolveCommit(view: View, home: string, at: string): string {
  if (!isOid(at)) return headOf(view, home, at).commit
  readCommit(view, home, at)
  return at
}

const headOf = (view: View, home: string, branch: string): Ref =>
  getRef(view, home, branch) ?? fail('NOT_FOUND', { home, branch: branch.slice(0, 200) })
