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

test('a salt is 32 bytes that come once and are all random, however many are asked for', () => {
  const salts = Array.from({ length: 2000 }, salt)
  expect(salts.every(({ byteLength }) => byteLength === 32)).toBe(true)
  expect(new Set(salts.map(toHex)).size).toBe(2000)
  for (let at = 0; at < 32; at++)
    expect(new Set(salts.map((bytes) => bytes[at])).size, `byte ${at}`).toBeGreaterThanOrEqual(250)
})

test('a salt that was handed out is the caller’s alone: no two share their memory', () => {
  const [one, two] = [salt(), salt()]
  const before = toHex(two)
  one.fill(0)
  expect(toHex(two)).toBe(before)
  expect(one.buffer === two.buffer).toBe(false)
})
