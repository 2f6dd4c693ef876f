/** Names that the node itself gives to things. */
import { random } from './digest.ts'

/** The kinds of id and their prefixes. MEM-001 1.3 fixes `mem_<timestamp>_<random>`; the others follow it. */
export const ID_PREFIX = {
  memory: 'mem',
  run: 'run',
  task: 'task',
  context: 'ctx',
  message: 'msg',
  delegation: 'del',
  envelope: 'env',
  request: 'req',
  handoff: 'hof',
  gate: 'gate',
} as const

export type IdKind = keyof typeof ID_PREFIX

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * A new id: prefix, 13-digit milliseconds since epoch, 10 random Crockford base32 characters (50 bits).
 * @param now ms since epoch
 * @example newId('memory', 1700000000000) // 'mem_1700000000000_x3k9…'
 * @clause MEM-001.1.3
 */
export function newId(kind: IdKind, now: number): string {
  let tail = ''
  for (const byte of random(10)) tail += ALPHABET[byte & 31]
  return `${ID_PREFIX[kind]}_${String(now).padStart(13, '0')}_${tail}`
}

/** True for an id of the given kind; foreign tails of up to 64 word characters are accepted. */
export function isId(kind: IdKind, text: unknown): text is string {
  return typeof text === 'string' && new RegExp(`^${ID_PREFIX[kind]}_[0-9]{13}_[0-9A-Za-z]{1,64}$`).test(text)
}

/** The milliseconds inside an id, or undefined. */
export function idTime(id: string): number | undefined {
  const match = /^[a-z]+_([0-9]{13})_/.exec(id)
  return match === null ? undefined : Number(match[1])
}
