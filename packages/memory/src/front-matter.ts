/**
 * YAML front matter, read as if a stranger had written it and written so that equal values give equal text.
 * Only what JSON can say comes out. Aliases, second documents, directives, equal keys and depth are refused
 * before they cost anything. It never looks at what the keys mean.
 */
import { fail, utf8, type Json } from '@csb/core'
import { isMap, isScalar, isSeq, parseDocument, stringify, type Document, type Scalar } from 'yaml'

const READING = {
  version: '1.2',
  schema: 'core',
  // equal keys are looked for in `toJson`: the library compares every pair, which a hostile map makes slow
  uniqueKeys: false,
  stringKeys: true,
  resolveKnownTags: false,
  merge: false,
  strict: true,
  prettyErrors: false,
  logLevel: 'silent',
} as const

/** `---`, YAML, `---` at the very start of a text, and what follows. */
export type Split = {
  /** without the fences; undefined where the text does not begin with closed front matter */
  readonly yaml: string | undefined
  /** everything behind the closing fence and its line end; the whole text where there is none */
  readonly body: string
}

/** Part a text into front matter and body. */
export function splitFrontMatter(text: string): Split {
  const open = /^---[ \t]*\r?\n/.exec(text)
  if (open === null) return { yaml: undefined, body: text }
  for (let at = open[0].length; at < text.length;) {
    const end = text.indexOf('\n', at)
    const line = end === -1 ? text.slice(at) : text.slice(at, end)
    if (/^---[ \t]*\r?$/.test(line)) {
      return { yaml: text.slice(open[0].length, at), body: end === -1 ? '' : text.slice(end + 1) }
    }
    if (end === -1) break
    at = end + 1
  }
  return { yaml: undefined, body: text }
}

/**
 * Read YAML as a map of JSON values. Numbers that would lose digits, as `01234` or 20 digits, stay text.
 * @param maxBytes in UTF-8, looked at first
 * @param maxDepth of maps and lists in one another
 * @throws MALFORMED for whatever is not one plain map: alias, equal keys, tag with no JSON form, too deep, broken
 */
export function readYaml(yaml: string, maxBytes: number, maxDepth: number): Record<string, Json> {
  if (utf8(yaml).byteLength > maxBytes) fail('MALFORMED', { reason: 'front matter too large', maxBytes })
  // a line that begins so ends the document or sets directives; what follows it would be lost in silence
  if (/^(?:%|\.\.\.)/m.test(yaml)) fail('MALFORMED', { reason: 'more than one YAML document' })
  const { contents } = parseYaml(yaml)
  if (contents === null || (isScalar(contents) && contents.value === null)) return {}
  if (!isMap(contents)) fail('MALFORMED', { reason: 'front matter is not a map' })
  return toJson(contents, maxDepth) as Record<string, Json>
}

/** The YAML of a map, one key a line where it fits, with a line end. */
export function writeYaml(value: Readonly<Record<string, unknown>>): string {
  return stringify(value, { ...READING, lineWidth: 0, aliasDuplicateObjects: false })
}

function parseYaml(yaml: string): Document {
  try {
    const document = parseDocument(yaml, READING)
    const problem = document.errors[0]
    if (problem !== undefined) fail('MALFORMED', { reason: 'not YAML', problem: problem.code })
    return document
  } catch (error) {
    return fail('MALFORMED', { reason: 'not YAML' }, error)
  }
}

function toJson(node: unknown, depth: number): Json {
  if (depth < 0) fail('MALFORMED', { reason: 'too deep' })
  if (node === null) return null
  if (isScalar(node)) return toScalar(node)
  if (isSeq(node)) return node.items.map((item) => toJson(item, depth - 1))
  if (!isMap(node)) fail('MALFORMED', { reason: 'an alias' })
  const members = new Map<string, Json>()
  for (const { key, value } of node.items) {
    const name = isScalar(key) && typeof key.value === 'string' ? key.value : ''
    if (members.has(name)) fail('MALFORMED', { reason: 'equal keys', key: name })
    members.set(name, toJson(value, depth - 1))
  }
  // fromEntries defines members, so that `__proto__` is a name like any other
  return Object.fromEntries(members)
}

function toScalar({ value, source }: Scalar): Json {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') {
    if (!value.isWellFormed()) fail('MALFORMED', { reason: 'lone surrogate' })
    return value
  }
  if (typeof value !== 'number') fail('MALFORMED', { reason: 'a value that JSON can not say' })
  const losesDigits = /^[-+]?[0-9]+$/.test(source ?? '') && String(value) !== source
  return source !== undefined && (losesDigits || !Number.isFinite(value)) ? source : value
}
