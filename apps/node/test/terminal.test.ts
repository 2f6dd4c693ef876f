import { describe, expect, test } from 'vitest'
import { inline, visible } from '../src/terminal.ts'
import { hintFor, messageFor, t } from '../src/texts.ts'

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

describe('attack 32: what could steer the eye or the terminal is shown, not obeyed', () => {
  test.each<[string, number[]]>([
    ['C0, DEL and C1', [...range(0x00, 0x08), ...range(0x0b, 0x1f), ...range(0x7f, 0x9f)]],
    ['bidi', [0x061c, 0x200e, 0x200f, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]],
    ['zero width', [0x200b, 0x200c, 0x200d, 0x2060, 0xfeff]],
    ['soft hyphen', [0x00ad]],
    ['line and paragraph separators', [0x2028, 0x2029]],
    ['tags', range(0xe0000, 0xe007f)],
    ['variation selectors', [...range(0xfe00, 0xfe0f), ...range(0xe0100, 0xe01ef)]],
    ['fillers that look like nothing', [0x034f, 0x115f, 0x1160, 0x17b4, 0x3164, 0xffa0]],
    ['private use', [0xe000, 0xf8ff, 0xf0000, 0x10fffd]],
    ['noncharacters', [...range(0xfdd0, 0xfdef), 0xfffe, 0xffff, 0x1fffe, 0x10ffff]],
    ['lone surrogates', [0xd800, 0xdbff, 0xdc00, 0xdfff]],
  ])('%s', (_, codes) => {
    for (const code of codes) {
      const shown = `\\u{${code.toString(16)}}`
      expect(visible(`a${String.fromCodePoint(code)}b`)).toBe(`a${shown}b`)
      expect(inline(`a${String.fromCodePoint(code)}b`)).toBe(`a${shown}b`)
    }
  })

  test('ANSI: colours, cursor, title, links', () => {
    for (const text of [
      '\u001B[31mred',
      '\u001B[2J',
      '\u001B]0;title\u0007',
      '\u001B]8;;http://x\u001B\\y',
      '\u009B1A',
    ]) {
      // oxlint-disable-next-line no-control-regex
      expect(inline(text)).not.toMatch(/[\u0000-\u001F\u007F-\u009F]/)
    }
  })

  test('a value can not begin a line of its own; a text may', () => {
    expect(inline('a\nAPPROVED\tb')).toBe('a\\u{a}APPROVED\\u{9}b')
    expect(visible('a\nb')).toBe('a\nb')
  })

  test('what people write stays as it is', () => {
    for (const text of ['若兰 🌸', 'Ünïcödé', 'עברית', 'العربية', 'हिन्दी', 'e\u0301', '👍🏽', '한국어'])
      expect(inline(text)).toBe(text)
  })
})

test('what is left to the owner says what a person can do', () => {
  const details = { reason: 'left_to_the_owner', because: 'its session has read from outside' }
  expect(messageFor('DENIED', details)).toBe(t('message.DENIED.left_to_the_owner'))
  for (const command of ['csb trust', 'csb agent attach', 'csb lease --for NAME'])
    expect(hintFor('DENIED', details)).toContain(command)
})
