/**
 * Files that git acts on by itself in a clone, and links that lead out of one: `.gitmodules` tells it what else to clone and where to, `.gitattributes`
 * what to run over files. What `git fsck` calls an error in them is refused, under every name that some system takes
 * for theirs. Read exactly as git reads its settings, also where that is odd: what git would see is what is judged.
 *
 * Attacks stopped: a name with `..` or an address that is an option of a program (CVE-2018-11235, CVE-2018-17456), an
 * address with a hidden line end or without a host (CVE-2020-5260, CVE-2020-11008), a command in place of a way to
 * update, a path with a control character (CVE-2025-48384).
 * @clause L0.5
 */
import { LIMITS, fail, fromUtf8 } from '@csb/core'
import { isDotGit } from './paths.ts'

export type GitFile = 'modules' | 'attributes'

/** Names that begin like this are none of git's. */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/
/** Code points that HFS+ leaves out when it compares names. */
const HFS_IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g
/** Other case, short names of NTFS, trailing dots and spaces, a stream name. */
const NAMES: Readonly<Record<GitFile, RegExp>> = {
  modules: namesOf('gitmodules', 'gi7eba'),
  attributes: namesOf('gitattributes', 'gi7d29'),
}
/** No system follows a longer one. */
const LINK_BYTES = 4096
/** Git reads no longer line of attributes. */
const ATTRIBUTE_LINE_BYTES = 2048
/** Addresses that go to curl. */
const CURL = /^(?:https?|ftps?):(?::|\/\/)/
const CURL_HELPER = /^[a-z]+::/

/** Which of git's files a name stands for, on some system. */
export function gitFileOf(name: string): GitFile | undefined {
  if (PLAIN.test(name)) return undefined
  const shown = name.replace(HFS_IGNORED, '')
  return (['modules', 'attributes'] as const).find((kind) => NAMES[kind].test(shown))
}

/**
 * Refuse what would harm who clones it.
 * @param bytes null: no plain file stands there
 * @throws INVALID_INPUT with the reason and the path, TOO_LARGE
 */
export function checkGitFile(kind: GitFile, bytes: Uint8Array | null, path: string): void {
  if (bytes === null) return fail('INVALID_INPUT', { reason: `.git${kind} has to be a plain file`, path })
  if (bytes.byteLength > LIMITS.gitFileBytes) fail('TOO_LARGE', { maxBytes: LIMITS.gitFileBytes, path })
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const reason = kind === 'modules' ? problemOfModules(text) : problemOfAttributes(text)
  if (reason !== undefined) fail('INVALID_INPUT', { reason, path })
}

/**
 * How far the target of a symbolic link climbs above the folder it stands in, at any step of its way.
 * @throws INVALID_INPUT where it is not relative, or leads into what some system takes for `.git`
 */
export function climbOf(target: Uint8Array, path: string): number {
  const text = target.byteLength > LINK_BYTES ? undefined : fromUtf8(target)
  if (text === undefined || text === '' || text.startsWith('/') || /[\p{Cc}\\]/u.test(text) || /^[A-Za-z]:/.test(text))
    return fail('INVALID_INPUT', { reason: 'target of a symbolic link', path })
  let [depth, lowest] = [0, 0]
  for (const step of text.split('/')) {
    if (step === '..') lowest = Math.min(lowest, --depth)
    else if (step !== '' && step !== '.') depth++
    if (isDotGit(step)) fail('INVALID_INPUT', { reason: 'a symbolic link into .git', path })
  }
  return Math.abs(lowest)
}

function namesOf(name: string, short: string): RegExp {
  const numbered = [5, 4, 3, 2, 1, 0].map((kept) => `${short.slice(0, kept)}~[1-9][0-9]{${6 - kept}}`)
  const shorts = [`${name.slice(0, 6)}~[1-4]`, `${short}~[1-9]`, ...numbered].join('|')
  return new RegExp(`^(?:\\.${name}|${shorts})[ .]*(?::.*)?$`, 'is')
}

function problemOfAttributes(text: string): string | undefined {
  const [read = ''] = text.split('\0', 1)
  return read.split('\n').some((line) => line.length >= ATTRIBUTE_LINE_BYTES)
    ? 'line of attributes too long'
    : undefined
}

function problemOfModules(text: string): string | undefined {
  for (const { name, value } of settingsOf(text)) {
    const [, module, key] = /^submodule\.(.*)\.([^.]*)$/s.exec(name) ?? []
    const reason = module === undefined ? undefined : (problemOfModule(module) ?? problemOfSetting(key, value))
    if (reason !== undefined) return reason
  }
  return undefined
}

function problemOfModule(name: string): string | undefined {
  return name === '' || name.split(/[/\\]/).includes('..') ? 'name of a submodule' : undefined
}

function problemOfSetting(key: string | undefined, value: string | null): string | undefined {
  if (value === null) return undefined
  if (key === 'url' && !isAddress(value)) return 'address of a submodule'
  if (key === 'path' && (value.startsWith('-') || /\p{Cc}/u.test(value))) return 'path of a submodule'
  return key === 'update' && value.startsWith('!') ? 'a submodule that runs a command' : undefined
}

/** What git may hand to a program that fetches. */
function isAddress(url: string): boolean {
  if (url.startsWith('-')) return false
  const hasLineEnd = /\n|%0a/i.test(url)
  if (/^\.{1,2}[/\\]/.test(url) || url.startsWith('git://')) {
    const [lead = ''] = /^(?:\.{1,2}[/\\])*/.exec(url) ?? []
    const climbs = /\.\.[/\\]/.test(lead)
    return !hasLineEnd && !(climbs && /^[:/]/.test(url.slice(lead.length)))
  }
  if (!CURL.test(url)) return true
  const address = url.replace(CURL_HELPER, '')
  const start = address.indexOf('://')
  if (start <= 0 || hasLineEnd) return false
  const authority = address.slice(start + 3).split(/[/?#]/, 1)[0] ?? ''
  return authority.slice(authority.indexOf('@') + 1) !== ''
}

type Setting = { readonly name: string; readonly value: string | null }

/** What git takes from a file of settings, up to where it can not read on. Names end at a NUL, as C has it. */
function* settingsOf(text: string): Generator<Setting> {
  const input = createInput(text.startsWith('\u00ef\u00bb\u00bf') ? text.slice(3) : text)
  let section = ''
  for (let c = input.next(); !input.ended; c = input.next()) {
    if (c === '#' || c === ';') input.skipLine()
    else if (c === '[') {
      const read = readSection(input)
      if (read === undefined) return
      section = `${read}.`
    } else if (/[A-Za-z]/.test(c)) {
      const read = readSetting(input, c)
      if (read === undefined) return
      const [name = ''] = `${section}${read.name}`.split('\0', 1)
      yield { name, value: read.value?.split('\0', 1)[0] ?? null }
    } else if (!isSpace(c)) return
  }
}

type Input = {
  /** The next character; at the end a line end. */
  next(): string
  skipLine(): void
  /** true once the end was given */
  readonly ended: boolean
}

function createInput(text: string): Input {
  let at = 0
  const next = (): string => {
    if (text[at] === '\r' && text[at + 1] === '\n') at++
    return text[at++] ?? '\n'
  }
  return {
    next,
    skipLine: () => {
      while (next() !== '\n') continue
    },
    get ended() {
      return at > text.length
    },
  }
}

/** `[section]`, `[section.part]`, `[section "part"]`. */
function readSection(input: Input): string | undefined {
  let name = ''
  for (let c = input.next(); !input.ended; c = input.next()) {
    if (c === ']') return name
    if (isSpace(c)) return readPart(input, name, c)
    if (!/[A-Za-z0-9.-]/.test(c)) return undefined
    name += c.toLowerCase()
  }
  return undefined
}

function readPart(input: Input, section: string, first: string): string | undefined {
  let c = first
  while (isSpace(c)) {
    if (c === '\n') return undefined
    c = input.next()
  }
  if (c !== '"') return undefined
  let name = `${section}.`
  for (c = input.next(); c !== '"'; c = input.next()) {
    if (c === '\\') c = input.next()
    if (c === '\n') return undefined
    name += c
  }
  return input.next() === ']' ? name : undefined
}

function readSetting(input: Input, first: string): Setting | undefined {
  let name = first.toLowerCase()
  let c = input.next()
  for (; !input.ended && /[A-Za-z0-9-]/.test(c); c = input.next()) name += c.toLowerCase()
  while (c === ' ' || c === '\t') c = input.next()
  if (c === '\n') return { name, value: null }
  const value = c === '=' ? readValue(input) : undefined
  return value === undefined ? undefined : { name, value }
}

const ESCAPED: Readonly<Record<string, string>> = { t: '\t', b: '\b', n: '\n', '\\': '\\', '"': '"' }

function readValue(input: Input): string | undefined {
  let value = ''
  let spaces = 0
  let isQuoted = false
  for (let c = input.next(); c !== '\n'; c = input.next()) {
    if (isSpace(c) && !isQuoted) {
      if (value !== '') spaces++
      continue
    }
    if (!isQuoted && (c === ';' || c === '#')) {
      input.skipLine()
      return value
    }
    value += ' '.repeat(spaces)
    spaces = 0
    if (c === '"') isQuoted = !isQuoted
    else if (c === '\\') {
      const escaped = input.next()
      if (escaped === '\n') continue
      const meant = ESCAPED[escaped]
      if (meant === undefined) return undefined
      value += meant
    } else value += c
  }
  return isQuoted ? undefined : value
}

/** As git has it. */
const isSpace = (c: string): boolean => c === ' ' || c === '\t' || c === '\n' || c === '\r'
