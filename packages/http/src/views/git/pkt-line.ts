/** Git's framing: lines that tell their own length, and three marks between them. */
import { LIMITS, fail, utf8 } from '@csb/core'
import type { ByteReader } from './byte-reader.ts'

export type PktLine = { readonly kind: 'line'; readonly text: string } | { readonly kind: 'flush' | 'delim' | 'end' }

export const FLUSH = utf8('0000')
export const DELIM = utf8('0001')
/** The most bytes one line carries. */
export const LINE_BYTES = 65_516

export function pkt(text: string | Uint8Array): Uint8Array {
  const body = typeof text === 'string' ? Buffer.from(text) : text
  return Buffer.concat([Buffer.from(lengthOf(body.byteLength + 4)), body])
}

/** A line of side-band, its head and at most {@link LINE_BYTES} - 1 bytes: what is large is not copied. */
export function bandPkt(channel: number, bytes: Uint8Array): readonly [head: Uint8Array, bytes: Uint8Array] {
  const head = Buffer.from(lengthOf(bytes.byteLength + 5))
  return [Buffer.concat([head, Buffer.from([channel])]), bytes]
}

const lengthOf = (bytes: number): string => bytes.toString(16).padStart(4, '0')

/**
 * @returns undefined where the request ends
 * @throws MALFORMED
 */
export async function readPkt(reader: ByteReader): Promise<PktLine | undefined> {
  const head = await reader.take(4)
  if (head === undefined) return undefined
  const text = head.toString('latin1')
  if (!/^[0-9a-f]{4}$/i.test(text)) fail('MALFORMED', { reason: 'length of a pkt-line' })
  const length = Number.parseInt(text, 16)
  if (length === 0) return { kind: 'flush' }
  if (length === 1) return { kind: 'delim' }
  if (length === 2) return { kind: 'end' }
  if (length < 4 || length > LINE_BYTES + 4) fail('MALFORMED', { reason: 'length of a pkt-line' })
  const body = length === 4 ? Buffer.alloc(0) : await reader.take(length - 4)
  return { kind: 'line', text: (body ?? Buffer.alloc(0)).toString().replace(/\n$/, '') }
}

/**
 * Lines up to the next mark, or to the end.
 * @throws MALFORMED; TOO_LARGE above {@link LIMITS.gitRequestBytes} in all sections of a request together
 */
export async function readSection(
  reader: ByteReader,
): Promise<{ readonly lines: string[]; readonly mark: 'flush' | 'delim' | 'end' }> {
  const lines: string[] = []
  for (;;) {
    const next = await readPkt(reader)
    if (reader.taken > LIMITS.gitRequestBytes) fail('TOO_LARGE', { maxBytes: LIMITS.gitRequestBytes })
    if (next === undefined) return { lines, mark: 'end' }
    if (next.kind !== 'line') return { lines, mark: next.kind }
    lines.push(next.text)
  }
}
