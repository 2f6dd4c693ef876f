/**
 * A small reader of TypeScript text: enough to ask what a file imports and what it does outside of its comments
 * and strings. It knows strings, templates, comments and regular expressions, and no grammar.
 */

/** One import, re-export or dynamic import: what is named in quotes, and the line counted from 1. */
export type Import = { readonly from: string; readonly line: number; readonly isTypeOnly: boolean }

const STATIC = /(?:^|[;\n])\s*(import|export)\b([^;'"`]*?)\bfrom\s*(['"])/g
const BARE = /(?:^|[;\n])\s*import\s*(['"])/g
const DYNAMIC = /\bimport\(\s*(['"])/g
/** After one of these a slash opens a regular expression. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%~^<>\n]|\breturn|\btypeof|\bcase|\bof|\bin)\s*$/

/**
 * The text with comments, and where asked also the insides of strings, blanked by spaces. Line breaks and lengths stay.
 * The code inside `${}` of a template stays.
 */
export function maskText(text: string, hide: 'comments' | 'comments and strings'): string {
  const out = text.split('')
  const hidesStrings = hide === 'comments and strings'
  const blank = (from: number, to: number) => {
    for (let at = from; at < to; at++) if (out[at] !== '\n') out[at] = ' '
  }
  /** depth of braces at which each open template goes on */
  const templates: number[] = []
  let depth = 0
  let at = 0
  const template = (from: number) => {
    const { end, opensCode } = endOfTemplate(text, from)
    if (hidesStrings) blank(from, opensCode ? end - 2 : end - 1)
    if (opensCode) templates.push(depth)
    return end
  }
  while (at < text.length) {
    const char = text[at] ?? ''
    const next = text[at + 1]
    if (char === '/' && (next === '/' || next === '*')) {
      const end = next === '/' ? indexOrEnd(text, '\n', at) : indexOrEnd(text, '*/', at + 2, 2)
      blank(at, end)
      at = end
    } else if (char === "'" || char === '"') {
      const end = endOfString(text, at)
      if (hidesStrings) blank(at + 1, end - 1)
      at = end
    } else if (char === '`') {
      at = template(at + 1)
    } else if (char === '}' && templates.at(-1) === depth) {
      templates.pop()
      at = template(at + 1)
    } else if (char === '/' && BEFORE_REGEX.test(text.slice(Math.max(0, at - 20), at))) {
      const end = endOfRegex(text, at)
      if (hidesStrings) blank(at + 1, end - 1)
      at = end
    } else {
      if (char === '{') depth++
      if (char === '}') depth--
      at++
    }
  }
  return out.join('')
}

/** Everything a file imports, types included, in the order of kinds and lines. */
export function importsOf(text: string): readonly Import[] {
  const masked = maskText(text, 'comments and strings')
  const found: Import[] = []
  const note = (end: number, isTypeOnly: boolean) => {
    const from = text.slice(end, endOfString(text, end - 1) - 1)
    found.push({ from, line: text.slice(0, end).split('\n').length, isTypeOnly })
  }
  for (const match of masked.matchAll(STATIC)) {
    note(match.index + match[0].length, /^\s*type\b/.test(match[2] ?? ''))
  }
  for (const match of masked.matchAll(BARE)) note(match.index + match[0].length, false)
  for (const match of masked.matchAll(DYNAMIC)) note(match.index + match[0].length, false)
  return found
}

/** The strings of a file, comments left out: what stands between quotes, templates up to their first `${`. */
export function stringsOf(text: string): readonly { readonly value: string; readonly line: number }[] {
  const code = maskText(text, 'comments')
  const hidden = maskText(text, 'comments and strings')
  const found: { value: string; line: number }[] = []
  for (const match of hidden.matchAll(/(['"`])(\s*?)(\1|\$\{)/g)) {
    const begin = match.index + 1
    found.push({
      value: code.slice(begin, begin + (match[2] ?? '').length),
      line: text.slice(0, begin).split('\n').length,
    })
  }
  return found
}

function endOfString(text: string, from: number): number {
  const quote = text[from]
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === quote || text[at] === '\n') return at + 1
  }
  return text.length
}

/** Behind the closing backtick, or behind the `${` that opens code. */
function endOfTemplate(text: string, from: number): { end: number; opensCode: boolean } {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '`') return { end: at + 1, opensCode: false }
    else if (text[at] === '$' && text[at + 1] === '{') return { end: at + 2, opensCode: true }
  }
  return { end: text.length, opensCode: false }
}

function endOfRegex(text: string, from: number): number {
  let isInClass = false
  for (let at = from + 1; at < text.length && text[at] !== '\n'; at++) {
    const char = text[at]
    if (char === '\\') at++
    else if (char === '[') isInClass = true
    else if (char === ']') isInClass = false
    else if (char === '/' && !isInClass) return at + 1
  }
  return from + 1
}

function indexOrEnd(text: string, what: string, from: number, plus = 0): number {
  const at = text.indexOf(what, from)
  return at === -1 ? text.length : at + plus
}
