import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { digestOf, fromUtf8, utf8 } from '@csb/core'
import { headerRow, payloadRow, readHeaderRow, readStored, type RecordHeader } from '../src/record-row.ts'
import { agent, thrownBy } from './cast.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null })
const digest = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => digestOf(bytes))

const header: fc.Arbitrary<RecordHeader> = fc.record({
  actor: orNull(
    fc.oneof(
      fc.constant(agent.did),
      text,
      text.map((name) => `did:key:${name}`),
      text.map((name) => `:${name}`),
    ),
  ),
  basis: orNull(fc.oneof(digest, text)),
  code: orNull(text),
  door: text,
  label: text,
  lease: orNull(fc.oneof(digest, text)),
  operation: text,
  outcome: fc.constantFrom('done', 'refused', 'failed'),
  payload: fc.oneof(digest, text),
  prev: orNull(fc.constant('ab'.repeat(32))),
  reads: fc.nat(),
  run: orNull(text),
  seq: fc.nat(),
  ts: fc.nat(),
  v: fc.constant(1),
})

describe('an entry on the disk', () => {
  test('L1.6 is read back as it was, whatever its words are', () => {
    fc.assert(
      fc.property(header, (one) => {
        expect(readHeaderRow(headerRow(one), one.seq, one.prev)).toEqual(one)
      }),
      { numRuns: 500 },
    )
  })

  test('is damaged where it is no row, or names no outcome there is', () => {
    for (const row of [
      '',
      '{}',
      '[]',
      '[1,"a",7,0,0,"http",0,0,0,0,"public",""]',
      '[1,"a",0,0,0,"http",0,"###",0,0,"p","x"]',
    ]) {
      expect(
        thrownBy(() => readHeaderRow(utf8(row), 4, null)),
        row,
      ).toMatchObject({
        code: 'RECORD_DAMAGED',
        details: { seq: 4, reason: 'header' },
      })
    }
  })

  test('L3.4 a payload lies in plain text behind its salt, with the members that say something', () => {
    const salt = new Uint8Array(32).fill(0xff)
    const row = payloadRow(salt, { reads: [], effect: { note: 'mem_1' }, commit: null })
    expect(fromUtf8(row.subarray(32))).toBe('{"effect":{"note":"mem_1"}}')
    expect(readStored(row, 0)).toEqual({ salt: Buffer.from(salt), stored: { effect: { note: 'mem_1' } } })
    expect(thrownBy(() => readStored(row.subarray(0, 40), 7))).toMatchObject({ details: { seq: 7, reason: 'payload' } })
  })
})
