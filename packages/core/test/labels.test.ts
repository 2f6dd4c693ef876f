import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  EVERY_TAG,
  TOO_MANY_TAGS,
  INTEGRITIES,
  LEVELS,
  LIMITS,
  MOST_RESTRICTIVE,
  PUBLIC,
  compareLevels,
  meetClearances,
  dominates,
  formatLabel,
  isWithin,
  joinLabels,
  parseLabel,
  type Clearance,
  type Label,
} from '@csb/core'

const TAGS = ['health', 'money', 'work', '家', 'a_b-c']
const label: fc.Arbitrary<Label> = fc.record({
  level: fc.constantFrom(...LEVELS),
  integrity: fc.constantFrom(...INTEGRITIES),
  tags: fc.subarray(TAGS).map((tags) => tags.sort()),
})
const clearance: fc.Arbitrary<Clearance> = fc.record({
  level: fc.constantFrom(...LEVELS),
  tags: fc.subarray([...TAGS, EVERY_TAG]),
})

describe('L3.2 joining labels', () => {
  test('L3.2 only restricts: whoever may see the join may see each', () => {
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 5 }), clearance, (labels, reader) => {
        const joined = joinLabels(labels)
        expect(dominates(reader, joined)).toBe(labels.every((each) => dominates(reader, each)))
        const weakest = Math.min(...labels.map(({ integrity }) => INTEGRITIES.indexOf(integrity)))
        expect(INTEGRITIES.indexOf(joined.integrity)).toBe(weakest)
      }),
    )
  })

  test('L3.2 is the same in any order and grouping, and joining again changes nothing', () => {
    fc.assert(
      fc.property(label, label, label, (a, b, c) => {
        const all = joinLabels([a, b, c])
        expect(joinLabels([c, a, b])).toEqual(all)
        expect(joinLabels([joinLabels([a, b]), c])).toEqual(all)
        expect(joinLabels([all, a])).toEqual(all)
        expect(joinLabels([a, PUBLIC])).toEqual(joinLabels([a]))
      }),
    )
  })

  test('L3.2 of more tags than a label has room for is for those who hold every tag, however they came together', () => {
    const many = Array.from({ length: 40 }, (_, n) => ({ ...PUBLIC, tags: [`tag-${n}-${'x'.repeat(20)}`] }))
    const [all, some] = [joinLabels(many), joinLabels(many.slice(0, 10))]
    expect(some.tags).toHaveLength(10)
    expect(all).toEqual({ ...PUBLIC, tags: [TOO_MANY_TAGS] })
    expect(formatLabel(all).length).toBeLessThanOrEqual(LIMITS.labelChars)
    expect(joinLabels([joinLabels(many.slice(0, 5)), some, ...many.slice(9).toReversed()])).toEqual(all)
    expect(joinLabels([all, some])).toEqual(all)
    const tags = many.flatMap((one) => one.tags)
    expect(dominates({ level: 'sealed', tags }, all)).toBe(false)
    expect(dominates({ level: 'public', tags: [EVERY_TAG] }, all)).toBe(true)
    expect(parseLabel(formatLabel(all))).toEqual(all)
  })

  test('of nothing is public', () => expect(joinLabels([])).toEqual(PUBLIC))
})

describe('L4.2 who may see', () => {
  test.each<[Clearance, Label, boolean]>([
    [{ level: 'private', tags: [] }, { level: 'private', integrity: 'owner', tags: [] }, true],
    [{ level: 'trusted', tags: [] }, { level: 'private', integrity: 'owner', tags: [] }, false],
    [{ level: 'sealed', tags: [] }, { level: 'public', integrity: 'owner', tags: ['health'] }, false],
    [{ level: 'public', tags: ['health', 'x'] }, { level: 'public', integrity: 'external', tags: ['health'] }, true],
  ])('L4.2 %j and %j: %s', (reader, label_, expected) => expect(dominates(reader, label_)).toBe(expected))

  test('L4.2 what two clearances show together is what both of them show', () => {
    fc.assert(
      fc.property(clearance, clearance, label, (a, b, each) => {
        expect(dominates(meetClearances(a, b), each)).toBe(dominates(a, each) && dominates(b, each))
      }),
    )
  })

  test('levels are in one order', () => {
    expect([...LEVELS].sort(compareLevels)).toEqual(['public', 'trusted', 'private', 'sealed'])
    expect(isWithin('private', 'private')).toBe(true)
    expect(isWithin('sealed', 'private')).toBe(false)
  })
})

describe('spelling', () => {
  test('every label has one spelling that reads back as it', () => {
    fc.assert(
      fc.property(label, (each) => {
        expect(parseLabel(formatLabel(each))).toEqual(each)
        expect(formatLabel({ ...each, tags: [...each.tags, ...each.tags].toReversed() })).toBe(formatLabel(each))
      }),
    )
  })

  test.each([
    ['private', 'private:owner'],
    ['private:agent:work,health', 'private:agent:health,work'],
    ['public:external:a,a', 'public:external:a'],
  ])('%s is %s', (text, spelled) => expect(formatLabel(parseLabel(text))).toBe(spelled))

  test('L3.2 whatever is no label is the most restrictive one, never an error', () => {
    const foreign = [
      undefined,
      null,
      7,
      {},
      '',
      'secret',
      'PRIVATE',
      'private:',
      'private:root',
      'private:owner:a:b',
      'private:owner:,',
      'private:owner:a b',
      'private:owner:../x',
      'public:owner:-x',
      ' public',
    ]
    for (const text of foreign) expect(parseLabel(text), JSON.stringify(text)).toEqual(MOST_RESTRICTIVE)
    fc.assert(
      fc.property(fc.string(), (text) => {
        const read = parseLabel(text)
        expect(LEVELS).toContain(read.level)
      }),
    )
  })
})
