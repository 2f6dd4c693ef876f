import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS, canonicalize, checkStrict, parseBounded, parseStrict, utf8, type Json } from '@csb/core'
import { areMissing, readVector } from './vectors.ts'

const missing = areMissing('jcs')

/** What was thrown, or undefined. */
function thrownBy(work: () => unknown): unknown {
  try {
    work()
    return undefined
  } catch (error) {
    return error
  }
}

describe('canonical JSON', () => {
  test.skipIf(missing).each(['arrays', 'french', 'structures', 'unicode', 'values', 'weird'])(
    'the public RFC 8785 pair %s',
    (name) => {
      const canonical = canonicalize(JSON.parse(readVector(`jcs/input/${name}.json`)))
      expect(canonical).toBe(readVector(`jcs/output/${name}.json`))
      const hex = readVector(`jcs/outhex/${name}.txt`).replaceAll(/\s+/g, '')
      expect(Buffer.from(utf8(canonical)).toString('hex')).toBe(hex)
    },
  )

  test.each<[number, string]>([
    [0, '0'],
    [-0, '0'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [333333333.3333333, '333333333.3333333'],
    [1e30, '1e+30'],
    [4.5, '4.5'],
    [2e-3, '0.002'],
    [0.000000000000000000000000001, '1e-27'],
    [5e-324, '5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [9007199254740992, '9007199254740992'],
    [295147905179352830000, '295147905179352830000'],
  ])('attack 23: RFC 8785 appendix B: %d is written %s', (value, text) => expect(canonicalize(value)).toBe(text))

  test('one value has one text, whatever the order of its members', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = canonicalize(value)
        expect(canonicalize(shuffled(value as Json))).toBe(text)
        expect(canonicalize(JSON.parse(text))).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('members are ordered by UTF-16 unit, so that an emoji stands before U+FB33', () => {
    expect(canonicalize({ '\ufb33': 1, '😀': 2, ö: 3 })).toBe('{"ö":3,"😀":2,"\ufb33":1}')
  })

  test('undefined members are left out', () => expect(canonicalize({ a: undefined, b: 1 })).toBe('{"b":1}'))

  test.each<[string, unknown]>([
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a name', { '\udc00': 1 }],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['a bigint', 1n],
    ['undefined in a list', [undefined]],
  ])('%s has no canonical form', (_name, value) => {
    expect(thrownBy(() => canonicalize(value))).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('a cycle ends', () => {
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expect(thrownBy(() => canonicalize(loop))).toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('reading a document that carries authority', () => {
  const reject = (text: string, reason: string) =>
    expect(
      thrownBy(() => parseStrict(text)),
      text.slice(0, 60),
    ).toMatchObject({ code: 'MALFORMED', details: { reason } })

  test('takes the canonical text and nothing else', () => {
    expect(parseStrict('{"a":[1,"é",null,true],"b":{}}')).toEqual({ a: [1, 'é', null, true], b: {} })
    for (const text of [
      '{"level":"inform","level":"override"}',
      '{"a":1,"\\u0061":2}',
      '{ "a":1}',
      '{"b":1,"a":2}',
      '{"a":"\\u0062"}',
      '{"a":1}\n',
    ]) {
      reject(text, 'not canonical JSON')
    }
    reject('{"a":1', 'not JSON')
    reject('', 'not JSON')
    reject('\ufeff{}', 'not JSON')
  })

  test('attack 23: takes integers only, in their one spelling', () => {
    for (const text of ['1.5', '-0', '9007199254740992', '1e400', '-1e400', '0.1'])
      reject(`{"a":${text}}`, 'not an integer')
    for (const text of ['1.0', '1e3', '1E2']) reject(`{"a":${text}}`, 'not canonical JSON')
    expect(parseStrict('{"a":9007199254740991}')).toEqual({ a: Number.MAX_SAFE_INTEGER })
  })

  test('attack 22: takes well-formed NFC text only', () => {
    reject('"e\u0301"', 'not NFC')
    reject('{"e\u0301":1}', 'not NFC')
    reject('"\\ud800"', 'lone surrogate')
    reject('{"\\udfff":1}', 'lone surrogate')
  })

  test('attack 21: refuses __proto__, depth and size', () => {
    reject('{"__proto__":1}', '__proto__')
    reject(`${'['.repeat(18)}${']'.repeat(18)}`, 'too deep')
    expect(parseStrict(`${'['.repeat(16)}${']'.repeat(16)}`)).toBeDefined()
    const large = JSON.stringify('é'.repeat(LIMITS.grantBytes / 2))
    expect(thrownBy(() => parseStrict(large))).toMatchObject({ code: 'TOO_LARGE' })
    expect(thrownBy(() => parseStrict('[1,2]', { maxBytes: 4 }))).toMatchObject({ code: 'TOO_LARGE' })
    reject('['.repeat(5000), 'not JSON')
  })

  test('the canonical text of any strict value is read back', () => {
    const strict = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.maxSafeInteger().map((n) => (Object.is(n, -0) ? 0 : n)),
        fc.string({ unit: 'grapheme' }).map((text) => text.normalize('NFC')),
        fc.constantFrom(null, true, false),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie('value'), { maxKeys: 4 }),
      ),
    })).value
    fc.assert(
      fc.property(strict, (value) => {
        expect(parseStrict(canonicalize(value))).toEqual(JSON.parse(canonicalize(value)))
      }),
    )
  })

  test('a value that came parsed is held to the same', () => {
    expect(thrownBy(() => checkStrict({ a: [0.5] }))).toMatchObject({ code: 'MALFORMED' })
    expect(thrownBy(() => checkStrict({ a: -0 }))).toMatchObject({ code: 'MALFORMED' })
    expect(thrownBy(() => checkStrict(JSON.parse('{"x":{"__proto__":1}}')))).toMatchObject({ code: 'MALFORMED' })
    expect(thrownBy(() => checkStrict({ a: ['é', 7, null] }))).toBeUndefined()
  })
})

describe('reading JSON from a stranger', () => {
  const read = (text: string) => parseBounded(text, 10_000, 8)

  test.each([
    '{"a":1,"a":2}',
    '{"a":{"b":1,"\\u0062":2}}',
    '[{"x":1},{"x":1,"y":[{"z":1,"z":1}]}]',
    '{"__proto__":1}',
    '{"\\u005f_proto__":1}',
  ])('attack 21: refuses twice the same name: %s', (text) =>
    expect(thrownBy(() => read(text))).toMatchObject({ code: 'MALFORMED' }),
  )

  test.each([
    '{"a":{"a":1},"b":[{"a":1},{"a":2}]}',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
    '[]',
    '"x"',
    '{"a,b":1,"a":2}',
    '{"a":"\\\\","b":"a"}',
    '{"a":["a","a"]}',
    '1.5',
  ])('takes %s', (text) => expect(read(text)).toEqual(JSON.parse(text)))

  test('refuses depth and size before it builds anything', () => {
    expect(thrownBy(() => read('['.repeat(9)))).toMatchObject({ code: 'MALFORMED', details: { reason: 'too deep' } })
    expect(thrownBy(() => read(`"${'x'.repeat(10_000)}"`))).toMatchObject({ code: 'TOO_LARGE' })
    expect(thrownBy(() => read('{"a":'))).toMatchObject({ code: 'MALFORMED', details: { reason: 'not JSON' } })
  })

  test('reads whatever JSON.stringify writes, as JSON.parse does', () => {
    const json = fc.json({ maxDepth: 6 }).filter((text) => !text.includes('__proto__'))
    fc.assert(
      fc.property(json, (text) => {
        expect(parseBounded(text, 1_000_000)).toEqual(JSON.parse(text))
      }),
    )
  })

  test('attack 21: finds every doubled name', () => {
    const name = fc.string({ unit: 'binary', maxLength: 4 }).filter((text) => text !== '__proto__')
    fc.assert(
      fc.property(
        name,
        fc.json({ maxDepth: 2 }),
        fc.array(fc.json({ maxDepth: 1 }), { maxLength: 3 }),
        (key, value, others) => {
          const quoted = JSON.stringify(key)
          const between = others.map((other, i) => `"between ${i}":${other},`).join('')
          const text = `[{${quoted}:${value},${between}${quoted}:1}]`
          expect(thrownBy(() => parseBounded(text, 1_000_000))).toMatchObject({ code: 'MALFORMED' })
        },
      ),
    )
  })
})

function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  // fromEntries defines members, so that a name like __proto__ stays one
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>)
      .toReversed()
      .map(([name, item]) => [name, shuffled(item)]),
  )
}
