import { createPublicKey, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { canonicalize, createKeyPair, sha256Hex } from '@csb/core'
import { agentCard, cardHash, signCard, verifyCard, type AgentCard } from '../src/index.ts'
import { attachment } from './fixtures.ts'

const pair = createKeyPair()
const node = { name: '家', did: pair.did, peerId: pair.peerId }
const card = agentCard({ agent: { ...attachment, attachedAt: 0 }, node, url: 'https://nas.example:7480' })
const signed = signCard(card, pair)
const [signature] = signed.signatures ?? []

describe('agent cards', () => {
  test('A2A CARD-STRUCT-001 all required members are there, and none is empty', () => {
    for (const member of ['name', 'description', 'version', 'capabilities']) expect(card[member]).toBeTruthy()
    for (const member of ['supportedInterfaces', 'defaultInputModes', 'defaultOutputModes', 'skills']) {
      expect((card[member] as unknown[]).length).toBeGreaterThan(0)
    }
    expect(card['skills']).toMatchObject([{ id: 'echo.say', tags: ['echo.say'] }])
    expect(card.supportedInterfaces[0]).toEqual({
      url: 'https://nas.example:7480/a2a/echo',
      protocolBinding: 'JSONRPC',
      protocolVersion: '1.0',
    })
  })

  test('A2A-001 CARD-SIGN-001 CARD-SIGN-002 CARD-SIGN-003 the signature is a JWS that a foreign verifier can check', () => {
    const header = JSON.parse(Buffer.from(signature?.protected ?? '', 'base64url').toString()) as object
    expect(header).toEqual({ alg: 'EdDSA', kid: pair.peerId, typ: 'JOSE' })
    const x = Buffer.from(pair.publicKey).toString('base64url')
    const foreign = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    const payload = Buffer.from(canonicalize(card)).toString('base64url')
    const input = Buffer.from(`${signature?.protected}.${payload}`)
    expect(verify(null, input, foreign, Buffer.from(signature?.signature ?? '', 'base64url'))).toBe(true)
  })

  test('no member stands at its proto default, so stripping defaults changes nothing', () => {
    const defaults: string[] = []
    const walk = (value: unknown, path: string): void => {
      const optional = path.startsWith('/capabilities/') && typeof value === 'boolean' // `optional bool` in the proto
      if (!optional && (value === '' || value === false || value === 0 || (Array.isArray(value) && value.length === 0)))
        defaults.push(path)
      if (typeof value === 'object' && value !== null)
        for (const [k, v] of Object.entries(value)) walk(v, `${path}/${k}`)
    }
    walk(card, '')
    expect(defaults).toEqual([])
  })

  test('signing twice gives the same bytes, and verifying gives the card', () => {
    expect(signCard(card, pair)).toEqual(signed)
    expect(verifyCard(JSON.parse(JSON.stringify(signed)), pair.peerId)).toEqual(signed)
  })

  test('any change of the card, or of who is asked for, is found', () => {
    expect(() => verifyCard({ ...signed, name: 'Echo2' }, pair.peerId)).toThrow(
      expect.objectContaining({ code: 'PEER_MISBEHAVED' }),
    )
    expect(() => verifyCard({ ...signed, extra: 1 }, pair.peerId)).toThrow(
      expect.objectContaining({ code: 'PEER_MISBEHAVED' }),
    )
    expect(() => verifyCard(signed, createKeyPair().peerId)).toThrow(
      expect.objectContaining({ code: 'PEER_MISBEHAVED' }),
    )
    expect(() => verifyCard(card, pair.peerId)).toThrow(expect.objectContaining({ code: 'PEER_MISBEHAVED' }))
    expect(() => verifyCard({ name: 'x' }, pair.peerId)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
    expect(() => verifyCard({ ...signed, x: 'y'.repeat(300_000) }, pair.peerId)).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }),
    )
  })

  test.each([
    ['another algorithm', { alg: 'none', kid: pair.peerId, typ: 'JOSE' }],
    ['a key id of another node', { alg: 'EdDSA', kid: createKeyPair().peerId, typ: 'JOSE' }],
    ['a critical header', { alg: 'EdDSA', crit: ['exp'], kid: pair.peerId, typ: 'JOSE' }],
  ])('%s is refused even where the signature is good', (_, header) => {
    const encoded = Buffer.from(JSON.stringify(header)).toString('base64url')
    const input = `${encoded}.${Buffer.from(canonicalize(card)).toString('base64url')}`
    const forged: AgentCard = {
      ...card,
      signatures: [{ protected: encoded, signature: Buffer.from(pair.sign(Buffer.from(input))).toString('base64url') }],
    }
    expect(() => verifyCard(forged, pair.peerId)).toThrow(expect.objectContaining({ code: 'PEER_MISBEHAVED' }))
  })

  test('the hash is of the canonical card, with or without its signature', () => {
    expect(cardHash(signed)).toBe(`sha256:${sha256Hex(canonicalize(card))}`)
    expect(cardHash(card)).toBe(cardHash(signed))
  })
})
