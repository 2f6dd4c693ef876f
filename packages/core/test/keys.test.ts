import * as noble from '@noble/ed25519'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createKeyPair,
  didFromPeerId,
  didFromPublicKey,
  exportSeed,
  fromHex,
  isWeakKey,
  peerIdFromDid,
  peerIdFromPublicKey,
  publicKeyFromDid,
  publicKeyFromPeerId,
  selfTest,
  toHex,
  utf8,
  verifySignature,
} from '@csb/core'
import { areMissing, readVector } from './vectors.ts'

const hex = (text: string): Uint8Array => fromHex(text) ?? new Uint8Array()
const seed = fc.uint8Array({ minLength: 32, maxLength: 32 })

/** The points of small order, in their canonical and their other spellings. */
const SMALL_ORDER = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]

describe('Ed25519 keys', () => {
  test('RFC 8032 test 2: key and signature', () => {
    const pair = createKeyPair(hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb'))
    expect(toHex(pair.publicKey)).toBe('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
    expect(toHex(pair.sign(hex('72')))).toBe(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    )
  })

  const noWycheproof = areMissing('wycheproof-ed25519.json')
  test.skipIf(noWycheproof)('Wycheproof: all 151 cases as they should be', () => {
    type Group = { publicKey: { pk: string }; tests: { tcId: number; msg: string; sig: string; result: string }[] }
    const { testGroups } = JSON.parse(readVector('wycheproof-ed25519.json')) as { testGroups: Group[] }
    let cases = 0
    for (const { publicKey, tests } of testGroups) {
      const did = didFromPublicKey(hex(publicKey.pk))
      for (const { tcId, msg, sig, result } of tests) {
        cases++
        expect(verifySignature(did, hex(msg), hex(sig)), `case ${tcId}`).toBe(result === 'valid')
      }
    }
    expect(cases).toBe(151)
  })

  const noSpeccheck = areMissing('ed25519-speccheck.json')
  test.skipIf(noSpeccheck)('speccheck: small keys, mixed orders and malleable signatures are decided one way', () => {
    const cases = JSON.parse(readVector('ed25519-speccheck.json')) as Record<
      'message' | 'pub_key' | 'signature',
      string
    >[]
    const verdicts = cases.map(({ message, pub_key, signature }) =>
      verifySignature(didFromPublicKey(hex(pub_key)), hex(message), hex(signature)) ? 'V' : 'x',
    )
    // the one that holds is under a key of full order and satisfies the cofactorless equation
    expect(verdicts.join('')).toBe('xxxVxxxxxxxx')
  })

  test('an independent implementation makes and accepts the same signatures', async () => {
    await fc.assert(
      fc.asyncProperty(seed, fc.uint8Array({ maxLength: 200 }), async (bytes, message) => {
        const pair = createKeyPair(bytes)
        const signature = pair.sign(message)
        expect(toHex(await noble.getPublicKeyAsync(bytes))).toBe(toHex(pair.publicKey))
        expect(toHex(await noble.signAsync(message, bytes))).toBe(toHex(signature))
        expect(await noble.verifyAsync(signature, message, pair.publicKey, { zip215: false })).toBe(true)
        expect(verifySignature(pair.did, message, signature)).toBe(true)
      }),
      { numRuns: 15 },
    )
  })

  test('a changed bit anywhere in the signature or the message is found', () => {
    const pair = createKeyPair(new Uint8Array(32).fill(9))
    const message = utf8('move the meeting')
    const signature = pair.sign(message)
    for (let bit = 0; bit < 512; bit += 5) {
      const spoiled = Uint8Array.from(signature)
      spoiled[bit >> 3] = (spoiled[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(verifySignature(pair.did, message, spoiled)).toBe(false)
    }
    expect(verifySignature(pair.did, utf8('move the meetinG'), signature)).toBe(false)
    expect(verifySignature(pair.did, message, signature.subarray(0, 63))).toBe(false)
    expect(verifySignature('did:key:nonsense', message, signature)).toBe(false)
  })

  test.each(SMALL_ORDER)('attack 3: a key of small order proves nothing: %s', (text) => {
    const identity = new Uint8Array(64)
    identity[0] = 1
    expect(isWeakKey(hex(text))).toBe(true)
    for (const message of ['', 'pay', 'move']) {
      expect(verifySignature(didFromPublicKey(hex(text)), utf8(message), identity)).toBe(false)
    }
  })

  test('a seed comes back from the key that was made of it, and from no copy', () => {
    const pair = createKeyPair(new Uint8Array(32).fill(7))
    expect(toHex(exportSeed(pair))).toBe('07'.repeat(32))
    expect(() => exportSeed({ ...pair })).toThrow(expect.objectContaining({ code: 'INTERNAL' }))
    expect(JSON.stringify(pair)).not.toContain('0707')
    expect(() => createKeyPair(new Uint8Array(31))).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })

  test('attack 3: the self-test passes here', async () => {
    await expect(selfTest()).resolves.toBeUndefined()
  })
})

describe('A2A-001 one key, three names', () => {
  test('A2A-001 key, did and peer id lead to one another', () => {
    fc.assert(
      fc.property(seed, (bytes) => {
        const { did, peerId, publicKey } = createKeyPair(bytes)
        expect(did).toMatch(/^did:key:z6Mk/)
        expect(peerId).toMatch(/^12D3KooW/)
        expect(toHex(publicKeyFromDid(did) ?? new Uint8Array())).toBe(toHex(publicKey))
        expect(toHex(publicKeyFromPeerId(peerId) ?? new Uint8Array())).toBe(toHex(publicKey))
        expect(didFromPeerId(peerId)).toBe(did)
        expect(peerIdFromDid(did)).toBe(peerId)
        expect(peerIdFromPublicKey(publicKey)).toBe(peerId)
      }),
      { numRuns: 20 },
    )
  })

  test('what is not an Ed25519 name is none', () => {
    const { did, peerId } = createKeyPair()
    const foreign = [
      '',
      'did:key:',
      did.slice(0, -1),
      `${did}1`,
      did.replace('did:key:z', 'did:key:'),
      did.toLowerCase(),
      ` ${did}`,
      `did:key:z1${did.slice(9)}`,
      'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme',
      `did:key:z${'1'.repeat(100_000)}`,
    ]
    for (const text of foreign) expect(publicKeyFromDid(text), text.slice(0, 70)).toBeUndefined()
    for (const text of ['', did, peerId.slice(1), `${peerId}1`, 'QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N']) {
      expect(publicKeyFromPeerId(text), text).toBeUndefined()
    }
    expect(() => didFromPeerId('x')).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
    expect(() => peerIdFromDid('x')).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
