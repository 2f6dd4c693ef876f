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
  checkWhole,
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
  type IncomingPack,
  type PushRules,
  type PushedHistory,
  type RefChange,
} from '@csb/files'
import type { Transaction, View } from '@csb/store'
import { blobsOf, checkPaths, land, landingOf, wordsOf, type Landed, type Landing } from '../git/landing.ts'
import { refsSeen, sightOf, type SeenRef } from '../git/view.ts'
import { askGate } from '../gate/gates.ts'
import { errorShown } from '../git/ids.ts'
import { givesOutside, proposalBranch } from '../git/names.ts'
import { checkPushedLabels, checkPushedTag } from '../git/push-labels.ts'
import { homeOf, locationOf, type Context, type Effect, type Operation, type Parts } from '../operation.ts'
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

/** `head`: what the name stands for, which for a reader of a part is not what it was shown. */
type Line = RefChange & {
  readonly asked: GitName | undefined
  readonly head: string | null
  refused: NodeError | undefined
  hint?: string
  landing?: Landing | undefined
  landed?: Landed
}

/** Stages what of the pack is not on the disk yet. */
type Stage = (tx: Transaction) => Promise<void>

/** A push as all steps of it need it; `refs`: what a reader of a part was shown. */
type Work = {
  readonly context: Context
  readonly home: string
  readonly lines: readonly Line[]
  readonly atomic: boolean
  readonly refs: readonly SeenRef[] | undefined
}

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
    const shown = seesEverything(sightOf(context)) ? undefined : await refsSeen(context, home)
    const lines = input.changes.map((change) => judged(context, home, change, shown))
    const atomic = input.atomic === true
    const unpack = await takeIn({ context, home, lines, atomic, refs: shown }, port)
    for (const line of lines) if (line.refused !== undefined) await recordRefusal(context, home, line)
    for (const line of lines)
      if (line.asked?.kind === 'proposal' && line.refused === undefined) await propose(context, home, line)
    const refs = lines.map(({ name, refused, hint }) => ({
      name,
      refused: refused?.toJSON() ?? null,
      ...(hint === undefined || hint === '' ? {} : { hint }),
    }))
    await port.send({ kind: 'report', unpack: unpack?.toJSON() ?? null, refs } satisfies PushEvent)
    await port.close()
  },
}

/** What can be said of a line before its objects are here. */
function judged(context: Context, home: string, change: RefChange, refs: readonly SeenRef[] | undefined): Line {
  try {
    const asked = parseGitName(change.name)
    checkRef(context.view, home, asked)
    if (asked.kind === 'proposal' && change.to === null)
      fail('INVALID_INPUT', { reason: 'a proposal is not deleted by name' })
    if (asked.kind === 'proposal' && getRef(context.view, home, asked.branch)?.protected !== true)
      fail('INVALID_INPUT', { reason: 'that branch is not protected: push to it', branch: asked.branch })
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

/** @throws SCOPE_EXCEEDED */
function reach(
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

function abandon(lines: readonly Line[]): void {
  for (const line of lines)
    line.refused ??= new NodeError('CONFLICT', { reason: 'another line of the push was refused' })
}

/** Read the pack, check it, store it, move what may move. @returns what was wrong with the pack */
async function takeIn(work: Work, port: MessagePort): Promise<NodeError | undefined> {
  const { context, home, refs } = work
  const open = () => openLines(work)
  const tips = () => open().flatMap(({ to }) => to ?? [])
  const source = chunksOf(port)
  if (tips().length === 0) {
    // git reads no answer before it has sent everything
    for await (const _ of source) context.signal.throwIfAborted()
    await conclude(work, undefined, async () => undefined)
    return undefined
  }
  const pinned = context.requestId
  const { clock, store } = context
  try {
    await store.transact((tx) =>
      pinObjects(tx, home, { id: pinned, kind: 'ingest', oids: [], until: clock.now() + PIN_MS }),
    )
    const pack = await receivePack(store, {
      home,
      source,
      standsAlone: refs !== undefined,
      onStage: teller(port),
    })
    try {
      const written = new Set<string>()
      const rules = await rulesOf(work, written)
      const history = pack.count === 0 ? checkTips(store, home, tips(), rules) : pack.check(tips(), rules)
      for (const line of open()) judgeSight(work, line, { view: pack.view, history }, written)
      for (const line of open()) await judgeWhole(home, line, pack.view)
      await conclude(work, history, await storeFor(work, pack, history))
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

/** Lines that stand; of an atomic push all or none. */
function openLines({ lines, atomic }: Work): Line[] {
  if (atomic && lines.some(({ refused }) => refused !== undefined)) abandon(lines)
  return lines.filter(({ refused }) => refused === undefined)
}

/** @param written is told each path that a commit writes or takes away */
async function rulesOf(work: Work, written: Set<string>): Promise<PushRules> {
  const { context, home, refs } = work
  const { principal, identity, store } = context
  const view = store.view()
  const branches = openLines(work).flatMap(({ asked }) => (asked === undefined ? [] : [asked]))
  return {
    heads:
      refs === undefined
        ? [...(await listRefs(view, home)), ...(await listTags(view, home))].map(({ commit }) => commit)
        : // what is not shown is not there, and what is shown is whole though no branch may lead to it
          refs.map(({ oid, peeled }) => peeled ?? oid),
    onPath: (path) => {
      written.add(path)
      for (const { kind, branch } of branches) {
        const action = kind === 'proposal' ? 'propose' : 'write'
        reach(context, home, action, { branch, path: `/${path}` })
      }
    },
    onlySeen: refs !== undefined,
    mayCarryTrailers: principal.did === identity.owner.did,
  }
}

/** Whether a line of a reader of a part goes in as it is, or lands on what is hidden. */
function judgeSight(
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
async function judgeWhole(home: string, line: Line, pushed: View): Promise<void> {
  const { asked, landing, to } = line
  if (to === null || landing !== undefined || asked?.kind === 'proposal') return
  try {
    await checkWhole(pushed, home, to)
  } catch (error) {
    line.refused = toNodeError(error)
  }
}

/** Store what the lines that stand need. @returns stages the rest */
async function storeFor(work: Work, pack: IncomingPack, history: PushedHistory): Promise<Stage> {
  const lines = openLines(work)
  const landings = lines.flatMap(({ landing }) => landing ?? [])
  const isAllLanding = lines.every(({ landing, to }) => landing !== undefined || to === null)
  return pack.count === 0
    ? async () => undefined
    : pack.store(isAllLanding ? { objects: blobsOf(landings, history) } : history)
}

/**
 * The transaction of a push: objects, names, record. A line that lost a race is refused alone, but where all stand or
 * fall together, and where a line lands in several steps of which some may have been made.
 */
async function conclude(work: Work, history: PushedHistory | undefined, stage: Stage): Promise<void> {
  const { context, home, atomic } = work
  const lines = openLines(work)
  if (lines.length === 0) return
  const isOne = atomic || lines.some(({ landing }) => landing !== undefined)
  try {
    await context.write(
      async (tx) => {
        await stage(tx)
        for (const line of lines) {
          try {
            await move(tx, context, home, line)
          } catch (error) {
            if (isOne || !isNodeError(error)) throw error
            line.refused = errorShown(context, error)
          }
        }
      },
      () => effectOf(home, lines, history),
    )
  } catch (error) {
    if (!isOne || !isNodeError(error)) throw error
    for (const line of lines) line.refused = errorShown(context, error)
  }
}

function effectOf(home: string, lines: readonly Line[], history: PushedHistory | undefined): Effect {
  const done = lines.filter(({ refused }) => refused === undefined)
  const [commit] = done.flatMap(({ landed, to }) => landed?.commit ?? to ?? [])
  return {
    home,
    refs: done.map(({ name, head, to, landed }) =>
      landed === undefined ? { name, from: head, to } : { name, from: head, to: landed.commit, pushed: to },
    ),
    commits: (history?.commits ?? []).slice(0, RECORDED_COMMITS),
    new_commits: history?.commits.length ?? 0,
    ...(commit === undefined ? {} : { commit }),
  }
}

async function move(tx: Transaction, context: Context, home: string, line: Line): Promise<void> {
  const now = context.clock.now()
  if (line.asked?.kind === 'tag') checkPushedTag(tx, context)
  if (line.landing !== undefined) {
    const from = getRef(tx, home, line.landing.branch)?.commit ?? null
    line.landed = await land(tx, context, line.landing)
    checkPushedLabels(tx, context, { home, from, to: line.landed.commit })
    line.hint = wordsOf(line.name, line.to ?? '', line.landed).join('\n')
    return
  }
  if (line.asked?.kind !== 'tag' && line.to !== null) {
    const from = line.head ?? getRef(tx, home, line.asked?.branch ?? '')?.commit ?? null
    checkPushedLabels(tx, context, { home, from, to: line.to })
  }
  if (line.asked?.kind !== 'proposal') {
    const outside = givesOutside(context, tx, line.asked?.branch ?? '')
    changeRef(tx, home, { name: line.name, from: line.head, to: line.to }, { now, outside })
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
    else {
      const proposed = `proposed as ${from}; the owner decides: csb gate show ${String(card)}`
      line.hint = [line.hint ?? '', proposed].filter((words) => words !== '').join('\n')
    }
  }
}

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
