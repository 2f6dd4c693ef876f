import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { digestOf, salt, sha256, toHex } from '@csb/core'

test('a hash is that of the bytes, in one part or in several, of text or of bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (bytes, text) => {
      const of = (...parts: (Uint8Array | string)[]) =>
        parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')
      expect(toHex(sha256(bytes))).toBe(of(bytes))
      expect(toHex(sha256(text))).toBe(of(text))
      expect(toHex(sha256(bytes, text))).toBe(of(bytes, text))
      expect(digestOf(bytes)).toBe(`sha256:${of(bytes)}`)
    }),
  )
})

test('a salt is 32 bytes of which hardly one stays the same', () => {
  const salts = Array.from({ length: 2000 }, salt)
  expect(new Set(salts.map(toHex)).size).toBe(2000)
  // a UUID says its version in half a byte and its variant in two bits
  const least = (at: number) => ({ 6: 16, 8: 64 })[at % 16] ?? 250
  for (let at = 0; at < 32; at++)
    expect(new Set(salts.map((bytes) => bytes[at])).size, `byte ${at}`).toBeGreaterThanOrEqual(least(at))
})
