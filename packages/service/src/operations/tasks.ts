/** A2A operations: send, stream, get, list, cancel, subscribe, for agents here and elsewhere; and inbound envelopes. */
import { TASKS_SEND, checkEnvelope, questionOf, readRequest, type JsonObject } from '@csb/agents'
import type { Rank } from '@csb/authority'
import type { Envelope } from '@csb/core'
import { answer, answerStream, isStreaming } from '../messages/answers.ts'
import type { Arrival } from '../messages/messages.ts'
import { homeOf, isHere, locationOf, type Context, type Operation, type Parts } from '../operation.ts'
import { askOut, sendOut, type Outbound } from '../messages/outbound.ts'
import type { EnvelopeReply } from '../peers.ts'
import { takeInAnswer } from '../session/told.ts'

type Addressed = {
  readonly agent: string
  readonly did?: string
  readonly params: JsonObject
  readonly delegation?: string
  readonly level?: Rank
  readonly scope?: readonly string[]
}

/** Speaking with somebody's authority takes more than the right to send. */
const sending = (input: Partial<Addressed>, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'send' as const,
  ...(input.delegation === undefined && input.level === undefined && input.scope === undefined
    ? {}
    : { capability: 'C' as const }),
})

function arrivalOf(context: Context, input: Addressed, method: string): Arrival {
  const body = { method, params: input.params }
  const request = readRequest(body, context.clock.now())
  return { agent: input.agent, owner: context.principal.did ?? context.key.did, body, request }
}

function outboundOf(input: Addressed, method: string): Outbound {
  const { did = '', agent, params, delegation, level, scope } = input
  return {
    did,
    agent,
    body: questionOf({ method, params }),
    ...(delegation === undefined ? {} : { delegation }),
    ...(level === undefined ? {} : { level }),
    ...(scope === undefined ? {} : { scope }),
  }
}

/** What another node answers. */
const hearing = (input: Addressed, parts: Parts): string | undefined =>
  isHere(input, parts) ? undefined : `answer of ${input.agent} at ${input.did}`

const LOOKS = { looks: isHere } as const

const unary = (name: string, method: string, input: string, more: Pick<Operation, 'looks'> = {}): Operation => ({
  ...more,
  name,
  input,
  kind: 'call',
  open: 'lease',
  needs: sending,
  hears: hearing,
  run: async (context: Context, asked: Addressed) => {
    if (isHere(asked, context)) return takeInAnswer(context, await answer(context, arrivalOf(context, asked, method)))
    return askOut(context, outboundOf(asked, method))
  },
})

const streaming = (name: string, method: string, input: string, more: Pick<Operation, 'looks'> = {}): Operation => ({
  ...more,
  name,
  input,
  kind: 'stream',
  open: 'lease',
  needs: sending,
  hears: hearing,
  run: async function* (context: Context, asked: Addressed) {
    if (isHere(asked, context)) {
      for await (const event of answerStream(context, arrivalOf(context, asked, method)))
        yield takeInAnswer(context, event)
      return
    }
    yield* sendOut(context, outboundOf(asked, method))
  },
})

export const taskOperations: readonly Operation[] = [
  unary('agents.send', 'SendMessage', 'AgentsSend'),
  unary('agents.tasksSend', TASKS_SEND, 'AgentsTask'),
  unary('agents.getTask', 'GetTask', 'AgentsTask', LOOKS),
  unary('agents.listTasks', 'ListTasks', 'AgentsTask', LOOKS),
  unary('agents.cancelTask', 'CancelTask', 'AgentsTask'),
  streaming('agents.stream', 'SendStreamingMessage', 'AgentsSend'),
  streaming('agents.subscribe', 'SubscribeToTask', 'AgentsTask', LOOKS),
  {
    name: 'agents.deliver',
    input: 'AgentsDeliver',
    kind: 'stream',
    open: 'peer',
    run: async function* (context: Context, input: { envelope: unknown }): AsyncGenerator<EnvelopeReply> {
      const peer = context.principal.did ?? ''
      const envelope = checkEnvelope(input.envelope, { peer, self: context.key.did, now: context.clock.now() })
      const arrival = arrivalOfEnvelope(envelope, context.clock.now())
      const reply = (result: unknown, done: boolean): EnvelopeReply => ({
        id: envelope.id,
        body: { jsonrpc: '2.0', id: envelope.body.id ?? null, result },
        done,
      })
      if (!isStreaming(envelope.body.method)) {
        yield reply(await answer(context, arrival), true)
        return
      }
      for await (const event of answerStream(context, arrival)) yield reply(event, false)
      yield { id: envelope.id, body: null, done: true }
    },
  },
]

function arrivalOfEnvelope(envelope: Envelope, now: number): Arrival {
  const body = { method: envelope.body.method, params: envelope.body.params ?? {} }
  return {
    agent: envelope.agent,
    owner: envelope.from,
    until: envelope.sent_at + envelope.ttl,
    body,
    request: readRequest(body, now),
    ...(envelope.authority === undefined ? {} : { beside: envelope.authority }),
  }
}
