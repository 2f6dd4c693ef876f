import { describe, expect, test } from 'vitest'
import { importsOf, maskText, stringsOf } from './code.ts'

describe('the reader of code', () => {
  test('finds static, bare, re-exported, dynamic and type imports', () => {
    const text = [
      "import { a } from './a.ts'",
      "import type { B } from './b.ts'",
      "import './c.ts'",
      "export * from './d.ts'",
      'const e = await import("./e.ts")',
      "type F = import('./f.ts').F",
    ].join('\n')
    expect(
      importsOf(text)
        .map(({ from }) => from)
        .sort(),
    ).toEqual(['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts'])
    expect(
      importsOf(text)
        .filter(({ isTypeOnly }) => isTypeOnly)
        .map(({ from }) => from),
    ).toEqual(['./b.ts'])
  })

  test('takes nothing from comments, strings, templates and regular expressions', () => {
    const text = [
      "// import { a } from './a.ts'",
      "/* Date.now() */ const b = 'Date.now()'",
      'const c = `Date.now() ${Date.now()} Date.now() ${`x${1}`} Date.now()`',
      'const d = /[\'"`]/.test(b) // Date.now()',
      'const e = 4 / 2 / 1 // Date.now()',
    ].join('\n')
    expect(importsOf(text)).toEqual([])
    expect(maskText(text, 'comments and strings').match(/Date\.now/g)).toHaveLength(1)
    expect(maskText(text, 'comments and strings')).toHaveLength(text.length)
  })

  test('gives the strings with their lines', () => {
    expect(stringsOf("const a = 'x'\n// 'no'\nconst b = `y/${a}/z`\n").slice(0, 2)).toEqual([
      { value: 'x', line: 1 },
      { value: 'y/', line: 3 },
    ])
  })
})
