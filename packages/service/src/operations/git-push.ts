/**
 * The git view's writing half. A line of a push that may not be is refused before any object is read, and recorded;
 * the rest moves in one transaction with its objects and its record. What is meant for a protected branch becomes a
 * proposal, and the gate is asked.
 * @clause L0.2 L0.5 L1.4
 */
import { LIMITS, fail, toNodeError, type GitText, type NodeError } from '@csb/core'
import { getHome, seesEverything, type RefChange } from '@csb/files'
import { askGate } from '../gate/gates.ts'
import { proposalBranch } from '../git/names.ts'
import { judged, type Line } from '../git/push-lines.ts'
import { takePush } from '../git/push-taking.ts'
import { refsSeen, sightOf } from '../git/view.ts'
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
  | { readonly kind: 'progress'; readonly told: GitText }
  | { readonly kind: 'report'; readonly unpack: Refusal | null; readonly refs: readonly RefReport[] }

type Refusal = ReturnType<NodeError['toJSON']>
export type RefReport = {
  readonly name: string
  /** null: done */
  readonly refused: Refusal | null
  /** for the person who pushed */
  readonly hints: readonly GitText[]
}

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
    const unpack = await takePush(
      { context, home, lines, atomic, refs: shown },
      { source: chunksOf(port), onProgress: teller(port) },
    )
    for (const line of lines) if (line.refused !== undefined) await recordRefusal(context, home, line)
    for (const line of lines)
      if (line.asked?.kind === 'proposal' && line.refused === undefined) await propose(context, home, line)
    const refs = lines.map(({ name, refused, hints = [] }) => ({ name, refused: refused?.toJSON() ?? null, hints }))
    await port.send({ kind: 'report', unpack: unpack?.toJSON() ?? null, refs } satisfies PushEvent)
    await port.close()
  },
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
      line.hints = [...(line.hints ?? []), { text: 'git.proposed', values: { branch: from, card } }]
    }
  }
}

async function recordRefusal(context: Context, home: string, { name, from, to, refused }: Line): Promise<void> {
  if (refused === undefined) return
  await context.note(refused, { home, name: name.slice(0, LIMITS.pathChars).toWellFormed(), from, to })
}

function teller(port: MessagePort) {
  return (told: GitText): void => {
    port.send({ kind: 'progress', told } satisfies PushEvent).catch(() => undefined)
  }
}

async function* chunksOf(port: MessagePort): AsyncGenerator<Uint8Array> {
  for (let chunk = await port.receive(); chunk !== undefined; chunk = await port.receive()) {
    if (!(chunk instanceof Uint8Array)) fail('MALFORMED', { reason: 'a pack comes as bytes' })
    yield chunk
  }
}
