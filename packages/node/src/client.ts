/**
 * Speaks to a running node for the command line, the harness and the demo: the same HTTP door as everybody's, with
 * the token that lies in the data folder.
 */
import { errorFromJSON, fail } from '@csb/core'
import { readJson, readText } from './data-folder.ts'

export type Client = {
  readonly url: string
  /** @throws NodeError with the code that the node answered */
  call<T = unknown>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T>
  /** JSON-RPC with streamed answers: the `result` of each event. */
  stream(path: string, body: unknown): AsyncGenerator<unknown>
}

/** @throws NOT_INITIALISED; PEER_UNREACHABLE where the node does not run */
export async function connect(directory: string): Promise<Client> {
  const { url } = (
    (await readText(directory, 'running')) === undefined
      ? fail('PEER_UNREACHABLE', { reason: 'the node does not run', directory })
      : await readJson(directory, 'running')
  ) as { url: string }
  const token = (await readText(directory, 'token'))?.trim() ?? fail('NOT_INITIALISED', { directory })
  return createClient(url, token)
}

export function createClient(url: string, token: string): Client {
  const request = async (method: string, path: string, body: unknown, accept: string): Promise<Response> => {
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, accept, 'a2a-version': '1.0' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    return fetch(`${url}${path}`, init).catch((error: unknown) =>
      fail('PEER_UNREACHABLE', { reason: 'the node does not answer', url }, error),
    )
  }
  return {
    url,
    call: async <T>(method: string, path: string, body?: unknown) => {
      const response = await request(method, path, body, 'application/json')
      const value = (await response.json().catch(() => ({}))) as unknown
      if (!response.ok) throw problemOf(value)
      return value as T
    },
    stream: async function* (path, body) {
      const response = await request('POST', path, body, 'text/event-stream')
      if (!response.ok || response.body === null) throw problemOf(await response.json().catch(() => ({})))
      for await (const text of events(response.body)) {
        const { result, error } = JSON.parse(text) as { result?: unknown; error?: { data?: unknown } }
        if (error !== undefined) throw errorFromJSON(Array.isArray(error.data) ? error.data.at(-1) : error.data)
        yield result
      }
    },
  }
}

/** An RFC 9457 problem carries the code and details of the table. */
const problemOf = (value: unknown) => {
  const { details, ...rest } = (value ?? {}) as { details?: unknown }
  return errorFromJSON({ ...rest, details: details ?? rest })
}

/** The `data:` of each server-sent event. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
