/**
 * A secret seed under a passphrase: scrypt and AES-256-GCM, as a small JSON document. Reading and writing files is
 * the caller's business.
 */
import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto'
import { canonicalize, fail, fromBase64Url, random, toBase64Url, utf8 } from '@csb/core'

/** A sealed 32-byte seed. All byte strings are base64url. */
export type SealedSeed = {
  readonly v: 1
  readonly kdf: 'scrypt'
  /** scrypt cost: memory is 128 * n * r bytes */
  readonly n: number
  readonly r: number
  readonly p: number
  readonly salt: string
  readonly nonce: string
  /** ciphertext and 16-byte tag */
  readonly sealed: string
}

/** 128 MiB and some tenths of a second: what a passphrase of a person needs. */
const COST = { n: 2 ** 17, r: 8, p: 1 } as const

/** A file may ask for other costs, within these: a hostile one must not exhaust the memory. */
const LARGEST_N = 2 ** 18
const TAG_BYTES = 16

/**
 * @param seed 32 bytes
 * @param passphrase at least one character; composed and decomposed spellings are the same
 * @throws PASSPHRASE where it is empty
 */
export async function sealSeed(seed: Uint8Array, passphrase: string): Promise<SealedSeed> {
  if (passphrase === '') fail('PASSPHRASE', { reason: 'empty' })
  const salt = random(16)
  const nonce = random(12)
  const head = { v: 1 as const, kdf: 'scrypt' as const, ...COST, salt: toBase64Url(salt), nonce: toBase64Url(nonce) }
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, head), nonce)
  cipher.setAAD(utf8(canonicalize(head)))
  const sealed = Buffer.concat([cipher.update(seed), cipher.final(), cipher.getAuthTag()])
  return { ...head, sealed: toBase64Url(sealed) }
}

/**
 * @param value a parsed document
 * @returns 32 bytes
 * @throws MALFORMED where it is none, PASSPHRASE where the passphrase is wrong or a byte was changed
 */
export async function openSeed(value: unknown, passphrase: string): Promise<Uint8Array> {
  const { salt, nonce, sealed, head } = readSealed(value)
  const key = await derive(passphrase, salt, head)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce)
    decipher.setAAD(utf8(canonicalize(head)))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    return new Uint8Array(Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]))
  } catch (error) {
    return fail('PASSPHRASE', { reason: 'wrong' }, error)
  }
}

function readSealed(value: unknown) {
  if (typeof value !== 'object' || value === null) fail('MALFORMED', { reason: 'not a sealed seed' })
  const { sealed: sealedText, ...head } = value as SealedSeed
  const { v, kdf, n, r, p } = head
  const isKnown = v === 1 && kdf === 'scrypt' && r === COST.r && p === COST.p && Object.keys(head).length === 7
  const isBounded = Number.isSafeInteger(n) && n >= COST.n && n <= LARGEST_N && Number.isInteger(Math.log2(n))
  const salt = bytesOf(head.salt, 16)
  const nonce = bytesOf(head.nonce, 12)
  const sealed = bytesOf(sealedText, 32 + TAG_BYTES)
  if (!isKnown || !isBounded || salt === undefined || nonce === undefined || sealed === undefined) {
    fail('MALFORMED', { reason: 'not a sealed seed' })
  }
  return { salt, nonce, sealed, head }
}

function bytesOf(text: unknown, length: number): Uint8Array | undefined {
  const bytes = typeof text === 'string' ? fromBase64Url(text) : undefined
  return bytes?.byteLength === length ? bytes : undefined
}

function derive(
  passphrase: string,
  salt: Uint8Array,
  { n, r, p }: { n: number; r: number; p: number },
): Promise<Buffer> {
  const maxmem = 128 * n * r + 1024 * 1024
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize('NFC'), salt, 32, { N: n, r, p, maxmem }, (error, derived) => {
      if (error === null) resolve(derived)
      else reject(error)
    })
  })
}
