/** A request's body, taken piece by piece: so much at once, or the rest as it comes. A sender that falls silent is left. */
import { createGunzip } from 'node:zlib'
import { pipeline } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { fail } from '@csb/core'
import { withinSilence } from '../../silence.ts'

export type ByteReader = {
  /** bytes that were taken so far */
  readonly taken: number
  /** @returns undefined where nothing is left. @throws MALFORMED where it ends within them */
  take(bytes: number): Promise<Buffer | undefined>
  /** The next chunk of whatever length, undefined at the end. */
  next(): Promise<Uint8Array | undefined>
}

/**
 * @param idleMs so long a sender may say nothing
 * @throws CONTENT_TYPE for an encoding that is not read; TIMEOUT after silence
 */
export function createByteReader(request: IncomingMessage, idleMs: number): ByteReader {
  const chunks = bodyOf(request)[Symbol.asyncIterator]()
  let held: Buffer = Buffer.alloc(0)
  let taken = 0
  const pull = async (): Promise<Buffer | undefined> => {
    const step = await withinSilence(chunks.next(), idleMs)
    if (step.done === true) return undefined
    const { buffer, byteOffset, byteLength } = step.value
    return Buffer.from(buffer, byteOffset, byteLength)
  }
  return {
    get taken() {
      return taken
    },
    take: async (bytes) => {
      while (held.byteLength < bytes) {
        const more = await pull()
        if (more === undefined) {
          if (held.byteLength === 0) return undefined
          fail('MALFORMED', { reason: 'request cut short' })
        }
        held = held.byteLength === 0 ? more : Buffer.concat([held, more])
      }
      const found = held.subarray(0, bytes)
      held = held.subarray(bytes)
      taken += bytes
      return found
    },
    next: async () => {
      if (held.byteLength === 0) return pull()
      const found = held
      held = Buffer.alloc(0)
      return found
    },
  }
}

function bodyOf(request: IncomingMessage): AsyncIterable<Uint8Array> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity') return request
  if (encoding !== 'gzip' && encoding !== 'x-gzip')
    return fail('CONTENT_TYPE', { contentEncoding: encoding.slice(0, 64) })
  const plain = createGunzip()
  pipeline(request, plain, () => undefined)
  return orMalformed(plain)
}

async function* orMalformed(plain: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* plain
  } catch (error) {
    fail('MALFORMED', { reason: 'body is not gzip' }, error)
  }
}
