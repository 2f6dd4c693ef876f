import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesOfLines, diffLines, linesOf } from '../src/line-diff.ts'
import { mergeText } from '../src/text-merge.ts'
import { asText, text } from './open-home.ts'

const lines = fc
  .array(fc.constantFrom('a\n', 'b\n', 'c\n', '\n', 'x'), { maxLength: 14 })
  .map((parts) => parts.join(''))
const merged = (base: string, ours: string, theirs: string) => {
  const bytes = mergeText(text(base), text(ours), text(theirs))
  return bytes === undefined ? undefined : asText(bytes)
}

describe('lines', () => {
  test('applying what differs to the old lines gives the new ones, and nothing is changed that is alike', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const [a, b] = [linesOf(text(before)) ?? [], linesOf(text(after)) ?? []]
        const hunks = diffLines(a, b)
        const made: string[] = []
        let at = 0
        for (const hunk of hunks) {
          expect(hunk.start > at || (hunk.start === at && at === 0)).toBe(true)
          made.push(...a.slice(at, hunk.start), ...b.slice(hunk.newStart, hunk.newEnd))
          at = hunk.end
        }
        made.push(...a.slice(at))
        expect(made).toEqual(b)
        if (before === after) expect(hunks).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test('no shorter way leads from one text to the other', () => {
    const short = fc.array(fc.constantFrom('a\n', 'b\n', 'c\n'), { maxLength: 8 })
    fc.assert(
      fc.property(short, short, (a, b) => {
        const cost = diffLines(a, b).reduce((sum, hunk) => sum + hunk.end - hunk.start + hunk.newEnd - hunk.newStart, 0)
        expect(cost).toBe(a.length + b.length - 2 * longestCommon(a, b))
      }),
      { numRuns: 500 },
    )
  })

  test('bytes of any encoding come back as they were, and a NUL is no text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const found = linesOf(bytes)
        if (bytes.includes(0)) expect(found).toBeUndefined()
        else expect([...bytesOfLines(found ?? [])]).toEqual([...bytes])
      }),
    )
  })

  test('two texts with nothing in common end in one change, within a bound of time', () => {
    const many = (word: string) => Array.from({ length: 50_000 }, (_, i) => `${word}${i}\n`)
    expect(diffLines(many('a'), many('b'))).toEqual([{ start: 0, end: 50_000, newStart: 0, newEnd: 50_000 }])
  })

  test('many equal lines cost no more than others', () => {
    const blank = (count: number) => Array.from({ length: count }, () => '\n')
    expect(diffLines(['x', ...blank(50_000), 'y'], ['z', ...blank(50_001), 'w'])).toHaveLength(2)
  })
})

describe('merging text', () => {
  test('a text merged with itself, or with its base, is the text that changed', () => {
    fc.assert(
      fc.property(lines, lines, (base, changed) => {
        expect(merged(base, changed, changed)).toBe(changed)
        expect(merged(base, changed, base)).toBe(changed)
        expect(merged(base, base, changed)).toBe(changed)
      }),
      { numRuns: 500 },
    )
  })

  test('which side is which makes no difference', () => {
    fc.assert(
      fc.property(lines, lines, lines, (base, ours, theirs) => {
        expect(merged(base, ours, theirs)).toBe(merged(base, theirs, ours))
      }),
      { numRuns: 1000 },
    )
  })

  test('changes far from each other are both there, and every line that either brought is', () => {
    const base = Array.from({ length: 30 }, (_, i) => `line ${i}\n`)
    const edit = fc.record({
      at: fc.nat(29),
      drop: fc.nat(2),
      add: fc.array(fc.constantFrom('p', 'q'), { maxLength: 3 }),
    })
    const apply = ({ at, drop, add }: { at: number; drop: number; add: string[] }, mark: string) =>
      base.toSpliced(at, drop, ...add.map((word, i) => `${mark} ${word} ${i}\n`))
    fc.assert(
      fc.property(edit, edit, (left, right) => {
        const [ours, theirs] = [apply(left, 'ours'), apply(right, 'theirs')]
        const found = merged(base.join(''), ours.join(''), theirs.join(''))
        const apart = left.at + left.drop < right.at || right.at + right.drop < left.at
        if (apart) expect(found).toBeDefined()
        if (found === undefined) return
        const got = new Set(found.split(/(?<=\n)/))
        for (const line of [...ours, ...theirs]) if (!base.includes(line)) expect(got.has(line)).toBe(true)
        for (const line of base) expect(got.has(line)).toBe(ours.includes(line) && theirs.includes(line))
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['both change one line', 'a\nb\nc\n', 'a\nX\nc\n', 'a\nY\nc\n'],
    ['changes touch', 'a\nb\nc\n', 'X\nb\nc\n', 'a\nY\nc\n'],
    ['both insert at one place', 'a\nb\n', 'a\nX\nb\n', 'a\nY\nb\n'],
    ['one deletes what the other changes', 'a\nb\nc\n', 'a\nc\n', 'a\nY\nc\n'],
    ['a line end at the end of the file goes and the line changes', 'a\n', 'a', 'b\n'],
    ['it is no text', 'a\0b', 'a\0c', 'a\0d'],
  ])('is refused where %s', (_, base, ours, theirs) => {
    expect(merged(base, ours, theirs)).toBeUndefined()
  })

  test('the same change on both sides is taken once', () => {
    expect(merged('a\nb\nc\nd\n', 'a\nX\nc\nd\n', 'a\nX\nc\nE\n')).toBe('a\nX\nc\nE\n')
  })

  test('other line ends stay as they are', () => {
    expect(merged('a\r\nb\r\nc\r\nd\r\n', 'A\r\nb\r\nc\r\nd\r\n', 'a\r\nb\r\nc\r\nD\r\n')).toBe('A\r\nb\r\nc\r\nD\r\n')
  })
})

function longestCommon(a: readonly string[], b: readonly string[]): number {
  const row = Array.from({ length: b.length + 1 }, () => 0)
  for (const line of a) {
    let diagonal = 0
    for (let j = 1; j <= b.length; j++) {
      const above = row[j] ?? 0
      row[j] = line === b[j - 1] ? diagonal + 1 : Math.max(above, row[j - 1] ?? 0)
      diagonal = above
    }
  }
  return row.at(-1) ?? 0
}
