/**
 * Lines of a push: what can be said of each before its objects are here, and what once they are. A line that may not be
 * is refused alone, but where all stand or fall together.
 * @clause L0.2 L1.4 L4.2
 */
import { NodeError, fail, toNodeError, type GitText } from '@csb/core'
import { allows } from '@csb/authority'
import {
  checkRef,
  checkWhole,
  createHistory,
  currentOid,
  getRef,
  parseGitName,
  type GitName,
  type PushedHistory,
  type RefChange,
} from '@csb/files'
import { key, type View } from '@csb/store'
import { locationOf, type Context } from '../operation.ts'
import { checkPaths, landingOf, type Landed, type Landing } from './landing.ts'
import { proposalBranch } from './names.ts'
import type { SeenRef } from './view.ts'

/** `head`: what the name stands for, which for a reader of a part is not what it was shown. */
export type Line = RefChange & {
  readonly asked: GitName | undefined
  readonly head: string | null
  refused: NodeError | undefined
  hints?: readonly GitText[]
  landing?: Landing | undefined
  landed?: Landed
}

/** A push as all steps of it need it; `refs`: what a reader of a part was shown. */
export type Work = {
  readonly context: Context
  readonly home: string
  readonly lines: readonly Line[]
  readonly atomic: boolean
  readonly refs: readonly SeenRef[] | undefined
}

/** What can be said of a line before its objects are here. */
export function judged(context: Context, home: string, change: RefChange, refs: readonly SeenRef[] | undefined): Line {
  try {
    const asked = parseGitName(change.name)
    checkRef(context.view, home, asked)
    if (asked.kind === 'proposal' && change.to === null)
      fail('INVALID_INPUT', { reason: 'a proposal is not deleted by name' })
    if (asked.kind === 'proposal' && getRef(context.view, home, asked.branch)?.protected !== true)
      fail('INVALID_INPUT', { reason: 'that branch is not protected: push to it', branch: asked.branch })
    if (asked.kind === 'proposal' && change.to !== null) checkNews(context, home, asked.branch, change.to, refs)
    // a branch goes with all that is in it
    const whole = change.to === null ? ({ path: '/', below: true } as const) : {}
    reach(context, home, asked.kind === 'proposal' ? 'propose' : 'write', { branch: asked.branch, ...whole })
    const head = asked.kind === 'proposal' ? null : currentOid(context.view, home, asked)
    const shown = refs === undefined ? head : (refs.find(({ name }) => name === change.name)?.oid ?? null)
    if (asked.kind !== 'proposal' && (shown !== change.from || (shown === null && head !== null)))
      fail('CONFLICT', { name: change.name, expect: change.from, ...(refs === undefined ? { head } : {}) })
    return { ...change, asked, head, refused: undefined }
  } catch (error) {
    return { ...change, asked: undefined, head: null, refused: toNodeError(error) }
  }
}

/** A proposal of what the branch leads to already asks for nothing. @throws INVALID_INPUT */
function checkNews(
  { store }: Context,
  home: string,
  branch: string,
  to: string,
  refs: readonly SeenRef[] | undefined,
): void {
  const view = store.view()
  const head = refs === undefined ? getRef(view, home, branch)?.commit : refs.find((ref) => ref.branch === branch)?.oid
  // what is not here yet is new
  if (head === undefined || !view.has(key('object', home, to))) return
  if (createHistory(view, home, [head])(to))
    fail('INVALID_INPUT', { reason: 'there is nothing in it that the branch does not have', branch, advice: 'nothing' })
}

/** @throws SCOPE_EXCEEDED */
export function reach(
  context: Context,
  home: string,
  action: 'write' | 'propose',
  what: { branch: string; path?: string; below?: true },
): void {
  const { lease } = context.principal
  const verdict =
    lease === null
      ? { ok: false, field: 'lease' }
      : allows(lease, { location: locationOf(context, home), action, ...what })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: 'field' in verdict ? verdict.field : 'lease', action, ...what })
}

/** Lines that stand; of an atomic push all or none. */
export function openLines({ lines, atomic }: Work): Line[] {
  if (atomic && lines.some(({ refused }) => refused !== undefined)) abandon(lines)
  return lines.filter(({ refused }) => refused === undefined)
}

function abandon(lines: readonly Line[]): void {
  for (const line of lines)
    line.refused ??= new NodeError('CONFLICT', { reason: 'another line of the push was refused' })
}

/** Whether a line of a reader of a part goes in as it is, or lands on what is hidden. */
export function judgeSight(
  { context, home, refs }: Work,
  line: Line,
  pushed: { readonly view: View; readonly history: PushedHistory },
  written: ReadonlySet<string>,
): void {
  const { asked, to, from } = line
  if (refs === undefined || asked === undefined || to === null) return
  const branch = { tag: undefined, proposal: proposalBranch(context), branch: asked.branch, snapshot: asked.branch }
  try {
    line.landing = landingOf(
      context,
      { home, refs, ...pushed },
      { branch: branch[asked.kind], meant: asked.branch, shown: asked.kind === 'branch' ? from : null, to },
    )
    if (line.landing === undefined) checkPaths(context.store.view(), home, written)
  } catch (error) {
    line.refused = toNodeError(error)
  }
}

/** Whether what a name will stand for can be fetched again; of what lands on what is hidden no more is shown than before. */
export async function judgeWhole(home: string, line: Line, pushed: View): Promise<void> {
  const { asked, landing, to } = line
  if (to === null || landing !== undefined || asked?.kind === 'proposal') return
  try {
    await checkWhole(pushed, home, to)
  } catch (error) {
    line.refused = toNodeError(error)
  }
}
