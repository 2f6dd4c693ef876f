/**
 * The git view's writing half. A line of a push that may not be is refused before any object is read, and recorded;
 * the rest moves in one transaction with its objects and its record. What is meant for a protected branch becomes a
 * proposal, and the gate is asked.
 * @clause L0.2 L0.5 L1.4
 */
import { LIMITS, NodeError, fail, isNodeError, toNodeError } from '@csb/core'
import { allows } from '@csb/authority'
import {
  changeRef,
  checkRef,
  checkTips,
  currentOid,
  getHome,
  getRef,
  listRefs,
  listTags,
  moveRef,
  parseGitName,
  pinObjects,
  receivePack,
  seesEverything,
  unpin,
  type GitName,
  type PushRules,
  type PushedHistory,
  type RefChange,
} from '@csb/files'
import { projectCommit } from '@csb/guard'
import type { Transaction } from '@csb/store'
import { refsSeen } from '../git-view.ts'
import { askGate } from '../gates.ts'
import { homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

type Push = {
  readonly home?: string
  readonly changes: readonly RefChange[]
  /** all or nothing */
  readonly atomic?: boolean
  readonly options?: readonly string[]
}

/** What a push is told on the way and at its end. The pack comes in as chunks of bytes, in this process. */
export type PushEvent =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'report'; readonly unpack: Refusal | null; readonly refs: readonly RefReport[] }

type Refusal = ReturnType<NodeError['toJSON']>
export type RefReport = {
  readonly name: string
  /** null: done */
  readonly refused: Refusal | null
  /** a line for the person who pushed */
  readonly hint?: string
}

type Line = RefChange & { readonly asked: GitName | undefined; refused: NodeError | undefined; hint?: string }

/** A killed push holds up the collection of garbage no longer than this. */
const PIN_MS = 60 * 60_000
/** Commits that one record names. */
const RECORDED_COMMITS = 1_000

export const pushOperation: Operation = {
  name: 'git.push',
  input: 'GitPush',
  kind: 'session',
  open: 'lease',
  needs: (input: Push, parts: Parts) => ({ location: locationOf(parts, homeOf(input, parts)), action: 'list' }),
  run: async (context: Context, input: Push, port: MessagePort) => {
    const home = getHome(context.view, homeOf(input, context)).id
    const lines = input.changes.map((change) => judged(context, home, change))
    if (input.atomic === true && lines.some(({ refused }) => refused !== undefined)) abandon(lines)
    const unpack = await takeIn(context, home, lines, port)
    for (const line of lines) if (line.refused !== undefined) await recordRefusal(context, home, line)
    for (const line of lines)
      if (line.asked?.kind === 'proposal' && line.refused === undefined) await propose(context, home, line)
    const refs = lines.map(({ name, refused, hint }) => ({
      name,
      refused: refused?.toJSON() ?? null,
      ...(hint === undefined ? {} : { hint }),
    }))
    await port.send({ kind: 'report', unpack: unpack?.toJSON() ?? null, refs } satisfies PushEvent)
    await port.close()
  },
}

/** What can be said of a line before its objects are here. */
function judged(context: Context, home: string, change: RefChange): Line {
  try {
    const asked = parseGitName(change.name)
    checkRef(context.view, home, asked)
    if (asked.kind === 'proposal' && change.to === null)
      fail('INVALID_INPUT', { reason: 'a proposal is not deleted by name' })
    if (asked.kind === 'proposal' && getRef(context.view, home, asked.branch)?.protected !== true)
      fail('INVALID_INPUT', { reason: 'that branch is not protected: push to it', branch: asked.branch })
    reach(context, home, asked.kind === 'proposal' ? 'propose' : 'write', { branch: asked.branch })
    if (asked.kind !== 'proposal') {
      const head = currentOid(context.view, home, asked)
      if (head !== change.from) fail('CONFLICT', { name: change.name, expect: change.from, head })
    }
    return { ...change, asked, refused: undefined }
  } catch (error) {
    return { ...change, asked: undefined, refused: toNodeError(error) }
  }
}

/** @throws SCOPE_EXCEEDED */
function reach(
  context: Context,
  home: string,
  action: 'write' | 'propose',
  what: { branch: string; path?: string },
): void {
  const { lease } = context.principal
  const verdict =
    lease === null
      ? { ok: false, field: 'lease' }
      : allows(lease, { location: locationOf(context, home), action, ...what })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: 'field' in verdict ? verdict.field : 'lease', action, ...what })
}

function abandon(lines: readonly Line[]): void {
  for (const line of lines)
    line.refused ??= new NodeError('CONFLICT', { reason: 'another line of the push was refused' })
}

/** Read the pack, check it, store it, move what may move. @returns what was wrong with the pack */
async function takeIn(
  context: Context,
  home: string,
  lines: Line[],
  port: MessagePort,
): Promise<NodeError | undefined> {
  const open = () => lines.filter(({ refused }) => refused === undefined)
  const tips = () => open().flatMap(({ to }) => to ?? [])
  const source = chunksOf(port)
  if (tips().length === 0) {
    // git reads no answer before it has sent everything
    for await (const _ of source) context.signal.throwIfAborted()
    await conclude(context, home, open(), undefined, () => undefined)
    return undefined
  }
  const pinned = context.requestId
  const { clock, store } = context
  try {
    await store.transact((tx) =>
      pinObjects(tx, home, { id: pinned, kind: 'ingest', oids: [], until: clock.now() + PIN_MS }),
    )
    const pack = await receivePack(store, { home, source, onStage: teller(port) })
    try {
      const rules = await rulesOf(context, home, open())
      const history = pack.count === 0 ? checkTips(store, home, tips(), rules) : pack.check(tips(), rules)
      await checkSight(context, home, history)
      const stage = pack.count === 0 ? () => undefined : await pack.store(history)
      await conclude(context, home, open(), history, stage)
      return undefined
    } finally {
      await pack.close()
    }
  } catch (error) {
    const reason = toNodeError(error)
    for (const line of open()) line.refused = reason
    if (reason.code === 'INTERNAL') context.log('error', 'push failed', { error: String(reason.cause) })
    return reason
  } finally {
    await store.transact((tx) => unpin(tx, home, pinned))
  }
}

async function rulesOf(context: Context, home: string, lines: readonly Line[]): Promise<PushRules> {
  const { principal, identity, clearance, store } = context
  const view = store.view()
  const branches = lines.flatMap(({ asked }) => (asked === undefined ? [] : [asked]))
  return {
    heads: [
      ...(await listRefs(view, home)).map(({ commit }) => commit),
      ...(await listTags(view, home)).map(({ commit }) => commit),
      // what a lower reader was shown is whole as well, though no branch leads to it
      ...(seesEverything(clearance) ? [] : (await refsSeen(context, home)).map(({ oid, peeled }) => peeled ?? oid)),
    ],
    onPath: (path) => {
      for (const { kind, branch } of branches) {
        const action = kind === 'proposal' ? 'propose' : 'write'
        reach(context, home, action, { branch, path: `/${path}` })
      }
    },
    onlySeen: !seesEverything(clearance),
    mayCarryTrailers: principal.did === identity.owner.did,
  }
}

/**
 * Who sees a part of the home only can build on what is the same for everybody. On a commit with something hidden in
 * it a push would either show it or take it away.
 * @throws CLEARANCE
 */
async function checkSight(context: Context, home: string, { grounds }: PushedHistory): Promise<void> {
  const { clearance, store } = context
  if (seesEverything(clearance)) return
  for (const commit of grounds) {
    if ((await projectCommit(store, { home, commit, clearance })) !== commit)
      fail('CLEARANCE', { reason: 'the lease does not see all that the commit builds on', commit })
  }
}

/** The transaction of a push: objects, names, record. A line that lost a race is refused alone. */
async function conclude(
  context: Context,
  home: string,
  lines: readonly Line[],
  history: PushedHistory | undefined,
  stage: (tx: Transaction) => void,
): Promise<void> {
  if (lines.length === 0) return
  const { clock } = context
  const commits = (history?.commits ?? []).slice(0, RECORDED_COMMITS)
  await context.write(
    (tx) => {
      stage(tx)
      for (const line of lines) {
        try {
          move(tx, context, home, line, clock.now())
        } catch (error) {
          if (!isNodeError(error)) throw error
          line.refused = error
        }
      }
    },
    () => {
      const done = lines.filter(({ refused }) => refused === undefined)
      const [commit] = done.flatMap(({ to }) => to ?? [])
      return {
        home,
        refs: done.map(({ name, from, to }) => ({ name, from, to })),
        commits,
        new_commits: history?.commits.length ?? 0,
        ...(commit === undefined ? {} : { commit }),
      }
    },
  )
}

function move(tx: Transaction, context: Context, home: string, line: Line, now: number): void {
  if (line.asked?.kind !== 'proposal') {
    changeRef(tx, home, line, now)
    return
  }
  const branch = proposalBranch(context)
  const expect = getRef(tx, home, branch)?.commit ?? null
  moveRef(tx, home, branch, { expect, to: line.to ?? fail('INVALID_INPUT', { name: line.name }), now })
}

/** Ask the gate; its card is the answer, not a refusal. */
async function propose(context: Context, home: string, line: Line): Promise<void> {
  const from = proposalBranch(context)
  try {
    await askGate(context, { kind: 'merge', home, from, into: line.asked?.branch ?? '' })
  } catch (error) {
    const reason = toNodeError(error)
    const { card } = reason.details
    if (reason.code !== 'GATE_REQUIRED') line.refused = reason
    else line.hint = `proposed as ${from}; the owner decides: csb gate show ${String(card)}`
  }
}

const proposalBranch = ({ run }: Context): string => `proposals/${run}`

async function recordRefusal(context: Context, home: string, { name, from, to, refused }: Line): Promise<void> {
  if (refused === undefined) return
  await context.note(refused, { home, name: name.slice(0, LIMITS.pathChars).toWellFormed(), from, to })
}

function teller(port: MessagePort) {
  return (stage: string, objects: number): void => {
    const text = objects === 0 ? stage : `${stage} ${objects} objects`
    port.send({ kind: 'progress', text } satisfies PushEvent).catch(() => undefined)
  }
}

async function* chunksOf(port: MessagePort): AsyncGenerator<Uint8Array> {
  for (let chunk = await port.receive(); chunk !== undefined; chunk = await port.receive()) {
    if (!(chunk instanceof Uint8Array)) fail('MALFORMED', { reason: 'a pack comes as bytes' })
    yield chunk
  }
}
