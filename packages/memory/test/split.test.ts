import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitText } from '../src/split.ts'

test('joined parts are the text, none is empty, none too long, none cut within a character', () => {
  const text = fc
    .array(
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\n\n', '\r\n\r\n', '\n', ' ', '。', '. ', '🍵🍵')),
      { maxLength: 40 },
    )
    .map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 50 }), (given, max) => {
      const parts = splitText(given, max)
      expect(parts.join('')).toBe(given)
      for (const part of parts) {
        expect(part.isWellFormed()).toBe(true)
        expect(Array.from(part).length).toBeGreaterThan(0)
        expect(Array.from(part).length).toBeLessThanOrEqual(max)
      }
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['a paragraph', 'aaaa\n\nbbbb\ncc dd', ['aaaa\n\n', 'bbbb\ncc dd']],
  ['a line', 'aaaa. b\ncccc. d eeee', ['aaaa. b\n', 'cccc. ', 'd eeee']],
  ['a sentence', 'Tea. is hot today.', ['Tea. ', 'is hot ', 'today.']],
  ['a Chinese sentence', '茶很热。今天很冷很冷很冷', ['茶很热。', '今天很冷很冷很冷']],
  ['a word', 'aaaa bbbb cccc', ['aaaa bbbb ', 'cccc']],
  ['nothing better', 'a'.repeat(25), ['a'.repeat(11), 'a'.repeat(11), 'aaa']],
])('a part ends with %s where it can', (_, text, parts) => {
  expect(splitText(text, 11)).toEqual(parts)
})

test('an early end of a paragraph makes no crumb', () => {
  expect(splitText('a\n\nbbbb bbbb bbbb bbbb bbbb', 20)[0]).toBe('a\n\nbbbb bbbb bbbb ')
})
