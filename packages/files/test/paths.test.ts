import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { validateBranch, validatePath } from '../src/index.ts'

const refused = (path: string) =>
  expect(() => validatePath(path)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))

describe('paths', () => {
  test('ordinary names, other scripts and names that are reserved on Windows pass', () => {
    for (const path of [
      'a',
      'a/b.md',
      'notes/2026/筆記.md',
      '.hidden/x',
      'CON',
      'aux.txt',
      'a b/c',
      '..a',
      'a..b',
      '👩‍🚀.md',
      '.gitignore',
    ]) {
      expect(validatePath(path)).toBe(path)
    }
  })

  test.each([
    ['nothing', ''],
    ['a leading slash', '/a'],
    ['a trailing slash', 'a/'],
    ['an empty segment', 'a//b'],
    ['a dot', 'a/./b'],
    ['two dots', 'a/../b'],
    ['.git', '.git/config'],
    ['.git in other case', 'a/.GiT/hooks/x'],
    ['.git as HFS+ reads it', '.g\u200cit/config'],
    ['.git as NTFS reads it', 'git~1/config'],
    ['.git with a trailing dot', '.git. /config'],
    ['.git with a stream name', '.git::$INDEX_ALLOCATION/x'],
    ['a backslash', 'a\\b'],
    ['NUL', 'a\0b'],
    ['a line end', 'a\nb'],
    ['a C1 control', 'a\u0085b'],
    ['text turned around', 'a\u202egpj.exe'],
    ['an isolate', 'a\u2066b'],
    ['another form than NFC', 'e\u0301'],
    ['a lone surrogate', 'a\ud800'],
    ['a segment of 256 bytes', 'x'.repeat(256)],
    ['1025 characters', 'x/'.repeat(512) + 'y'],
  ])('%s is refused', (_, path) => refused(path))

  test('attack 29: whatever passes has only segments that a file system and git take', () => {
    const segment = fc.oneof(
      fc.constantFrom('a', '.', '..', '.git', '.GIT', 'git~1', '', 'x\\y', 'é', 'e\u0301', '\u202e', 'b.md'),
      fc.string({ unit: 'binary', maxLength: 8 }),
    )
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 4 }), (segments) => {
        const path = segments.join('/')
        try {
          validatePath(path)
        } catch {
          return
        }
        for (const part of path.split('/')) {
          expect(part).not.toMatch(/^$|^\.\.?$|\\|\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u)
          expect(part.toLowerCase()).not.toBe('.git')
        }
        expect(path.normalize('NFC')).toBe(path)
        expect(path.isWellFormed()).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('names of branches', () => {
  test.each(['main', 'runs/run_1700000000000_abc', 'handoff/x', 'v1.2'])('%s passes', (name) => {
    expect(validateBranch(name)).toBe(name)
  })

  test.each([
    '',
    '/a',
    'a/',
    'a//b',
    'a..b',
    'a/.b',
    'a.lock',
    'a.lock/b',
    'a.',
    '-a',
    'a b',
    'a~1',
    'a@{0}',
    'é',
    'a\n',
    'a'.repeat(201),
    'a'.repeat(40),
    'b'.repeat(64),
  ])('%j is refused', (name) =>
    expect(() => validateBranch(name)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' })),
  )
})
