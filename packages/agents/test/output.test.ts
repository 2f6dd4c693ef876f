import { array, assert, constant, integer, jsonValue, oneof, property, record, string } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError } from '@csb/core'
import { createOutputReader, type AgentEvent } from '../src/output.ts'

function read(bytes: Buffer, cuts: readonly number[], bound = 1 << 20): AgentEvent[] {
  const reader = createOutputReader(bound)
  const events: AgentEvent[] = []
  let from = 0
  for (const cut of [...cuts].map((one) => one % (bytes.byteLength + 1)).sort((a, b) => a - b)) {
    events.push(...reader.take(bytes.subarray(from, cut)))
    from = cut
  }
  return [...events, ...reader.take(bytes.subarray(from)), ...reader.finish()]
}

const line = oneof(
  record({ status: string() }),
  record({ text: string({ unit: 'grapheme' }) }),
  record({ artifact: record({ name: string(), text: string() }) }),
)
const cuts = array(integer({ min: 0, max: 100_000 }), { maxLength: 12 })

describe('what an agent writes', () => {
  test('is read the same however it is cut into chunks', () => {
    assert(
      property(
        array(line, { maxLength: 8 }),
        cuts,
        oneof(constant('\n'), constant('\r\n'), constant('\n\n')),
        (lines, at, end) => {
          const all = [...lines, { result: { data: lines.length } }]
          const bytes = Buffer.from(all.map((one) => JSON.stringify(one)).join(end))
          expect(read(bytes, at)).toEqual(read(bytes, []))
          expect(read(bytes, at)).toHaveLength(all.length)
        },
      ),
    )
  })

  test('one object over several lines is the same as on one', () => {
    assert(
      property(jsonValue(), cuts, (value, at) => {
        const object = { answer: value }
        const spread = Buffer.from(JSON.stringify(object, null, 2))
        expect(read(spread, at)).toEqual(read(Buffer.from(JSON.stringify(object)), []))
      }),
    )
  })

  test('what it used comes before what it used it for, by itself, beside and inside', () => {
    const lines = [
      { usage: { tokens: 1 } },
      { text: 'a', usage: { cost_micro: 2 } },
      { usage: { tokens: 3 }, result: { text: 'b', usage: { tokens: 4, cost_micro: 0 } } },
    ]
    expect(read(Buffer.from(lines.map((one) => JSON.stringify(one)).join('\n')), [])).toEqual([
      { kind: 'usage', usage: { tokens: 1 } },
      { kind: 'usage', usage: { cost_micro: 2 } },
      { kind: 'text', text: 'a' },
      { kind: 'usage', usage: { tokens: 3 } },
      { kind: 'usage', usage: { tokens: 4, cost_micro: 0 } },
      { kind: 'result', result: { text: 'b' } },
    ])
  })

  test.each([
    '{"tokens":-1}',
    '{"tokens":1.5}',
    '{"tokens":"3"}',
    '{"words":3}',
    '[3]',
    '3',
    'null',
    '{"tokens":1e300}',
  ])('what can not be counted is refused: %s', (usage) => {
    for (const text of [`{"usage":${usage}}`, `{"result":{"usage":${usage}}}`]) {
      let code: unknown
      try {
        read(Buffer.from(text), [])
      } catch (error) {
        code = isNodeError(error) ? error.code : error
      }
      expect(code, text).toBe('AGENT_FAILED')
    }
  })

  test('any bytes at all are either read or refused by a code', () => {
    assert(
      property(array(integer({ min: 0, max: 255 }), { maxLength: 200 }), cuts, (bytes, at) => {
        try {
          read(Buffer.from(bytes), at, 150)
        } catch (error) {
          expect(isNodeError(error, 'AGENT_FAILED') || isNodeError(error, 'AGENT_OUTPUT_TOO_LARGE')).toBe(true)
        }
      }),
    )
  })
})
