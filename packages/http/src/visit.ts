/** What a request brings: its id, who stands at the door, its body. Evidence is read here, never judged. */
import type { Context } from 'hono'
import { LIMITS, fail, fromUtf8, newId, parseBounded, type Clock } from '@csb/core'
import type { Caller } from '@csb/service'

const TOKEN = /^Bearer +([A-Za-z0-9._~+/-]{1,4096}=*)$/i
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/

/** The caller's own id where it sent a good one, else a new one. */
export function requestIdOf(headers: Headers, clock: Clock): string {
  const given = headers.get('x-request-id')
  return given !== null && REQUEST_ID.test(given) ? given : newId('request', clock.now())
}

/**
 * @throws UNAUTHENTICATED where there is an Authorization that is no bearer token
 * @clause IOP-7
 */
export function callerOf(headers: Headers): Caller {
  const authorization = headers.get('authorization')
  if (authorization === null) return { kind: 'nobody', door: 'http' }
  const token = TOKEN.exec(authorization)?.[1] ?? fail('UNAUTHENTICATED', { reason: 'only bearer tokens are read' })
  return { kind: 'bearer', token, door: 'http' }
}

/**
 * The body as JSON; undefined where there is none.
 * @throws CONTENT_TYPE; TOO_LARGE above {@link LIMITS.httpBodyBytes}; MALFORMED
 */
export async function readJson({ req }: Context): Promise<unknown> {
  const { raw } = req
  const length = Number(raw.headers.get('content-length') ?? Number.NaN)
  if (length === 0 || raw.body === null) return undefined
  const type = (raw.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  // a form or plain text is what a page of another site may send without asking
  if (!/^application\/(?:[a-z0-9.-]+\+)?json$/.test(type)) fail('CONTENT_TYPE', { contentType: type.slice(0, 128) })
  if (length > LIMITS.httpBodyBytes) fail('TOO_LARGE', { maxBytes: LIMITS.httpBodyBytes })
  const bytes = await readBounded(raw.body, LIMITS.httpBodyBytes)
  if (bytes.byteLength === 0) return undefined
  const text = fromUtf8(bytes) ?? fail('MALFORMED', { reason: 'not UTF-8' })
  return parseBounded(text, LIMITS.httpBodyBytes)
}

async function readBounded(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let total = 0
  for await (const chunk of body) {
    total += chunk.byteLength
    if (total > maxBytes) fail('TOO_LARGE', { maxBytes })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
