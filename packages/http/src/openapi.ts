/** The OpenAPI 3.1 document: assembled from the tables of routes and the schemas, so it can say nothing else than they do. */
import { ERRORS, SCHEMAS } from '@csb/core'
import { definitionOf, pathMembers, takesBody, type Handler, type Route } from './route.ts'

type JsonObject = Readonly<Record<string, unknown>>

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'retryable', 'request_id'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', enum: Object.keys(ERRORS) },
    retryable: { type: 'boolean' },
    request_id: { type: 'string' },
    details: { type: 'object' },
  },
}

const INVOCATION = {
  type: 'object',
  required: ['input'],
  properties: {
    input: { type: 'object' },
    caller_info: { type: 'object', properties: { agent_id: { type: 'string' }, session_id: { type: 'string' } } },
    options: {
      type: 'object',
      properties: {
        timeout_sec: { type: 'number' },
        max_tokens: { type: 'integer' },
        evidence_level: { type: 'string', enum: ['basic', 'full'] },
      },
    },
  },
}

const FAILURE = {
  description: 'a problem',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

/** @param serverUrl where the API is */
export function openapiDocument(routes: readonly Route[], handlers: readonly Handler[], serverUrl: string): JsonObject {
  const paths: Record<string, Record<string, unknown>> = {}
  const add = (path: string, method: string, operation: unknown) => {
    const plain = path.replaceAll('+}', '}')
    paths[plain] = { ...paths[plain], [method.toLowerCase()]: operation }
  }
  const named = new Set<string>()
  for (const route of routes) {
    const id = `${route.operation}${route.path.endsWith('+}') ? '.at' : ''}`
    // a second way to the same operation is told by its verb
    add(route.path, route.method, ofRoute(route, named.has(id) ? `${id}.${route.method.toLowerCase()}` : id))
    named.add(id)
  }
  for (const handler of handlers) add(handler.path, handler.method, ofHandler(handler))
  return {
    openapi: '3.1.0',
    info: { title: 'csb', version: '0.1.0', description: 'A peer-to-peer home for AI agents' },
    servers: [{ url: serverUrl }],
    security: [{ lease: [] }],
    paths,
    components: {
      securitySchemes: { lease: { type: 'http', scheme: 'bearer' } },
      schemas: { ...componentsOf(routes), Problem: PROBLEM, Invocation: INVOCATION, JsonRpcRequest: rpcRequest() },
    },
  }
}

function ofRoute(route: Route, operationId: string): JsonObject {
  const { properties = {}, required = [] } = definitionOf(route.input)
  const inPath = pathMembers(route.path)
  const rest = Object.keys(properties).filter((name) => !inPath.includes(name))
  const inQuery = takesBody(route) ? rest.filter((name) => name === 'home') : rest
  const isNeeded = (name: string) => required.includes(name) && route.defaults?.[name] === undefined
  return {
    operationId,
    summary: route.summary,
    parameters: [
      ...inPath.map((name) => ({ name, in: 'path', required: true, schema: properties[name] ?? {} })),
      ...inQuery.map((name) => ({
        name,
        in: 'query',
        required: takesBody(route) ? false : isNeeded(name),
        schema: properties[name],
      })),
    ],
    ...(takesBody(route) ? { requestBody: bodyOf(route, rest, inPath) } : {}),
    responses: {
      [String(route.status ?? 200)]: { description: 'done', content: { 'application/json': { schema: {} } } },
      default: FAILURE,
    },
  }
}

/** Members of the path are no members of the body. */
function bodyOf(route: Route, rest: readonly string[], inPath: readonly string[]): JsonObject {
  const { properties = {}, required = [] } = definitionOf(route.input)
  const needed = required.filter((name) => rest.includes(name))
  const schema =
    inPath.length === 0
      ? { $ref: `#/components/schemas/${route.input}` }
      : {
          type: 'object',
          properties: Object.fromEntries(rest.map((name) => [name, properties[name]])),
          required: needed,
        }
  const forms = route.bare === undefined ? schema : { oneOf: [schema, route.bare] }
  return { required: needed.length > 0, content: { 'application/json': { schema: forms } } }
}

function ofHandler(handler: Handler): JsonObject {
  return {
    operationId: `${handler.method.toLowerCase()} ${handler.path}`,
    summary: handler.summary,
    ...(handler.open ? { security: [] } : {}),
    parameters: pathMembers(handler.path).map((name) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...(handler.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: { $ref: `#/components/schemas/${handler.body}` } } },
          },
        }),
    responses: { 200: { description: 'done', content: { 'application/json': { schema: {} } } }, default: FAILURE },
  }
}

function componentsOf(routes: readonly Route[]): JsonObject {
  return Object.fromEntries(
    [...new Set(routes.map(({ input }) => input))].sort().map((name) => [name, definitionOf(name)]),
  )
}

/** The JSON-RPC request of the A2A gateway: the one of the envelope, with a message of a client among its parameters. */
function rpcRequest(): JsonObject {
  const { $defs } = SCHEMAS['Envelope'] as { $defs: { JsonRpcRequest: JsonObject } }
  return $defs.JsonRpcRequest
}
