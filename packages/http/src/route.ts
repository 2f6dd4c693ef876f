/**
 * REST routes as a table: each row names one operation, and that is all it does. The operation's input is what
 * the path, the query and the body say together; the path wins. Whether it fits is for the service to judge.
 */
import type { Context, Hono } from 'hono'
import { SCHEMAS, fail, toNodeError, type Clock } from '@csb/core'
import type { Service } from '@csb/service'
import { jsonResponse } from './problem.ts'
import { callerOf, readJson, requestIdOf } from './visit.ts'

/** Structured, no secrets, no content. */
export type HttpLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** What every route can use. */
export type Desk = {
  readonly service: Service
  readonly clock: Clock
  readonly log: HttpLog
  /** id of the agent whose card is the node's; undefined: the service chooses */
  readonly defaultAgent: () => string | undefined
  /** silence on a stream is filled this often, in ms */
  readonly heartbeatMs: number
  /** fires when the listener closes */
  readonly closing: AbortSignal
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A row: one call of `service.perform`. */
export type Route = {
  readonly method: Method
  /** OpenAPI form: `/v1/memory/{id}`; a `{name+}` also takes slashes */
  readonly path: string
  readonly operation: string
  /** definition in schemas/operations-v1 */
  readonly input: string
  readonly summary: string
  /** status where it worked, default 200 */
  readonly status?: 201
  /** members the request need not name */
  readonly defaults?: Readonly<Record<string, unknown>>
  /** Another form of the body that is also taken. */
  readonly reads?: (body: unknown) => unknown
  /** schema of that other form */
  readonly bare?: object
}

/** A route that speaks its own protocol and handles its own errors. */
export type Handler = {
  readonly method: Method
  readonly path: string
  readonly summary: string
  /** no token needed */
  readonly open: boolean
  /** name of a component schema of the body */
  readonly body?: string
  readonly handle: (c: Context, desk: Desk) => Promise<Response> | Response
}

type Property = { readonly type?: unknown }
type Definition = { readonly properties?: Readonly<Record<string, Property>>; readonly required?: readonly string[] }

const OPERATIONS = (SCHEMAS['Operations'] as { $defs: Readonly<Record<string, Definition>> }).$defs

/** The schema of an operation's input. */
export function definitionOf(input: string): Definition {
  return OPERATIONS[input] ?? fail('INTERNAL', { reason: 'no such schema', input })
}

/** `/v1/memory/{id}` as Hono spells it. */
export const patternOf = (path: string): string =>
  path.replaceAll(/\{(\w+)\+\}/g, ':$1{.+}').replaceAll(/\{(\w+)\}/g, ':$1')

/** Names of the members that stand in the path. */
export const pathMembers = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\+?\}/g)].map((match) => match[1] ?? '')

export const takesBody = ({ method }: { readonly method: Method }): boolean => method === 'POST' || method === 'PUT'

/** Put rows into an app. */
export function mountRoutes(app: Hono, routes: readonly Route[], desk: Desk): void {
  for (const route of routes) {
    app.on(route.method, patternOf(route.path), async (c) => {
      const requestId = requestIdOf(c.req.raw.headers, desk.clock)
      const caller = callerOf(c.req.raw.headers)
      const input = await inputOf(route, c)
      const signal = AbortSignal.any([c.req.raw.signal, desk.closing])
      const result = await desk.service.perform(caller, route.operation, input, { requestId, signal })
      return jsonResponse(result ?? null, route.status ?? 200)
    })
  }
}

/** Put handlers into an app. */
export function mountHandlers(app: Hono, handlers: readonly Handler[], desk: Desk): void {
  for (const { method, path, handle } of handlers) app.on(method, patternOf(path), (c) => handle(c, desk))
}

/** Tell the log of an error that is a fault of this node. */
export function logFault(desk: Desk, error: unknown, requestId: string, path: string): void {
  const { code, cause } = toNodeError(error)
  if (code !== 'INTERNAL') return
  const reason = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  desk.log('error', 'request failed', { request_id: requestId, path, error: reason.slice(0, 2_000) })
}

async function inputOf(route: Route, c: Context): Promise<unknown> {
  const { properties = {} } = definitionOf(route.input)
  const given: Record<string, unknown> = { ...route.defaults }
  if (takesBody(route)) {
    const body = (await readJson(c)) ?? {}
    const read = route.reads === undefined ? body : route.reads(body)
    if (!isObject(read)) fail('INVALID_INPUT', { errors: [{ path: '/', message: 'must be an object' }] })
    Object.assign(given, read)
  }
  for (const [name, values] of Object.entries(c.req.queries())) {
    if (values.length > 1) fail('INVALID_INPUT', { errors: [{ path: `/${name}`, message: 'is given more than once' }] })
    given[name] = valueOf(properties[name], values[0] ?? '')
  }
  for (const name of pathMembers(route.path)) given[name] = valueOf(properties[name], c.req.param(name) ?? '')
  return given
}

/** Text of a URL as the type the schema asks for; what can not be read so stays text, and the schema refuses it. */
function valueOf(property: Property | undefined, text: string): unknown {
  if (property?.type === 'integer' && /^-?[0-9]{1,16}$/.test(text)) return Number(text)
  if (property?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if (property?.type === 'array') return text.split(',')
  return text
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
