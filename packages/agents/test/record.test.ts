import { assert, constantFrom, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS, createFakeClock, createKeyPair } from '@csb/core'
import {
  acceptAgentRecord,
  agentRecord,
  getAgentRecord,
  listAgentRecords,
  nextRecordSeq,
  verifyAgentRecord,
  type AgentRecordInput,
} from '../src/index.ts'
import { temporaryStore } from './fixtures.ts'

const pair = createKeyPair()
const clock = createFakeClock()
const store = await temporaryStore()

const record = (change: Partial<AgentRecordInput> = {}, signer = pair) =>
  agentRecord(
    {
      name: 'nas',
      seq: 1,
      capabilities: ['b', 'a', 'b'],
      addresses: ['/ip4/10.0.0.1/tcp/1'],
      agents: [],
      now: clock.now(),
      ...change,
    },
    signer,
  )

const accept = (value: ReturnType<typeof record>) => store.transact((tx) => acceptAgentRecord(tx, value))

describe('agent records', () => {
  test('A2A-012 a record verifies for its own did, and for no other', () => {
    const value = record()
    expect(value.capabilities).toEqual(['a', 'b'])
    expect(verifyAgentRecord(JSON.parse(JSON.stringify(value)), pair.did, clock.now())).toEqual(value)
    expect(() => verifyAgentRecord(value, createKeyPair().did, clock.now())).toThrow(
      expect.objectContaining({ code: 'MALFORMED' }),
    )
  })

  test('A2A-012 any changed member breaks the signature', () => {
    const value = record()
    assert(
      property(constantFrom('name', 'seq', 'issued_at', 'expires_at', 'withdrawn', 'addresses'), (member) => {
        const spoiled = {
          name: 'other',
          seq: 2,
          issued_at: value.issued_at - 1,
          expires_at: value.expires_at - 1,
          withdrawn: true,
          addresses: [],
        }
        const changed = { ...value, [member]: spoiled[member] }
        expect(() => verifyAgentRecord(changed, pair.did, clock.now())).toThrow(
          expect.objectContaining({ code: 'MALFORMED' }),
        )
      }),
    )
  })

  test('an expired record, one from the future, and one that lives too long are refused', () => {
    const value = record()
    const at = (now: number) => () => verifyAgentRecord(value, pair.did, now)
    expect(at(value.expires_at)).toThrow(expect.objectContaining({ details: { reason: 'expired' } }))
    expect(at(value.issued_at - LIMITS.clockSkewMs - 1)).toThrow(
      expect.objectContaining({ details: { reason: 'future' } }),
    )
    expect(record({ ttlMs: LIMITS.agentRecordTtlMs * 2 }).expires_at - value.issued_at).toBe(LIMITS.agentRecordTtlMs)
  })

  test('a record above its bound is neither made nor read', () => {
    const addresses = Array.from({ length: 16 }, (_, n) => `/dns4/${'x'.repeat(240)}/${n}`)
    expect(() => record({ addresses })).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))
  })

  test('A2A-012 the number of a record never goes back', async () => {
    expect(await accept(record({ seq: 5 }))).toBe(true)
    expect(await accept(record({ seq: 5 }))).toBe(false)
    await expect(accept(record({ seq: 4 }))).rejects.toMatchObject({ code: 'REPLAYED' })
    await expect(accept(record({ seq: 5, name: 'other' }))).rejects.toMatchObject({ code: 'REPLAYED' })
    expect(await accept(record({ seq: 6, withdrawn: true }))).toBe(true)
    expect(getAgentRecord(store.view(), pair.did)).toMatchObject({ seq: 6, withdrawn: true })
  })

  test('A2A-006 those that offer a capability now are listed, withdrawn and expired ones are not', async () => {
    const own = await temporaryStore()
    const [one, two, three] = [createKeyPair(), createKeyPair(), createKeyPair()]
    await own.transact((tx) => {
      acceptAgentRecord(tx, record({ capabilities: ['math'] }, one))
      acceptAgentRecord(tx, record({ capabilities: ['math'], withdrawn: true }, two))
      acceptAgentRecord(tx, record({ capabilities: ['math', 'art'], ttlMs: 1_000 }, three))
    })
    const didsAt = async (now: number, capability?: string) =>
      (await listAgentRecords(own.view(), now, capability)).map(({ did }) => did)
    expect((await didsAt(clock.now(), 'math')).sort()).toEqual([one.did, three.did].sort())
    expect(await didsAt(clock.now() + 1_000, 'math')).toEqual([one.did])
    expect(await didsAt(clock.now(), 'none')).toEqual([])
  })

  test('the next number is above the last and not below the time', () => {
    expect(nextRecordSeq(store.view(), createKeyPair().did, 123)).toBe(123)
    expect(nextRecordSeq(store.view(), pair.did, 3)).toBe(7)
  })
})
