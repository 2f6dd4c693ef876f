import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  DOMAINS,
  canonicalize,
  checkSchema,
  createKeyPair,
  digestOf,
  documentHash,
  equalBytes,
  fromBase64Url,
  fromHex,
  fromUtf8,
  idTime,
  isId,
  newId,
  sha256,
  sha256Hex,
  signDocument,
  toBase64Url,
  toHex,
  utf8,
  validate,
  verifyDocument,
  verifySignature,
} from '@csb/core'

const key = createKeyPair(new Uint8Array(32).fill(11))
const other = createKeyPair(new Uint8Array(32).fill(12))

describe('signed documents', () => {
  test('are signed over a domain line and the canonical text, so that any reader can check', () => {
    const body = { b: 1, a: 'é' }
    const signature = signDocument('grant', body, key)
    expect(signature).toMatch(/^ed25519:[A-Za-z0-9_-]{86}$/)
    const bytes = fromBase64Url(signature.slice(8)) ?? new Uint8Array()
    expect(verifySignature(key.did, utf8('CSB-DELEGATION-V1\n{"a":"é","b":1}'), bytes)).toBe(true)
    expect(documentHash('grant', body)).toBe(digestOf(`${DOMAINS.grant}\n${canonicalize(body)}`))
    expect(verifyDocument('grant', { a: 'é', b: 1 }, signature, key.did)).toBe(true)
  })

  test('a signature holds for its kind, its body and its signer only', () => {
    const body = { a: 1 }
    for (const domain of Object.keys(DOMAINS) as (keyof typeof DOMAINS)[]) {
      const signature = signDocument(domain, body, key)
      for (const elsewhere of Object.keys(DOMAINS) as (keyof typeof DOMAINS)[]) {
        expect(verifyDocument(elsewhere, body, signature, key.did)).toBe(domain === elsewhere)
      }
      expect(verifyDocument(domain, { a: 2 }, signature, key.did)).toBe(false)
      expect(verifyDocument(domain, body, signature, other.did)).toBe(false)
    }
    expect(new Set(Object.values(DOMAINS)).size).toBe(Object.keys(DOMAINS).length)
  })

  test('attack 18: only one spelling of a signature is one', () => {
    const good = signDocument('grant', {}, key)
    const bytes = fromBase64Url(good.slice(8)) ?? new Uint8Array()
    const standard = `ed25519:${Buffer.from(bytes).toString('base64')}`
    const foreign = [
      digestOf('x'),
      'sha256:xxx...',
      good.slice(8),
      `${good}=`,
      good.toUpperCase(),
      `${good} `,
      standard,
      '',
      undefined,
      null,
      7,
      [good],
    ]
    for (const signature of foreign)
      expect(verifyDocument('grant', {}, signature, key.did), String(signature)).toBe(false)
    expect(verifyDocument('grant', {}, good, key.did)).toBe(true)
  })
})

describe('ids', () => {
  test('MEM-001.1.3 an id is its kind, its time and a random end', () => {
    const id = newId('memory', 1_700_000_000_000)
    expect(id).toMatch(/^mem_1700000000000_[0-9a-z]{10}$/)
    expect(isId('memory', id)).toBe(true)
    expect(isId('run', id)).toBe(false)
    expect(idTime(id)).toBe(1_700_000_000_000)
    expect(new Set(Array.from({ length: 2000 }, () => newId('task', 5))).size).toBe(2000)
  })

  test('MEM-001.1.3 foreign ends are taken, foreign forms not', () => {
    expect(isId('memory', 'mem_1700000000001_abc')).toBe(true)
    for (const text of [
      'mem_17000_abc',
      'mem_1700000000001_',
      'mem_1700000000001_a-b',
      'MEM_1700000000001_a',
      'mem_1700000000001_a\n',
      7,
      null,
    ]) {
      expect(isId('memory', text), String(text)).toBe(false)
    }
    expect(idTime('x')).toBeUndefined()
  })
})

describe('bytes as text', () => {
  test('hex, base64url and UTF-8 read back what they wrote, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
        expect(fromHex(toHex(bytes))).toEqual(bytes)
        expect(fromBase64Url(toBase64Url(bytes))).toEqual(bytes)
        expect(toHex(sha256(bytes))).toBe(sha256Hex(bytes))
        expect(equalBytes(bytes, Uint8Array.from(bytes))).toBe(true)
      }),
    )
    for (const text of ['a', 'zz', 'AB', 'ab ']) expect(fromHex(text)).toBeUndefined()
    for (const text of ['AB', 'AA==', 'a+b/', ' AAAA']) expect(fromBase64Url(text)).toBeUndefined()
    expect(fromUtf8(Uint8Array.of(0xc0, 0x80))).toBeUndefined()
    expect(fromUtf8(utf8('若兰 🌸'))).toBe('若兰 🌸')
    expect(equalBytes(utf8('a'), utf8('ab'))).toBe(false)
  })

  test('a view into a larger buffer is only what it shows', () => {
    const part = utf8('xxabcyy').subarray(2, 5)
    expect(toHex(part)).toBe('616263')
    expect(toBase64Url(part)).toBe('YWJj')
  })

  test('SHA-256 of parts is SHA-256 of the whole', () => {
    expect(toHex(sha256('a', utf8('bc')))).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})

describe('schemas', () => {
  test('a value that does not fit is refused with the place', () => {
    const error = () => validate('Revocation', { revocation: { v: 1 } })
    expect(error).toThrow(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        details: expect.objectContaining({ schema: 'Revocation' }) as unknown,
      }),
    )
    expect(() => validate('Grant', null, 'MALFORMED')).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
    expect(() => checkSchema('Nothing', {})).toThrow(expect.objectContaining({ code: 'INTERNAL' }))
  })
})
