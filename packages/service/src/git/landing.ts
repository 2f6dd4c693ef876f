/**
 * A push by somebody who sees a part of the home only. What was cloned is a projection, so the commits on it are taken
 * as the changes they make, and land on the full history: what is hidden stays as it is, and is not spoken of. Where
 * nothing is hidden in what a push builds on, its commits go in as they are.
 * @clause L4.2
 */
import { LIMITS, fail, formatLabel, type GitText } from '@csb/core'
import {
  LABELS_PATH,
  getRef,
  groundOf,
  isErased,
  newestSeenAs,
  stepsOf,
  type AppliedProjected,
  type PushedHistory,
  type PushedStep,
} from '@csb/files'
import { applyProjected } from '@csb/guard'
import type { Transaction, View } from '@csb/store'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { leastLabel, leastPushed } from '../session/taint.ts'
import { marksOf } from './names.ts'
import { sightOf, type SeenRef } from './view.ts'
import { locationOf, reaches, type Context } from '../operation.ts'

/** One line of a push, on its way to the full history. */
export type Landing = {
  readonly home: string
  /** that the steps go on */
  readonly branch: string
  /** full branch that a new one starts from */
  readonly from: string
  /** the commit that the steps were made on, as it was shown */
  readonly on: string
  readonly steps: readonly PushedStep[]
}

export type Landed = Pick<AppliedProjected, 'commit' | 'projected' | 'placed'> & { readonly steps: number }

/** A line as this room needs it. */
export type LandingLine = {
  /** branch that is written; undefined for a tag */
  readonly branch: string | undefined
  /** branch that a proposal is for */
  readonly meant?: string
  /** head as it was shown, null for a new branch */
  readonly shown: string | null
  readonly to: string
}

/** What came, and what this reader was shown. */
export type Sight = {
  readonly home: string
  readonly refs: readonly SeenRef[]
  /** the home with what came */
  readonly view: View
  readonly history: PushedHistory
}

const HEADS = /^refs\/(?:heads\/)?(.+)$/

/**
 * How a line goes on.
 * @returns undefined where its commits go in as they are
 * @throws CONFLICT, NOT_FOUND where it builds on nothing that was shown, CLEARANCE for a tag of what is shown in part
 */
export function landingOf(context: Context, sight: Sight, line: LandingLine): Landing | undefined {
  const { home, history, view } = sight
  const isNew = (oid: string): boolean => history.objects.has(oid)
  const on = line.shown ?? groundOf(view, home, line.to, isNew)
  // history that begins anew shows nothing and takes nothing away
  if (on === undefined) return undefined
  const start = fullOf(context, sight, on, line.shown === null ? line.meant : line.branch)
  const isWhole = start.commit === on && history.grounds.every((oid) => fullOf(context, sight, oid).commit === oid)
  if (isWhole && !needsLabels(context, home, line.branch)) return undefined
  if (line.branch === undefined) return fail('CLEARANCE', { reason: 'a tag is for a commit that the lease sees whole' })
  return { home, branch: line.branch, from: start.branch, on, steps: stepsOf(view, home, { on, tip: line.to, isNew }) }
}

/**
 * Does what is pushed need labels that it can not bring? Whoever has read from outside, or has a floor, labels what it writes,
 * and a lease for some paths does not reach the file of labels.
 * @clause L1.7
 */
const needsLabels = (context: Context, home: string, branch = ''): boolean =>
  formatLabel(leastPushed(context, context.store.view())) !== 'public:owner' &&
  !reaches(context, { location: locationOf(context, home), action: 'write', branch, path: `/${LABELS_PATH}` })

/** Refuse paths of commits that go in as they are. @throws FORGOTTEN */
export function checkPaths(view: View, home: string, paths: ReadonlySet<string>): void {
  for (const path of paths) if (isErased(view, home, `/${path}`)) fail('FORGOTTEN', { home, path })
}

/** Ids of the blobs that steps bring along. */
export function blobsOf(landings: readonly Landing[], { objects }: PushedHistory): Set<string> {
  const blobs = landings
    .flatMap(({ steps }) => steps)
    .flatMap(({ changes }) => changes)
    .flatMap(({ bytes }) => (bytes === null || bytes instanceof Uint8Array ? [] : bytes.oid))
  return new Set(blobs.filter((oid) => objects.has(oid)))
}

/**
 * Make the steps on the full history, one commit each.
 * @throws CONFLICT where the branch is seen otherwise by now; INVALID_INPUT, TOO_LARGE, FORGOTTEN as a direct edit
 */
export async function land(tx: Transaction, context: Context, landing: Landing): Promise<Landed> {
  const { home, branch, from, on, steps } = landing
  const { clock } = context
  const sight = sightOf(context)
  const renamed = new Map<string, string>()
  const placed = new Map<string, string>()
  let base = on
  let done: AppliedProjected | undefined
  for (const { message, trailers, changes } of steps.length === 0 ? [NOTHING] : steps) {
    done = await applyProjected(tx, {
      home,
      branch,
      from,
      base,
      clearance: sight,
      changes,
      renamed,
      ...marksOf(context, tx, branch),
      // what is pushed by a reader of a part is committed here, and labelled as what is written over another door
      least: leastLabel(context, tx),
      author: authorOf(context),
      message: messageOf(message),
      trailers: { ...foreign(trailers), ...trailersOf(context) },
      now: clock.now(),
    })
    for (const { path, at } of done.placed) placed.set(path, at)
    base = done.projected ?? fail('CONFLICT', { branch })
  }
  const { commit } = done ?? fail('CONFLICT', { branch })
  return {
    commit,
    projected: base,
    placed: [...placed].map(([path, at]) => ({ path, at })),
    steps: steps.length,
  }
}

/** What is said of it: nothing but what a fetch would show. */
export function wordsOf(name: string, pushed: string, { projected, placed, steps }: Landed): GitText[] {
  if (projected === pushed) return []
  return [
    { text: steps === 1 ? 'git.landed.one' : 'git.landed.many', values: { name, steps } },
    ...placed.map(({ path, at }) => ({ text: 'git.placed', values: { name, path, at } }) as const),
  ]
}

const NOTHING: PushedStep = { message: 'branch', trailers: {}, changes: [] }

/** The newest full commit that is seen as this one, on a branch that was shown. @throws NOT_FOUND */
function fullOf(
  context: Context,
  { home, refs }: Sight,
  seen: string,
  first?: string,
): { branch: string; commit: string } {
  const names = refs.filter(({ name }) => !name.startsWith('refs/tags/')).map(({ name }) => HEADS.exec(name)?.[1] ?? '')
  const view = context.store.view()
  for (const branch of new Set([...names.filter((name) => name === first), ...names])) {
    const head = getRef(view, home, branch)?.commit
    const commit =
      head === undefined ? undefined : newestSeenAs(view, { home, clearance: sightOf(context) }, head, seen)
    if (commit !== undefined) return { branch, commit }
  }
  return fail('NOT_FOUND', { oid: seen, reason: 'what it builds on is not there any more' })
}

/** As a commit of this node may hold it. */
function messageOf(message: string): string {
  const text = message
    .toWellFormed()
    .replaceAll(/(?![\t\n])\p{Cc}/gu, ' ')
    .trim()
  return text === '' ? 'push' : text.slice(0, LIMITS.commitMessageChars).toWellFormed()
}

const foreign = (trailers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(trailers).filter(([name, value]) => !/^csb-/i.test(name) && value.length <= LIMITS.nameChars),
  )
