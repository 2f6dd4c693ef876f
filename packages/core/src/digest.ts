/** SHA-256 and the encodings of bytes that appear in documents. */
import { createHash, hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 32 bytes. */
export function sha256(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const [only, ...others] = parts
  // as text and back it costs half of what a buffer of its own does
  if (only !== undefined && others.length === 0) return Buffer.from(hash('sha256', only, 'binary'), 'binary')
  const h = createHash('sha256')
  for (const part of parts) h.update(part)
  return h.digest()
}

/** 64 lower-case hex digits. */
export function sha256Hex(data: Uint8Array | string): string {
  return hash('sha256', data, 'hex')
}

/** `sha256:` and 64 hex digits: how digests are written in documents. */
export function digestOf(data: Uint8Array | string): string {
  return `sha256:${sha256Hex(data)}`
}

/** Random bytes from the operating system. */
export function random(bytes: number): Uint8Array {
  return randomBytes(bytes)
}

/** What was drawn from the operating system for salts and not handed out yet; what was is wiped. */
const pool = { bytes: Buffer.alloc(0), next: 0 }
const SALT_BYTES = 32
const SALTS_DRAWN = 256

/**
 * 32 random bytes, drawn many at a time: for salts, of which a busy record needs thousands a second. A key is never
 * drawn ahead: {@link random}.
 */
export function salt(): Uint8Array {
  if (pool.next >= pool.bytes.byteLength) Object.assign(pool, { bytes: randomBytes(SALT_BYTES * SALTS_DRAWN), next: 0 })
  const end = pool.next + SALT_BYTES
  const bytes = Uint8Array.from(pool.bytes.subarray(pool.next, end))
  pool.bytes.fill(0, pool.next, end)
  pool.next = end
  return bytes
}

export const toHex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/** Undefined where `text` is not an even number of hex digits. */
export function fromHex(text: string): Uint8Array | undefined {
  return /^(?:[0-9a-f]{2})*$/.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : undefined
}

export const toBase64Url = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')

/** Undefined unless `text` is the one canonical spelling (no padding, no stray bits). */
export function fromBase64Url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? new Uint8Array(bytes) : undefined
}

const encoder = new TextEncoder()

export const utf8 = (text: string): Uint8Array => encoder.encode(text)

/** @returns undefined where the bytes are not well-formed UTF-8 */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Compare secrets or digests without telling where they differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b)
}
