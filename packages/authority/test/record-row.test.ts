import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { digestOf, fromUtf8, utf8 } from '@csb/core'
import { completedBy, leafHash } from '../src/merkle.ts'
import {
  headerBytes,
  headerRow,
  holderOfNode,
  leafOfRow,
  nodeIn,
  payloadRow,
  readHeader,
  readStored,
  splitRow,
  type RecordHeader,
} from '../src/record-row.ts'
import { agent, thrownBy } from './cast.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null })
const digest = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => digestOf(bytes))

const header: fc.Arbitrary<RecordHeader> = fc
  .record({
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
    payload: digest,
    reads: fc.nat(),
    run: orNull(text),
    seq: fc.nat(),
    ts: fc.nat(),
    v: fc.constant(1 as const),
  })
  .map((one) => ({ ...one, prev: one.seq === 0 ? null : 'ab'.repeat(32) }))

const bytesAt = (seq: number, words: string) =>
  Buffer.concat([new Uint8Array(32).fill(seq === 0 ? 0 : 1), new Uint8Array(32).fill(2), utf8(words)])
const GOOD = '[1,"a",0,0,0,"http",0,0,0,0,"public"]'

describe('an entry on the disk', () => {
  test('L1.6 is read back as it was, whatever its words are', () => {
    fc.assert(
      fc.property(header, (one) => {
        expect(readHeader(headerBytes(one), one.seq)).toEqual(one)
      }),
      { numRuns: 500 },
    )
  })

  test('L1.6 has its own hash and those of the subtrees it completes before it, and no more', () => {
    fc.assert(
      fc.property(header, (one) => {
        const bytes = headerBytes(one)
        const nodes = completedBy(one.seq, leafHash(bytes), (level, index) => leafHash(utf8(`${level}/${index}`)))
        const row = headerRow(
          nodes.map(({ hash }) => hash),
          bytes,
        )
        const { said } = splitRow(row, one.seq)
        expect(leafOfRow(bytes.subarray(0, 32), said)).toEqual(bytes)
        for (const { level, index, hash } of nodes) {
          expect(holderOfNode(level, index)).toBe(one.seq)
          expect(nodeIn(row, level)).toEqual(hash)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('L1.6 is damaged where it is no row, names no outcome there is, or is spelled another way', () => {
    expect(readHeader(bytesAt(4, GOOD), 4)).toMatchObject({ seq: 4, outcome: 'done', code: null })
    const nines = Buffer.alloc(32, 9)
    for (const words of [
      '',
      '{}',
      '[]',
      'null',
      '[1,"a",7,0,0,"http",0,0,0,0,"public"]',
      '[1,"a",0,0,0,"http",0,"###",0,0,"p"]',
      ` ${GOOD}`,
      GOOD.replace('1', '1.0'),
      GOOD.replace('"a"', '"\\u0061"'),
      `[1,"a",0,0,":${agent.did}","http",0,0,0,0,"public"]`,
      `[1,"a",0,0,0,"http",0,["sha256:${nines.toString('hex')}"],0,0,"public"]`,
      `[1,"a",0,0,0,"http",0,"${nines.toString('base64url')}=",0,0,"public"]`,
    ]) {
      expect(
        thrownBy(() => readHeader(bytesAt(4, words), 4)),
        words,
      ).toMatchObject({
        code: 'RECORD_DAMAGED',
        details: { seq: 4, reason: 'header' },
      })
    }
    expect(thrownBy(() => splitRow(new Uint8Array(95), 1))).toMatchObject({ code: 'RECORD_DAMAGED' })
  })

  test('L3.4 a payload lies in plain text behind its salt, with the members that say something', () => {
    const salt = new Uint8Array(32).fill(0xff)
    const row = payloadRow(salt, { reads: [], effect: { note: 'mem_1' }, commit: null })
    expect(fromUtf8(row.subarray(32))).toBe('{"effect":{"note":"mem_1"}}')
    expect(readStored(row, 0)).toEqual({ salt: Buffer.from(salt), stored: { effect: { note: 'mem_1' } } })
    expect(thrownBy(() => readStored(row.subarray(0, 40), 7))).toMatchObject({ details: { seq: 7, reason: 'payload' } })
  })
})
