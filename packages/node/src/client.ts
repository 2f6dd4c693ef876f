/**
 * Speaks to a running node for the command line, the harness and the demo: the same HTTP door as everybody's, with
 * the token that lies in the data folder.
 */
import { request as http, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as https } from 'node:https'
import { Readable, pipeline } from 'node:stream'
import { text as readAll } from 'node:stream/consumers'
import { errorFromJSON, fail, type NodeError } from '@csb/core'
import { readJson, readText } from './data-folder.ts'

/** Why a node is not reached: it is not there, or it is and does not answer. */
const NOT_RUNNING = 'not_running'
const NOT_ANSWERING = 'not_answering'

export type Download = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: AsyncIterable<Uint8Array>
}

export type Client = {
  readonly url: string
  /** @throws NodeError with the code that the node answered */
  call<T = unknown>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T>
  /** JSON-RPC with streamed answers: the `result` of each event. */
  stream(path: string, body: unknown): AsyncGenerator<unknown>
  /** Bytes as they come. @throws NodeError with the code that the node answered */
  download(path: string, headers: Readonly<Record<string, string>>): Promise<Download>
  /** @throws NodeError with the code that the node answered */
  upload<T = unknown>(path: string, type: string, body: AsyncIterable<Uint8Array>): Promise<T>
}

/** Where a node is asked, and by what right. */
export type Access = { readonly url: string; readonly token: string }

/** As the owner, by what lies in the data folder. @throws NOT_INITIALISED; PEER_UNREACHABLE where the node does not run */
export async function connect(directory: string): Promise<Client> {
  const { url, token } = await ownerAccess(directory)
  return createClient(url, token)
}

/** What lets the owner ask the node of a folder. @throws as {@link connect} */
export async function ownerAccess(directory: string): Promise<Access> {
  const url = await addressOf(directory)
  const token = (await readText(directory, 'token'))?.trim() ?? fail('NOT_INITIALISED', { directory })
  return { url, token }
}

/** Base of the HTTP door of the node in a folder. @throws as {@link connect} */
export async function addressOf(directory: string): Promise<string> {
  if ((await readText(directory, 'identity')) === undefined) fail('NOT_INITIALISED', { directory })
  const running = await readText(directory, 'running')
  const { url, pid } = (running === undefined ? {} : await readJson(directory, 'running')) as Partial<Running>
  // one that was killed leaves the file behind, and its port may be somebody else's by now
  if (url === undefined || pid === undefined || !isAlive(pid))
    fail('PEER_UNREACHABLE', { reason: NOT_RUNNING, directory })
  return url
}

/** @param url base of the node's HTTP door */
export function createClient(url: string, token: string): Client {
  const knock = (method: string, path: string, told: Told, body: Body): Promise<IncomingMessage> => {
    const headers = { authorization: `Bearer ${token}`, 'a2a-version': '1.0', ...told }
    // not fetch: it gives up after five minutes, and an agent may work for longer
    const begin = url.startsWith('https:') ? https : http
    return new Promise<IncomingMessage>((resolve, reject) => {
      const request = begin(`${url}${path}`, { method, headers }, resolve).once('error', reject)
      if (body === undefined || typeof body === 'string') request.end(body)
      // a node that refuses answers before it has read all
      else pipeline(Readable.from(body), request, () => undefined)
    }).catch((error: unknown) => fail('PEER_UNREACHABLE', { reason: NOT_ANSWERING, url }, error))
  }
  const ask = (method: string, path: string, body: unknown, accept: string): Promise<IncomingMessage> => {
    if (body === undefined) return knock(method, path, { accept }, undefined)
    return knock(method, path, { accept, 'content-type': 'application/json' }, JSON.stringify(body))
  }
  return {
    url,
    call: async <T>(method: string, path: string, body?: unknown) => {
      const response = await ask(method, path, body, 'application/json')
      const value = await readBody(response)
      if (!isOk(response)) throw problemOf(value)
      return value as T
    },
    stream: async function* (path, body) {
      const response = await ask('POST', path, body, 'text/event-stream')
      if (!isOk(response)) throw problemOf(await readBody(response))
      // what fails before its first event is answered like a plain call
      if (!isStream(response)) yield resultOf((await readBody(response)) as RpcAnswer)
      else for await (const text of events(response)) yield resultOf(JSON.parse(text) as RpcAnswer)
    },
    download: async (path, headers) => {
      const response = await knock('GET', path, headers, undefined)
      if (!isOk(response)) throw problemOf(await readBody(response))
      return { status: response.statusCode ?? 0, headers: response.headers, body: response }
    },
    upload: async <T>(path: string, type: string, body: AsyncIterable<Uint8Array>) => {
      const response = await knock('POST', path, { accept: 'application/json', 'content-type': type }, body)
      const value = await readBody(response)
      if (!isOk(response)) throw problemOf(value)
      return value as T
    },
  }
}

type Told = Readonly<Record<string, string>>
type Body = string | AsyncIterable<Uint8Array> | undefined
type Running = { readonly url: string; readonly pid: number }

/** Is there a process of that number? */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // it is there, and somebody else's
    return (error as { code?: string }).code === 'EPERM'
  }
}

type RpcAnswer = { readonly result?: unknown; readonly error?: RpcError }
type RpcError = { readonly data?: readonly { readonly metadata?: Readonly<Record<string, unknown>> }[] }

function resultOf({ result, error }: RpcAnswer): unknown {
  if (error !== undefined) throw rpcErrorOf(error)
  return result
}

/** A google.rpc ErrorInfo carries the code of the table in its metadata, and of the details what is text. */
function rpcErrorOf({ data }: RpcError): NodeError {
  const { code, retryable: _, request_id: _id, ...details } = data?.[0]?.metadata ?? {}
  return errorFromJSON({ code, details })
}

const isStream = ({ headers }: IncomingMessage): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true

const isOk = ({ statusCode = 500 }: IncomingMessage): boolean => statusCode >= 200 && statusCode < 300

async function readBody(response: IncomingMessage): Promise<unknown> {
  const body = await readAll(response).catch((error: unknown) =>
    fail('PEER_UNREACHABLE', { reason: NOT_ANSWERING }, error),
  )
  try {
    return JSON.parse(body) as unknown
  } catch {
    return {}
  }
}

/** An RFC 9457 problem carries the code and details of the table; the A2A door answers with JSON-RPC errors. */
function problemOf(value: unknown): NodeError {
  const { details, error, ...rest } = (value ?? {}) as { details?: unknown; error?: RpcError }
  return error === undefined ? errorFromJSON({ ...rest, details: details ?? rest }) : rpcErrorOf(error)
}

/** The `data:` of each server-sent event. */
async function* events(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let buffered = ''
  for await (const chunk of body) {
    buffered += decoder.decode(chunk, { stream: true })
    for (let end = buffered.indexOf('\n\n'); end >= 0; end = buffered.indexOf('\n\n')) {
      const lines = buffered.slice(0, end).split('\n')
      buffered = buffered.slice(end + 2)
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim())
      if (data.length > 0) yield data.join('\n')
    }
  }
}
