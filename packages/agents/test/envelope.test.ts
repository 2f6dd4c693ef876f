import { describe, expect, test } from 'vitest'
import { LIMITS, createKeyPair } from '@csb/core'
import { checkEnvelope, createEnvelope } from '../src/index.ts'

const [alice, bob, eve] = [createKeyPair().did, createKeyPair().did, createKeyPair().did]
const now = 1_800_000_000_000
const body = { jsonrpc: '2.0' as const, id: 1, method: 'SendMessage', params: { message: {} } }
const envelope = createEnvelope({ from: alice, to: bob, agent: 'echo', body }, now)
const check = (value: unknown, at = now, peer = alice) => checkEnvelope(value, { peer, self: bob, now: at })

describe('envelopes', () => {
  test('A2A-017 what was made is read back the same', () => {
    expect(check(JSON.parse(JSON.stringify(envelope)))).toEqual(envelope)
    expect(envelope).toMatchObject({ version: '1.0', context: null, priority: 5, ttl: LIMITS.envelopeTtlMs })
  })

  test.each([
    ['A2A-017 a sender that is not the peer', { from: eve }, 'SENDER_MISMATCH'],
    ['an envelope for another node', { to: eve }, 'NOT_FOUND'],
    ['A2A-011 another major version', { version: '2.0' }, 'VERSION_MISMATCH'],
    ['no version', { version: 7 }, 'MALFORMED'],
    ['a priority out of range', { priority: 10 }, 'MALFORMED'],
    ['an unknown member', { extra: 1 }, 'MALFORMED'],
    ['one sent in the future', { sent_at: now + LIMITS.clockSkewMs + 1 }, 'EXPIRED'],
  ])('%s is refused', (_, change, code) => {
    expect(() => check({ ...envelope, ...change })).toThrow(expect.objectContaining({ code }))
  })

  test('another version is refused as such even where nothing else can be read', () => {
    expect(() => check({ version: '9.1', all: 'different' })).toThrow(
      expect.objectContaining({ code: 'VERSION_MISMATCH' }),
    )
  })

  test('another minor version is read', () => {
    expect(check({ ...envelope, version: '1.7' })).toMatchObject({ version: '1.7' })
  })

  test('it lives for its ttl and not a millisecond more', () => {
    expect(check(envelope, now + envelope.ttl - 1)).toEqual(envelope)
    expect(() => check(envelope, now + envelope.ttl)).toThrow(expect.objectContaining({ code: 'EXPIRED' }))
  })

  test('nothing is made that would not be read', () => {
    expect(() => createEnvelope({ from: alice, to: bob, agent: 'Not An Id', body }, now)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
  })

  test.each([null, 7, 'x', [], {}])('%j is malformed', (value) => {
    expect(() => check(value)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
  })
})
