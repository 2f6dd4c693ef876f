/**
 * A2A requests as foreign clients write them: snake_case spellings are read as ProtoJSON demands, `tasks/send` as the
 * message it is, and members that A2A requires are asked for, before anything else is done with them. What was signed
 * of a request is its body as it came; what is read here is for doing, never for digests.
 * @clause DEL-002.2.1
 */
import { checkSchema, fail, isNodeError } from '@csb/core'
import { isObject, type JsonObject } from './a2a.ts'
import { TASKS_SEND, fromTasksSend } from './tasks-send.ts'

/** Method and parameters of a JSON-RPC request. */
export type Request = { readonly method: string; readonly params: JsonObject }

/** Members whose names have two spellings, and the members below which there are more. */
type Shape = { readonly members: readonly string[]; readonly inside?: Readonly<Record<string, Shape>> }

const PART: Shape = { members: ['mediaType'] }
const MESSAGE: Shape = {
  members: ['messageId', 'contextId', 'taskId', 'referenceTaskIds'],
  inside: { parts: PART },
}
const CONFIGURATION: Shape = {
  members: ['acceptedOutputModes', 'historyLength', 'returnImmediately', 'taskPushNotificationConfig'],
}
const REQUEST: Shape = {
  members: ['contextId', 'historyLength', 'includeArtifacts', 'pageSize', 'pageToken', 'statusTimestampAfter'],
  inside: { message: MESSAGE, configuration: CONFIGURATION },
}

const SENDING = new Set(['SendMessage', 'SendStreamingMessage'])
const QUESTIONS: Readonly<Record<string, readonly string[]>> = {
  GetTask: ['id', 'historyLength', 'tenant'],
  ListTasks: [
    'contextId',
    'historyLength',
    'includeArtifacts',
    'pageSize',
    'pageToken',
    'status',
    'statusTimestampAfter',
    'tenant',
  ],
  SubscribeToTask: ['id', 'tenant'],
}
const NAMING = new Set(['GetTask', 'CancelTask', 'SubscribeToTask'])

/**
 * @param body the request as it came
 * @param now ms since epoch
 * @returns an A2A 1.0 method with parameters in camelCase; what is below `metadata` and `data` is untouched, and a
 *   method that is not known comes back as it is
 * @throws INVALID_INPUT with the path of what is missing or wrong
 */
export function readRequest(body: Request, now: number): Request {
  const { method, params: given } =
    body.method === TASKS_SEND ? { method: 'SendMessage', params: fromTasksSend(body.params, now) } : body
  const params = camel(given, REQUEST)
  if (SENDING.has(method)) checkSend(params)
  if (NAMING.has(method) && (typeof params['id'] !== 'string' || params['id'] === '')) wrong('/id', 'is required')
  return { method, params }
}

/**
 * A question about tasks as it goes on to another node: the members that A2A knows and no others, so that it carries
 * nothing else out. Whatever is no question comes back as it is.
 */
export function questionOf(body: Request): Request {
  const asked = QUESTIONS[body.method]
  if (asked === undefined) return body
  const told = Object.entries(camel(body.params, REQUEST)).filter(([member]) => asked.includes(member))
  return { method: body.method, params: Object.fromEntries(told) }
}

function checkSend({ message, configuration }: JsonObject): void {
  if (!isObject(message)) wrong('/message', 'is required')
  try {
    checkSchema('A2aMessage', message)
  } catch (error) {
    if (!isNodeError(error, 'INVALID_INPUT')) throw error
    const errors = error.details['errors'] as readonly { path: string }[]
    const below = errors.map((one) => ({ ...one, path: `/message${one.path === '/' ? '' : one.path}` }))
    fail('INVALID_INPUT', { ...error.details, errors: below })
  }
  if (configuration === undefined || configuration === null) return
  if (!isObject(configuration)) wrong('/configuration', 'must be an object')
  const { historyLength } = configuration
  if (historyLength !== undefined && !(Number.isSafeInteger(historyLength) && (historyLength as number) >= 0)) {
    wrong('/configuration/historyLength', 'must be a number that is not negative')
  }
}

function camel(value: JsonObject, shape: Shape): JsonObject {
  const read: Record<string, unknown> = { ...value }
  for (const member of shape.members) {
    const snake = member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    if (!Object.hasOwn(read, snake)) continue
    if (!Object.hasOwn(read, member)) read[member] = read[snake]
    delete read[snake]
  }
  for (const [member, inner] of Object.entries(shape.inside ?? {})) {
    const below = read[member]
    if (Array.isArray(below)) read[member] = below.map((item: unknown) => (isObject(item) ? camel(item, inner) : item))
    else if (isObject(below)) read[member] = camel(below, inner)
  }
  return read
}

function wrong(path: string, message: string): never {
  return fail('INVALID_INPUT', { errors: [{ path, message }] })
}
