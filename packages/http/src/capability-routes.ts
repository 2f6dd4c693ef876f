/**
 * Capabilities after the agent interoperability document: what agents here can do, and calling one by name.
 * A capability is a skill of an attached agent; a call is an A2A message to it that waits for the end.
 * @clause IOP-3, IOP-4.1, IOP-4.2
 */
import type { Context } from 'hono'
import { EXTENSIONS, LIMITS, deadline, errorFromJSON, fail, newId, toNodeError, type NodeError } from '@csb/core'
import { jsonResponse, headersOf } from './problem.ts'
import { isObject, logFault, type Desk, type Handler } from './route.ts'
import { callerOf, readJson, requestIdOf } from './visit.ts'

type JsonObject = Readonly<Record<string, unknown>>
type Skill = { readonly id: string; readonly name: string; readonly description: string }
type Listed = { readonly id: string; readonly name: string; readonly skills: readonly Skill[] }

export const CAPABILITY_HANDLERS: readonly Handler[] = [
  {
    method: 'GET',
    path: '/capabilities',
    summary: 'Capabilities of the agents here',
    open: false,
    handle: (c, desk) => inForm(c, desk, list),
  },
  {
    method: 'POST',
    path: '/invoke/{capability}',
    summary: 'Call a capability and wait for its output',
    open: false,
    body: 'Invocation',
    handle: (c, desk) => inForm(c, desk, invoke),
  },
]

/** `protocol_version`: major.minor of the document. */
const PROTOCOL_VERSION = '1.0'
const OUTPUT_SCHEMA = { type: 'object', properties: { text: { type: 'string' } } }

/** Every answer of these routes, errors too, has the document's form. */
async function inForm(
  c: Context,
  desk: Desk,
  work: (c: Context, desk: Desk, requestId: string) => Promise<Response>,
): Promise<Response> {
  const requestId = requestIdOf(c.req.raw.headers, desk.clock)
  try {
    checkVersion(c.req.header('x-api-version'))
    return await work(c, desk, requestId)
  } catch (error) {
    logFault(desk, error, requestId, c.req.path)
    return errorForm(toNodeError(error), requestId)
  }
}

/** @clause IOP-5 */
function checkVersion(asked: string | undefined): void {
  if (asked === undefined || asked.trim() === '') return
  if (asked.trim().split('.')[0] !== PROTOCOL_VERSION.split('.')[0]) {
    fail('VERSION_MISMATCH', { version: asked.slice(0, 32), understood: PROTOCOL_VERSION })
  }
}

async function list(c: Context, desk: Desk, requestId: string): Promise<Response> {
  const agents = await agentsOf(c, desk, requestId)
  const face = agents.find(({ id }) => id === desk.defaultAgent()) ?? agents[0]
  return jsonResponse({
    agent_id: face?.id ?? '',
    agent_name: face?.name ?? '',
    protocol_version: PROTOCOL_VERSION,
    capabilities: agents.flatMap((agent) =>
      agent.skills.map(({ id, name, description }) => ({
        id,
        name,
        description,
        agent_id: agent.id,
        input_schema: { type: 'object' },
        output_schema: OUTPUT_SCHEMA,
        evidence_required: false,
      })),
    ),
  })
}

async function invoke(c: Context, desk: Desk, requestId: string): Promise<Response> {
  const capability = c.req.param('capability') ?? ''
  const body = await readJson(c)
  if (!isObject(body) || !isObject(body['input']))
    fail('INVALID_INPUT', { errors: [{ path: '/input', message: 'is required' }] })
  const options = isObject(body['options']) ? body['options'] : {}
  const signal = AbortSignal.any([c.req.raw.signal, desk.closing, deadline(timeoutOf(options))])
  const agent = (await agentsOf(c, desk, requestId)).find(({ skills }) => skills.some(({ id }) => id === capability))
  if (agent === undefined) fail('NOT_FOUND', { capability: capability.slice(0, 64) })
  const message = {
    // an id the caller chose makes the call safe to repeat
    messageId: c.req.header('x-request-id') === requestId ? requestId : newId('message', desk.clock.now()),
    role: 'ROLE_USER',
    parts: [{ data: body['input'] }],
    metadata: { [EXTENSIONS.interop]: { capability, options, caller_info: body['caller_info'] ?? null } },
  }
  const input = { agent: agent.id, params: { message } }
  const sent = desk.service.perform(callerOf(c.req.raw.headers), 'agents.send', input, { requestId, signal })
  const { task } = (await untilAborted(sent, signal)) as { task?: JsonObject }
  return jsonResponse({
    status: 'success',
    request_id: requestId,
    output: outputOf(task ?? {}),
    version: PROTOCOL_VERSION,
  })
}

async function agentsOf(c: Context, desk: Desk, requestId: string): Promise<readonly Listed[]> {
  const { items } = (await desk.service.perform(callerOf(c.req.raw.headers), 'agents.list', {}, { requestId })) as {
    items: readonly Listed[]
  }
  return items
}

function timeoutOf(options: JsonObject): number {
  const { timeout_sec: seconds } = options
  if (seconds === undefined) return LIMITS.agentTimeoutMs
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds * 1000 > LIMITS.agentTimeoutMaxMs) {
    fail('INVALID_INPUT', { errors: [{ path: '/options/timeout_sec', message: 'is out of range' }] })
  }
  return Math.ceil(seconds * 1000)
}

/** The caller is answered at its deadline even where the service still tidies up. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(toNodeError(signal.reason)), { once: true })
  })
  work.catch(() => undefined)
  return Promise.race([work, aborted])
}

/**
 * What an ended task holds: an object of its data, and its texts as `text`.
 * @throws the code the task failed with; TIMEOUT where it has not ended
 */
function outputOf(task: JsonObject): JsonObject {
  const status = isObject(task['status']) ? task['status'] : {}
  if (status['state'] !== 'TASK_STATE_COMPLETED') throw failureOf(task, status)
  const output: Record<string, unknown> = {}
  const texts: string[] = []
  for (const part of partsOf(task)) {
    if (typeof part['text'] === 'string') texts.push(part['text'])
    if (isObject(part['data'])) Object.assign(output, part['data'])
    else if (part['data'] !== undefined) output['value'] = part['data']
  }
  return texts.length === 0 || 'text' in output ? output : { text: texts.join('\n'), ...output }
}

function partsOf(task: JsonObject): readonly JsonObject[] {
  const artifacts = Array.isArray(task['artifacts']) ? (task['artifacts'] as readonly unknown[]) : []
  return artifacts
    .filter(isObject)
    .flatMap(({ parts }) => (Array.isArray(parts) ? (parts as readonly unknown[]) : []))
    .filter(isObject)
}

function failureOf(task: JsonObject, status: JsonObject): NodeError {
  const metadata = isObject(task['metadata']) ? task['metadata'] : {}
  if (isObject(metadata[EXTENSIONS.error])) return errorFromJSON(metadata[EXTENSIONS.error])
  const { state } = status
  const codes: Readonly<Record<string, string>> = {
    TASK_STATE_SUBMITTED: 'TIMEOUT',
    TASK_STATE_WORKING: 'TIMEOUT',
    TASK_STATE_REJECTED: 'DENIED',
    TASK_STATE_INPUT_REQUIRED: 'UNSUPPORTED_OPERATION',
    TASK_STATE_AUTH_REQUIRED: 'UNSUPPORTED_OPERATION',
  }
  return errorFromJSON({ code: codes[String(state)] ?? 'AGENT_FAILED', details: { task: task['id'], state } })
}

/** @clause IOP-4.3 */
function errorForm(error: NodeError, requestId: string): Response {
  const { code, message, row } = error
  return jsonResponse(
    { status: 'error', request_id: requestId, error: { code, message, retryable: row.retryable } },
    row.status,
    headersOf(error),
  )
}
