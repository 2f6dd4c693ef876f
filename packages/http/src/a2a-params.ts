/**
 * Parameters of A2A 1.0 methods as they come from foreign clients: snake_case spellings are read as ProtoJSON
 * demands, and members that A2A requires are asked for, before anything else is done with them.
 */
import { checkSchema, fail, isNodeError } from '@csb/core'
import { isObject } from './route.ts'

type JsonObject = Readonly<Record<string, unknown>>
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
const NAMING = new Set(['GetTask', 'CancelTask', 'SubscribeToTask'])

/**
 * @param method an A2A 1.0 method
 * @returns the parameters in camelCase; what is below `metadata` and `data` is untouched
 * @throws INVALID_INPUT with the path of what is missing or wrong
 */
export function readParams(method: string, value: unknown): JsonObject {
  const given = value ?? {}
  if (!isObject(given)) fail('INVALID_INPUT', { errors: [{ path: '/', message: 'must be an object' }] })
  const params = camel(given, REQUEST)
  if (SENDING.has(method)) checkSend(params)
  if (NAMING.has(method) && (typeof params['id'] !== 'string' || params['id'] === '')) wrong('/id', 'is required')
  return params
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
