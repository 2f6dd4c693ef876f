import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { levelOf, normaliseEntry } from '../src/entry.ts'

const NOW = 1_800_000_000_000
const lenient = (input: unknown) => normaliseEntry(input, { now: NOW })
const FULL = { id: 'mem_1700000000000_abc', type: 'lesson', content: 'tea', timestamp: 1_700_000_000_000, level: 'hot' }

describe('MEM-001.1.3 the entry', () => {
  test('MEM-001.1.3 an entry in its standard form passes unchanged and without a warning', () => {
    const entry = {
      ...FULL,
      tags: ['a', '茶'],
      source: 'user',
      embedding: [0.123, -0.5],
      metadata: { lastAccessed: 1_700_000_000_000, accessCount: 5, ttl: 7_776_000_000, version: 1, reserved_meta: {} },
      links: [{ target_id: 'mem_1700000000001_abc', relation: 'causes', weight: 0.8 }],
      link_metadata: { network_id: 'net_x', centrality: 0.75 },
      business_context: { scenario: '决策支持', priority: 3 },
    }
    expect(lenient(entry)).toEqual({ entry, warnings: [] })
  })

  test('MEM-001.1.3 an entry without id gets one with the time in it', () => {
    const { entry } = lenient({ content: 'tea' })
    expect(entry.id).toMatch(/^mem_1800000000000_[0-9a-z]{10}$/)
  })

  test('MEM-001.1.2 a level goes by the name the home gave it', () => {
    const levelMap = { hot: 'active', warm: 'project' }
    expect(normaliseEntry({ ...FULL, level: 'Active' }, { now: NOW, levelMap })).toMatchObject({
      entry: { level: 'hot' },
      warnings: [],
    })
    expect(levelOf('project', levelMap)).toBe('warm')
    expect(levelOf('archive', levelMap)).toBeUndefined()
  })
})

describe('MEM-001.1.4 fault tolerance', () => {
  test('MEM-001.1.4 unknown members are kept, also those with odd names', () => {
    const input = JSON.parse('{"content":"x","mood":{"deep":[1,null]},"__proto__":{"a":1},"constructor":2}') as object
    const { entry } = lenient(input)
    expect(Object.entries(entry)).toEqual(
      expect.arrayContaining([
        ['mood', { deep: [1, null] }],
        ['__proto__', { a: 1 }],
        ['constructor', 2],
      ]),
    )
  })

  test('MEM-001.1.4 what is missing is filled and said', () => {
    const { entry, warnings } = lenient({ content: 'x' })
    expect(entry).toMatchObject({ type: 'other', level: 'warm', timestamp: NOW })
    expect(warnings.map(({ path }) => path).sort()).toEqual(['/level', '/timestamp', '/type'])
  })

  test('MEM-001.1.4 the fallback value fills the members it fits and no others', () => {
    const { entry } = lenient({ ...FULL, fault_tolerance: { fallback_value: 'user' } })
    expect(entry).toMatchObject({ source: 'user' })
    expect(entry.tags).toBeUndefined()
    expect(lenient({ ...FULL, timestamp: 'soon', fault_tolerance: { fallback_value: 5 } }).entry.timestamp).toBe(5)
  })

  test.each([
    ['timestamp', '1700000000000', 1_700_000_000_000],
    ['timestamp', 1_700_000_000, 1_700_000_000_000],
    ['timestamp', '2023-11-14T22:13:20Z', 1_700_000_000_000],
    ['timestamp', '2023-11-14T23:13:20+01:00', 1_700_000_000_000],
    ['timestamp', 'tomorrow', NOW],
    ['timestamp', Number.NaN, NOW],
    ['content', 123, '123'],
    ['tags', 'tea', ['tea']],
    ['tags', [7, '', 'x'.repeat(33), 'ok', 'ok'], ['7', 'ok']],
    ['type', 'poem', 'other'],
    ['type', 'Lesson', 'lesson'],
    ['level', 'lukewarm', 'warm'],
    ['source', 'nobody', 'system'],
    ['embedding', ['0.5', 1], [0.5, 1]],
    ['embedding', [1, Number.POSITIVE_INFINITY], undefined],
    ['embedding', Array.from({ length: 2049 }, () => 0), undefined],
    ['metadata', { accessCount: '5', ttl: '60' }, { accessCount: 5, ttl: 60 }],
    ['metadata', 'none', undefined],
    [
      'links',
      { target_id: 'x', relation: 'loves', weight: '0.5' },
      [{ target_id: 'x', relation: 'relates_to', original_relation: 'loves', weight: 0.5 }],
    ],
    ['links', [{ relation: 'causes' }], []],
  ])('MEM-001.1.4 %s %j becomes %j with a warning', (name, from, to) => {
    const { entry, warnings } = lenient({ ...FULL, [name]: from })
    expect(entry[name]).toEqual(to)
    expect(warnings.some(({ path }) => path.startsWith(`/${name}`))).toBe(true)
    expect(() => lenient({ ...FULL, [name]: from, fault_tolerance: { strict: true } })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }) as Error,
    )
  })

  test('MEM-001.1.4 strict refuses what is missing, and takes what is whole', () => {
    expect(lenient({ ...FULL, fault_tolerance: { strict: true } }).warnings).toEqual([])
    for (const name of Object.keys(FULL)) {
      const { [name]: _, ...rest } = FULL as Record<string, unknown>
      expect(() => lenient({ ...rest, fault_tolerance: { strict: true } })).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT' }) as Error,
      )
    }
  })

  test('MEM-001.1.4 strict_schema asks for the schema to the letter', () => {
    expect(() => lenient({ ...FULL, tags: 'tea', fault_tolerance: { strict_schema: true } })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }) as Error,
    )
  })

  test('an entry from a newer version is taken with all it has', () => {
    const input = { ...FULL, fault_tolerance: { compatibility: 'v9' }, v9_member: [1] }
    expect(lenient(input).entry).toEqual(input)
  })

  test.each([
    ['no content', { ...FULL, content: '' }],
    ['no text as content', { ...FULL, content: { a: 1 } }],
    ['NUL in content', { ...FULL, content: 'a\0b' }],
    ['half a character', { ...FULL, content: '\ud83d' }],
    ['too long content', { ...FULL, content: 'a'.repeat(2049) }],
    ['a ttl of zero', { ...FULL, metadata: { ttl: 0 } }],
    ['a link to itself', { ...FULL, links: [{ target_id: FULL.id, relation: 'extends' }] }],
    ['a list', [FULL]],
    ['nothing', null],
  ])('%s is refused also leniently', (_, input) => {
    expect(() => lenient(input)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
  })

  test('depth without end is refused, not followed', () => {
    let deep: unknown = 1
    for (let at = 0; at < 50_000; at++) deep = [deep]
    expect(() => lenient({ ...FULL, deep })).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
  })

  test('MEM-002.2.1 content is counted in code points after NFC', () => {
    expect(lenient({ ...FULL, content: '🍵'.repeat(2048) }).entry.content).toHaveLength(4096)
    expect(lenient({ ...FULL, content: 'e\u0301'.repeat(2048) }).entry.content).toBe('é'.repeat(2048))
  })

  test('normalising twice is normalising once', () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.integer({ min: 0, max: 2e13 }),
      fc.date({ noInvalidDate: true }).map(String),
      fc.constantFrom('1970-02-01', '123', 'true', 'hot'),
    )
    const names = [
      'id',
      'type',
      'timestamp',
      'level',
      'tags',
      'source',
      'embedding',
      'metadata',
      'links',
      'fault_tolerance',
      'link_metadata',
      'business_context',
      'unknown',
      'deleted',
    ]
    const input = fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] })
    fc.assert(
      fc.property(input, (given) => {
        const { fault_tolerance: tolerance, ...rest } = given
        const once = attempt({
          ...rest,
          ...(typeof tolerance === 'string' ? {} : { fault_tolerance: tolerance }),
          content: 'x',
        })
        if (once === undefined) return
        expect(lenient(once.entry)).toEqual({ entry: once.entry, warnings: [] })
      }),
      { numRuns: 500 },
    )
  })
})

function attempt(input: unknown) {
  try {
    return lenient(input)
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_INPUT' })
    return undefined
  }
}
