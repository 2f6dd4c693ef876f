/**
 * The A2A gateway: JSON-RPC 2.0 on `POST /a2a/{agent}` and, for agents of other nodes, `POST /a2a/{did}/{agent}`.
 *
 * A2A 1.0 and `tasks/send` are answered here, 0.3 by the compatibility layer. A body is handed on as it came. Errors
 * before a stream are plain JSON; within one they are its last event.
 */
import type { Context } from 'hono'
import { EXTENSIONS, toNodeError } from '@csb/core'
import { createAgentCall, isStreaming, isUnary, type AgentCall, type StreamingMethod } from './a2a-call.ts'
import { RpcFault, rpcErrorOf, rpcErrorResponse, type RpcId } from './a2a-errors.ts'
import { answerLegacy, legacyErrorOf } from './a2a-legacy.ts'
import { jsonResponse } from './problem.ts'
import { isObject, logFault, type Desk, type Handler } from './route.ts'
import { eventStream, type ServerEvent } from './sse.ts'
import { callerOf, readJson, requestIdOf } from './visit.ts'

export const A2A_HANDLERS: readonly Handler[] = [
  {
    method: 'POST',
    path: '/a2a/{agent}',
    summary: 'A2A JSON-RPC to an agent of this node',
    open: false,
    body: 'JsonRpcRequest',
    handle: (c, desk) => answer(c, desk),
  },
  {
    method: 'POST',
    path: '/a2a/{did}/{agent}',
    summary: 'A2A JSON-RPC to an agent of another node',
    open: false,
    body: 'JsonRpcRequest',
    handle: (c, desk) => answer(c, desk),
  },
]

const SUPPORTED_EXTENSIONS = [EXTENSIONS.authority]
const PUSH_METHODS = new Set([
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
])

type RpcRequest = {
  readonly id: RpcId
  readonly method: string
  readonly params: unknown
  readonly body: Readonly<Record<string, unknown>>
}

/** One request on its way. */
type Exchange = {
  readonly desk: Desk
  readonly request: RpcRequest
  readonly call: AgentCall
  readonly requestId: string
  readonly asked: readonly string[]
}

async function answer(c: Context, desk: Desk): Promise<Response> {
  const { headers } = c.req.raw
  const requestId = requestIdOf(headers, desk.clock)
  let id: RpcId = null
  try {
    const caller = callerOf(headers)
    const body = await readJson(c)
    id = idOf(body)
    const request = readRequest(body)
    const signal = AbortSignal.any([c.req.raw.signal, desk.closing])
    const did = c.req.param('did')
    const address = { agent: c.req.param('agent') ?? '', ...(did === undefined ? {} : { did }) }
    const call = createAgentCall({ service: desk.service, caller, address, requestId, signal })
    const asked = listOf(headers.get('a2a-extensions'))
    return await dispatch({ desk, request, call, requestId, asked }, versionOf(c))
  } catch (error) {
    // a client's fault in the protocol is told to the client alone
    if (error instanceof RpcFault) return rpcErrorResponse(id, error, requestId)
    logFault(desk, error, requestId, '/a2a')
    return rpcErrorResponse(id, toNodeError(error), requestId)
  }
}

async function dispatch(exchange: Exchange, version: string): Promise<Response> {
  const { request, call, requestId } = exchange
  const { method, params } = request
  // the one method of the CSB document, which knows no versions
  if (method === 'tasks/send') return success(exchange, await call.ask(method, params))
  if (version === '0.3') return legacy(exchange)
  if (version !== '1.0') throw new RpcFault('VERSION_NOT_SUPPORTED', { version, supported: '1.0, 0.3' })
  if (PUSH_METHODS.has(method)) throw new RpcFault('PUSH_NOTIFICATION_NOT_SUPPORTED')
  if (method === 'GetExtendedAgentCard') throw new RpcFault('EXTENDED_AGENT_CARD_NOT_CONFIGURED')
  if (isUnary(method)) return success(exchange, await call.ask(method, params))
  if (isStreaming(method)) return stream(exchange, method, params)
  throw new RpcFault('METHOD_NOT_FOUND', { method: method.slice(0, 128), requestId })
}

function success(exchange: Exchange, result: unknown): Response {
  const { request, requestId } = exchange
  return jsonResponse({ jsonrpc: '2.0', id: request.id, result }, 200, {
    'X-Request-Id': requestId,
    ...activated(exchange, result),
  })
}

/** The first event is awaited before the status is sent, so that what fails at once is a plain error. */
async function stream(exchange: Exchange, method: StreamingMethod, params: unknown): Promise<Response> {
  const { request, call, requestId, desk } = exchange
  const wrap = (result: unknown): ServerEvent => ({
    id: generationOf(result),
    json: { jsonrpc: '2.0', id: request.id, result },
  })
  const source = call.follow(method, params)[Symbol.asyncIterator]()
  const first = await source.next()
  const events = guard(rest(source), wrap, (error) => {
    logFault(desk, error, requestId, '/a2a')
    return { jsonrpc: '2.0', id: request.id, error: rpcErrorOf(toNodeError(error), requestId) }
  })
  return eventStream({
    events,
    first: first.done === true ? { done: true, value: undefined } : { done: false, value: wrap(first.value) },
    heartbeatMs: desk.heartbeatMs,
    headers: { 'X-Request-Id': requestId, ...activated(exchange, first.value) },
  })
}

async function legacy({ request, call, requestId, desk }: Exchange): Promise<Response> {
  if (isUnary(request.method) || isStreaming(request.method)) {
    throw new RpcFault('METHOD_NOT_FOUND', { method: request.method, hint: 'send the header A2A-Version: 1.0' })
  }
  const answered = await answerLegacy(request.body, call, requestId)
  if (!isStream(answered)) return jsonResponse(answered, 200, { 'X-Request-Id': requestId })
  const source = answered[Symbol.asyncIterator]()
  let first: IteratorResult<object, unknown>
  try {
    first = await source.next()
  } catch (error) {
    return jsonResponse({ jsonrpc: '2.0', id: request.id, error: errorOfLayer(error, requestId) }, 200, {
      'X-Request-Id': requestId,
    })
  }
  const wrap = (json: unknown): ServerEvent => ({ json })
  const events = guard(rest(source), wrap, (error) => ({
    jsonrpc: '2.0',
    id: request.id,
    error: errorOfLayer(error, requestId),
  }))
  return eventStream({
    events,
    first: first.done === true ? { done: true, value: undefined } : { done: false, value: wrap(first.value) },
    heartbeatMs: desk.heartbeatMs,
    headers: { 'X-Request-Id': requestId },
  })
}

/** Events as they go out; an error becomes the last of them. */
async function* guard(
  source: AsyncIterable<unknown>,
  wrap: (item: unknown) => ServerEvent,
  failure: (error: unknown) => object,
): AsyncGenerator<ServerEvent, void, undefined> {
  try {
    for await (const item of source) yield wrap(item)
  } catch (error) {
    yield { json: failure(error) }
  }
}

const rest = (source: AsyncIterator<unknown>): AsyncIterable<unknown> => ({ [Symbol.asyncIterator]: () => source })

/** @throws RpcFault */
function readRequest(body: unknown): RpcRequest {
  if (Array.isArray(body)) throw new RpcFault('BATCH_NOT_SUPPORTED')
  if (!isObject(body)) throw new RpcFault('INVALID_REQUEST')
  const { jsonrpc, method, id, params } = body
  const isNamed = typeof method === 'string' && method !== ''
  // a notification has no id; whether it was taken could never be told, so it is not
  if (jsonrpc !== '2.0' || !isNamed || !isRpcId(id)) throw new RpcFault('INVALID_REQUEST')
  return { id, method, params, body }
}

const isRpcId = (id: unknown): id is RpcId => id === null || typeof id === 'string' || Number.isSafeInteger(id)

const idOf = (body: unknown): RpcId => (isObject(body) && isRpcId(body['id']) ? body['id'] : null)

/** Major and minor of the version asked for, by header or query; none is 0.3, and a patch number changes nothing. */
function versionOf(c: Context): string {
  const asked = (c.req.header('a2a-version') ?? c.req.query('A2A-Version') ?? '').trim()
  if (asked === '') return '0.3'
  return /^(\d{1,4}\.\d{1,4})(?:\.\d{1,9})?$/.exec(asked)?.[1] ?? asked.slice(0, 32)
}

const listOf = (header: string | null): string[] =>
  (header ?? '')
    .split(',')
    .map((uri) => uri.trim())
    .filter((uri) => uri !== '')

/** Extensions that were asked for and took effect: authority that failed a check did not. */
function activated({ asked }: Exchange, result: unknown): Record<string, string> {
  const active = SUPPORTED_EXTENSIONS.filter((uri) => asked.includes(uri) && !isRefused(result, uri))
  return active.length === 0 ? {} : { 'A2A-Extensions': active.join(', ') }
}

function isRefused(result: unknown, uri: string): boolean {
  const mark = metadataOf(result)[uri]
  return isObject(mark) && mark['accepted'] === false
}

const generationOf = (event: unknown): string | undefined => {
  const generation = metadataOf(event)[EXTENSIONS.generation]
  return typeof generation === 'number' ? String(generation) : undefined
}

/** Metadata of what an answer or event holds. */
function metadataOf(result: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(result)) return {}
  const inner = result['task'] ?? result['statusUpdate'] ?? result['artifactUpdate'] ?? result['message'] ?? result
  return isObject(inner) && isObject(inner['metadata']) ? inner['metadata'] : {}
}

const isStream = (answered: object): answered is AsyncGenerator<object, void, undefined> =>
  Symbol.asyncIterator in answered

/** Errors that passed through the compatibility layer carry our code in `envelopeCode`. */
function errorOfLayer(error: unknown, requestId: string): object {
  const { envelopeCode, message } = error as { envelopeCode?: unknown; message?: string }
  return typeof envelopeCode === 'number' ? { code: envelopeCode, message } : legacyErrorOf(error, requestId)
}
