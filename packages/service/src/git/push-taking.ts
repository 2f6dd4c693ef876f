/**
 * What a push brings: read, checked, stored, and its names moved in one transaction with their record.
 * @clause L0.2 L0.5 L1.4
 */
import { fail, isNodeError, toNodeError, type GitText, type NodeError } from '@csb/core'
import {
  changeRef,
  checkTips,
  getRef,
  listRefs,
  listTags,
  marksBehind,
  moveRef,
  pinObjects,
  receivePack,
  unpin,
  type IncomingPack,
  type PushRules,
  type PushedHistory,
} from '@csb/files'
import type { Transaction } from '@csb/store'
import type { Context, Effect } from '../operation.ts'
import { isOwner } from '../session/session.ts'
import { writesAsAgent } from '../session/taint.ts'
import { errorShown } from './ids.ts'
import { blobsOf, land, wordsOf } from './landing.ts'
import { givesOutside, proposalBranch, speaksOutside } from './names.ts'
import { checkPushedLabels, checkPushedTag } from './push-labels.ts'
import { judgeSight, judgeWhole, openLines, reach, type Line, type Work } from './push-lines.ts'

/** Stages what of the pack is not on the disk yet. */
type Stage = (tx: Transaction) => Promise<void>

/** What comes, and who is told how far it is. */
export type Incoming = {
  readonly source: AsyncIterable<Uint8Array>
  onProgress(told: GitText): void
}

/** A killed push holds up the collection of garbage no longer than this. */
const PIN_MS = 60 * 60_000
/** Commits that one record names. */
const RECORDED_COMMITS = 1_000

/** Read the pack, check it, store it, move what may move. @returns what was wrong with the pack */
export async function takePush(work: Work, { source, onProgress }: Incoming): Promise<NodeError | undefined> {
  const { context, home, refs } = work
  const open = () => openLines(work)
  const tips = () => open().flatMap(({ to }) => to ?? [])
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
      onStage: (stage, objects) => onProgress({ text: `git.stage.${stage}`, values: { objects } }),
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

/** @param written is told each path that a commit writes or takes away */
async function rulesOf(work: Work, written: Set<string>): Promise<PushRules> {
  const { context, home, refs } = work
  const view = context.store.view()
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
    mayCarryTrailers: isOwner(context),
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
            await move(tx, context, home, { line, history })
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

async function move(
  tx: Transaction,
  context: Context,
  home: string,
  { line, history }: { readonly line: Line; readonly history: PushedHistory | undefined },
): Promise<void> {
  const now = context.clock.now()
  if (line.asked?.kind === 'tag') checkPushedTag(tx, context)
  if (line.landing !== undefined) {
    line.landed = await land(tx, context, line.landing)
    line.hints = wordsOf(line.name, line.to ?? '', line.landed)
    return
  }
  if (line.asked?.kind !== 'tag' && line.to !== null) {
    const from = line.head ?? getRef(tx, home, line.asked?.branch ?? '')?.commit ?? null
    checkPushedLabels(tx, context, { home, from, to: line.to })
  }
  const marks = line.to === null ? {} : await marksOfPush(tx, context, { home, to: line.to, history })
  if (line.asked?.kind !== 'proposal') {
    const outside = givesOutside(context, tx, line.asked?.branch ?? '')
    changeRef(tx, home, { name: line.name, from: line.head, to: line.to }, { now, outside, ...marks })
    return
  }
  const branch = proposalBranch(context)
  const expect = getRef(tx, home, branch)?.commit ?? null
  moveRef(tx, home, branch, { expect, to: line.to ?? fail('INVALID_INPUT', { name: line.name }), now, ...marks })
}

/** Who builds on words from outside need not have read them, and who gives commits a name need not have made them. */
async function marksOfPush(
  tx: Transaction,
  context: Context,
  pushed: { readonly home: string; readonly to: string; readonly history: PushedHistory | undefined },
) {
  const { home, to, history } = pushed
  const isNew = history?.commits.includes(to) === true
  const behind = await marksBehind(tx, home, [...(isNew ? [] : [to]), ...(history?.grounds ?? [])])
  const isAgents = writesAsAgent(context) && (isNew || !behind.isPlain(to))
  return { words: behind.words || speaksOutside(context, tx), agent: behind.agent || isAgents }
}
