/**
 * Names that may stand in a tree, and names of branches. What is refused here can not be checked out safely
 * somewhere, or shows a person something else than it is.
 *
 * Never repairs a name: a path that is not in its one spelling is refused.
 */
import { LIMITS, fail, utf8 } from '@csb/core'

/** Most file systems take no longer name. In UTF-8 bytes. */
const SEGMENT_BYTES = 255
const BRANCH_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/
/** Controls, line and paragraph separators, and the marks that turn the direction of text around. */
const HIDDEN = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u
/** Code points that HFS+ leaves out when it compares names: `.g\u200cit` is `.git` there. */
const HFS_IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g
/** What HFS+ and NTFS take for `.git`: other case, short name, trailing dots and spaces, a stream name. */
const DOT_GIT = /^(?:\.git|git~1)[ .]*(?::.*)?$/i
/** Most names: nothing in them needs a closer look. */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$/
/** The folder in a tree that belongs to the node: labels. */
const RESERVED = /^\.csb$/i

/**
 * Check a path of a tree.
 * @param path segments joined by `/`, NFC, at most 1024 characters, each segment at most 255 bytes
 * @returns the same path
 * @throws INVALID_INPUT with the reason
 */
export function validatePath(path: string): string {
  if (path.length > LIMITS.pathChars) fail('INVALID_INPUT', { reason: 'path too long', maxChars: LIMITS.pathChars })
  const reason = path
    .split('/')
    .map(problemOfName)
    .find((problem) => problem !== undefined)
  if (reason !== undefined) fail('INVALID_INPUT', { reason, path: path.toWellFormed() })
  return path
}

/** What is wrong with one segment of a path, or undefined. */
export function problemOfName(name: string): string | undefined {
  if (PLAIN.test(name)) return undefined
  if (name === '') return 'empty segment'
  if (name === '.' || name === '..') return 'dot segment'
  if (!name.isWellFormed()) return 'lone surrogate'
  if (name.normalize('NFC') !== name) return 'not NFC'
  if (HIDDEN.test(name)) return 'control or bidirectional character'
  if (name.includes('\\') || name.includes('/')) return 'slash or backslash'
  if (isDotGit(name)) return '.git'
  if (utf8(name).byteLength > SEGMENT_BYTES) return 'segment too long'
  return undefined
}

/** True for what some system takes for `.git`. */
export const isDotGit = (name: string): boolean => DOT_GIT.test(name.replace(HFS_IGNORED, ''))

/** True where the path lies in the folder that only the node writes. */
export const isReserved = (path: string): boolean => RESERVED.test(path.split('/')[0] ?? '')

/**
 * Check the name of a branch: what git takes as a ref name, in ASCII, and nothing that could be an object id.
 * @returns the same name
 * @throws INVALID_INPUT
 */
export function validateBranch(branch: string): string {
  const sound =
    BRANCH_PATTERN.test(branch) &&
    !/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(branch) &&
    branch.split('/').every((part) => part !== '' && !/^\.|\.\.|\.$|\.lock$/.test(part))
  if (!sound) fail('INVALID_INPUT', { reason: 'not a branch name', branch: branch.slice(0, 200).toWellFormed() })
  return branch
}
