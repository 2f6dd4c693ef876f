/**
 * Git's encoding of a commit, with the node's own facts (run, lease) as trailers at the end of the message,
 * where they survive every clone.
 *
 * A message can not forge trailers of the node: lines that begin with `Csb-` are refused in it.
 * @clause L1.5
 */
import { LIMITS, fail, fromUtf8, utf8 } from '@csb/core'

/** `at` in ms since epoch; git keeps whole seconds. `did` stands where git has the e-mail address. */
export type Person = { readonly name: string; readonly did: string; readonly at: number }

/** `message` is the text before the trailers, without a final line end. */
export type Commit = {
  readonly tree: string
  readonly parents: readonly string[]
  readonly author: Person
  readonly committer: Person
  readonly message: string
  readonly trailers: Readonly<Record<string, string>>
}

const PERSON = /^(.*?) ?<([^<>]*)> ([0-9]{1,15}) [+-][0-9]{4}$/
const TRAILER = /^([A-Za-z][A-Za-z0-9-]*): (\S|\S.*\S)$/
const OWN_TRAILER = /^csb-[a-z0-9-]*\s*:/im
/** All controls but tab and line end. */
const CONTROL = /(?![\t\n])\p{Cc}/u

/**
 * @returns the bytes that git hashes after its header
 * @throws INVALID_INPUT where a name, a message or a trailer can not stand in a commit
 */
export function encodeCommit(commit: Commit): Uint8Array {
  const lines = [
    `tree ${commit.tree}`,
    ...commit.parents.map((parent) => `parent ${parent}`),
    `author ${personLine(commit.author)}`,
    `committer ${personLine(commit.committer)}`,
    '',
    messageText(commit.message, commit.trailers),
  ]
  return utf8(lines.join('\n'))
}

/** @throws MALFORMED */
export function decodeCommit(bytes: Uint8Array): Commit {
  const text = fromUtf8(bytes) ?? fail('MALFORMED', { reason: 'commit is not UTF-8' })
  const end = text.indexOf('\n\n')
  const header = (end < 0 ? text : text.slice(0, end)).split('\n')
  const valuesOf = (name: string) =>
    header.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1))
  const tree = valuesOf('tree')[0] ?? fail('MALFORMED', { reason: 'commit without a tree' })
  return {
    tree,
    parents: valuesOf('parent'),
    author: parsePerson(valuesOf('author')[0]),
    committer: parsePerson(valuesOf('committer')[0]),
    ...splitMessage(end < 0 ? '' : text.slice(end + 2)),
  }
}

function personLine({ name, did, at }: Person): string {
  const sound =
    isLine(name, LIMITS.nameChars) && isLine(did, LIMITS.nameChars) && !/[<>]/.test(name + did) && !did.includes(' ')
  if (!sound) fail('INVALID_INPUT', { reason: 'name or did of an author' })
  if (!Number.isSafeInteger(at) || at < 0) fail('INVALID_INPUT', { reason: 'time of a commit' })
  return `${name} <${did}> ${Math.floor(at / 1000)} +0000`
}

function parsePerson(line: string | undefined): Person {
  const [, name, did, seconds] =
    PERSON.exec(line ?? '') ?? fail('MALFORMED', { reason: 'author or committer of a commit' })
  return { name: name ?? '', did: did ?? '', at: Number(seconds) * 1000 }
}

function messageText(message: string, trailers: Readonly<Record<string, string>>): string {
  const text = message
    .replaceAll('\r\n', '\n')
    .replace(/^\s*\n/, '')
    .trimEnd()
  if (text === '') fail('INVALID_INPUT', { reason: 'a commit needs a message' })
  if (text.length > LIMITS.commitMessageChars) fail('TOO_LARGE', { maxChars: LIMITS.commitMessageChars })
  if (CONTROL.test(text) || !text.isWellFormed()) fail('INVALID_INPUT', { reason: 'control character in a message' })
  if (OWN_TRAILER.test(text)) fail('INVALID_INPUT', { reason: 'a message can not hold Csb- trailers' })
  const lines = Object.entries(trailers).map(([name, value]) => {
    if (!isLine(value, LIMITS.pathChars) || !TRAILER.test(`${name}: ${value}`))
      fail('INVALID_INPUT', { reason: 'trailer', name })
    return `${name}: ${value}\n`
  })
  return lines.length === 0 ? `${text}\n` : `${text}\n\n${lines.join('')}`
}

/** The last paragraph is trailers where every line of it is one, and it is not the whole message. */
function splitMessage(text: string): { message: string; trailers: Record<string, string> } {
  const message = text.replace(/\n+$/, '')
  const start = message.lastIndexOf('\n\n')
  const found =
    start < 0
      ? []
      : message
          .slice(start + 2)
          .split('\n')
          .map((line) => TRAILER.exec(line))
  const trailers: Record<string, string> = {}
  for (const match of found) {
    const [, name, value] = match ?? []
    if (name === undefined || value === undefined || Object.hasOwn(trailers, name)) return { message, trailers: {} }
    trailers[name] = value
  }
  return { message: start < 0 ? message : message.slice(0, start).trimEnd(), trailers }
}

const isLine = (text: string, maxChars: number): boolean =>
  text !== '' &&
  text.length <= maxChars &&
  text.trim() === text &&
  text.isWellFormed() &&
  !/[\p{Cc}\u2028\u2029]/u.test(text)
