import { newId, utf8, type Memory } from '@csb/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { normaliseEntry } from '../src/entry.ts'
import { placeForeign, parseNote, renderNote, type Note } from '../src/note.ts'
import { notePath } from '../src/paths.ts'
import { DID, noteOf, NOW } from './support.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const refused = (yaml: string) =>
  expect(() => parseNote(utf8(`---\n${yaml}\n---\n\nbody\n`))).toThrow(
    expect.objectContaining({ code: 'MALFORMED' }) as Error,
  )

const WELL = `id: mem_1700000000000_abc\ntype: lesson\nlevel: hot\ntimestamp: 2023-11-14T22:13:20.000Z\nlabel: private:owner\nhlc: 018bcfe568000000\nactor: ${DID}`

describe('the form of a note', () => {
  test('L2.2 a note is front matter and content, spelled the same for ever', () => {
    const note = noteOf(
      {
        id: 'mem_1700000000000_abc',
        timestamp: 1_700_000_000_000,
        tags: ['茶', 'a: b'],
        links: [{ target_id: 'mem_1700000000001_b', relation: 'causes', weight: 0.5 }],
        mood: 'calm',
      },
      { label: { level: 'private', integrity: 'owner', tags: ['health'] }, deletedAt: NOW, extra: { type: 'book' } },
    )
    expect(text(renderNote(note))).toBe(`---
id: mem_1700000000000_abc
type: lesson
level: warm
timestamp: 2023-11-14T22:13:20.000Z
tags:
  - 茶
  - "a: b"
links:
  - target_id: mem_1700000000001_b
    relation: causes
    weight: 0.5
label: private:owner:health
hlc: 01a3185c50000000
actor: ${DID}
deleted_at: 2027-01-15T08:00:00.000Z
mood: calm
foreign:
  type: book
---

tea is hot
`)
  })

  test('a rendered note reads back as the same note, and renders to the same bytes', () => {
    fc.assert(
      fc.property(notes, (note) => {
        const bytes = renderNote(note)
        const read = parseNote(bytes)
        expect(read).toEqual(note)
        expect(text(renderNote(read))).toBe(text(bytes))
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    '---\nlooks: like\n---\nfront matter',
    '\n\nblank lines before',
    'and after\n\n\n',
    '\r\n',
    'a\r',
    '\uFEFFmark',
    '%',
    '...',
    '  ',
  ])('content %j is kept to the byte', (content) => {
    expect(parseNote(renderNote(noteOf({ content }))).entry.content).toBe(content)
  })

  test('a note written by hand is read', () => {
    const note = parseNote(utf8(`---\r\n${WELL.replaceAll('\n', '\r\n')}\r\nmood: [calm]\r\n---\r\n# Tea\r\nis hot`))
    expect(note).toMatchObject({
      entry: { id: 'mem_1700000000000_abc', timestamp: 1_700_000_000_000, mood: ['calm'], content: '# Tea\r\nis hot' },
      deletedAt: null,
    })
  })

  test('a label that nobody can read is the most restrictive', () => {
    expect(parseNote(utf8(`---\n${WELL.replace('private:owner', 'publik')}\n---\n\nx\n`)).label).toMatchObject({
      level: 'sealed',
      integrity: 'external',
    })
  })

  test('a member that bears one of our names can not pose as ours', () => {
    const { entry } = normaliseEntry(
      { content: 'x', label: 'public:owner', hlc: 'ffffffffffffffff', deleted_at: 1, foreign: 1, deleted: true },
      { now: NOW },
    )
    const note = parseNote(renderNote(noteOf({}, placeForeign(entry, { type: 'book', aliases: ['a'] }))))
    expect(note).toMatchObject({ label: { level: 'private' }, hlc: '01a3185c50000000', deletedAt: null })
    expect(note.extra).toEqual({
      label: 'public:owner',
      hlc: 'ffffffffffffffff',
      deleted_at: 1,
      foreign: 1,
      deleted: true,
      type: 'book',
    })
    expect(note.entry).toMatchObject({ aliases: ['a'], type: 'other' })
  })

  test('a note above the bound of one sync row is refused', () => {
    expect(() => renderNote(noteOf({ big: 'x'.repeat(70_000) }))).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }) as Error,
    )
  })
})

describe('hostile front matter is MALFORMED', () => {
  test('aliases and alias bombs', () => {
    refused(`${WELL}\na: &a [x, x]\nb: [*a, *a]`)
    const bomb = Array.from({ length: 30 }, (_, at) => `k${at + 1}: &k${at + 1} [*k${at}, *k${at}, *k${at}]`).join('\n')
    refused(`${WELL}\nk0: &k0 [x]\n${bomb}`)
  })

  test('equal keys, however they are spelled', () => {
    refused(`${WELL}\nlabel: public:owner`)
    refused(`${WELL}\n"label": public:owner`)
    refused(`${WELL}\nx: {a: 1, "a": 2}`)
  })

  test.each([
    ['depth', `x: ${'['.repeat(40)}${']'.repeat(40)}`],
    ['depth that is not even closed', `x: ${'['.repeat(30_000)}`],
    ['a second document', '...\nlabel: public:owner'],
    ['a directive', '%YAML 1.1'],
    ['size', `x: ${'y'.repeat(70_000)}`],
    ['a broken quote', 'x: "'],
    ['keys that are lists', '? [a]\n: b'],
    ['a clock that is none', 'hlc: 1'],
    ['foreign names that are not taken', 'foreign: {mood: calm}'],
    ['a deletion that is no time', 'deleted_at: soon'],
  ])('%s', (_, yaml) => refused(yaml.startsWith('hlc') ? WELL.replace(/hlc: .*/, yaml) : `${WELL}\n${yaml}`))

  test.each(['', 'just text', '---\nid: 1', '---\n- a\n---\n\nx\n', '---\n---\n\nx\n'])('%j', (bytes) => {
    expect(() => parseNote(utf8(bytes))).toThrow(expect.objectContaining({ code: 'MALFORMED' }) as Error)
  })

  test('bytes that are not UTF-8', () => {
    expect(() => parseNote(Uint8Array.of(0xff, 0xfe))).toThrow(expect.objectContaining({ code: 'MALFORMED' }) as Error)
  })

  test('many thousand keys cost no more than a moment', () => {
    const keys = Array.from({ length: 9000 }, (_, at) => `k${at}`).join(',')
    const since = process.cpuUsage().user
    parseNote(utf8(`---\n${WELL}\nx: {${keys}}\n---\n\nx\n`))
    expect(process.cpuUsage().user - since).toBeLessThan(5_000_000)
  })

  test('random bytes and random YAML throw nothing else', () => {
    const pieces = fc.array(
      fc.constantFrom(...Array.from('{}[]:,-?|>&*!%@"\'# \n\tab1~'), '---\n', '...', '<<', '&a ', '*a', ': '),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(pieces, (yaml) => {
        try {
          parseNote(utf8(`---\n${WELL}\n${yaml.join('')}\n---\n\nx\n`))
        } catch (error) {
          expect(error).toMatchObject({ code: 'MALFORMED' })
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the path of a note', () => {
  test('year and month come from the id, in UTC', () => {
    expect(notePath('mem_1700000000000_abc')).toMatch(/^notes\/2023\/11\/[0-9a-f]{2}\/mem_1700000000000_abc\.md$/)
  })

  test('what is no id has no path', () => {
    for (const id of ['../x', 'mem_1_a', 'mem_1700000000000_a/b'])
      expect(() => notePath(id)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
  })
})

const word = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    'yes',
    'null',
    '0123',
    '1e5',
    '---',
    '- a',
    '# x',
    'a: b',
    '2024-01-01',
    "it's",
    '"',
    '<<',
    '\u0085',
    '\u2028',
    'a\n---\nb',
    ' \n ',
    '\t',
  ),
)
const json = fc
  .jsonValue({ maxDepth: 3, stringUnit: 'grapheme' })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown)
const label = fc.record({
  level: fc.constantFrom('public', 'trusted', 'private', 'sealed' as const),
  integrity: fc.constantFrom('external', 'agent', 'owner' as const),
  tags: fc.uniqueArray(fc.constantFrom('健康', 'work', 'x_1')).map((tags) => tags.sort()),
})
const extra = fc.dictionary(
  fc.constantFrom('type', 'id', 'label', 'hlc', 'foreign', 'content', 'deleted', 'actor'),
  json,
  { noNullPrototype: true },
)
const foreign = fc.dictionary(
  word.filter((name) => name.length > 0),
  fc.oneof(json, word),
  { maxKeys: 4, noNullPrototype: true },
)

const notes: fc.Arbitrary<Note> = fc
  .record({
    content: word.filter((content) => content !== '' && !content.includes('\0')),
    timestamp: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    tags: fc.option(
      fc.array(
        word.filter((tag) => tag !== '' && Array.from(tag).length <= 32),
        { maxLength: 3 },
      ),
      { nil: undefined },
    ),
    embedding: fc.option(
      fc.array(
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
        { maxLength: 3 },
      ),
      { nil: undefined },
    ),
    metadata: fc.option(foreign, { nil: undefined }),
    deletedAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: null }),
    foreign,
    label,
    extra,
  })
  .map(
    ({ content, timestamp, tags, embedding, metadata, foreign: unknown, deletedAt, label: labelled, extra: taken }) => {
      const optional = Object.entries({ tags, embedding, metadata }).filter(([, value]) => value !== undefined)
      const entry = {
        id: newId('memory', NOW),
        type: 'event',
        content,
        level: 'cold',
        timestamp,
        ...Object.fromEntries(optional),
      } as Memory
      return noteOf({}, { ...placeForeign(entry, { ...unknown, ...taken }), label: labelled, deletedAt })
    },
  )
