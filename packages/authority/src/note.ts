/**
 * C2SP signed notes: a text, and lines that sign it. Whoever reads one looks for the keys it knows; lines of other
 * keys are passed over, so that a note can be signed anew and by more without becoming another one.
 *
 * A key's name and its id stand in every line. Here a name always begins with the did of the key, so a note can be
 * checked from itself alone; whom to believe is for the reader to say.
 * @clause L1.6
 */
import { LIMITS, fail, sha256, toHex, utf8 } from '@csb/core'

/** What a key signs with: plain Ed25519 for a log, a cosignature with its time for a witness. */
export const NOTE_KEYS = { log: 0x01, cosignature: 0x04 } as const

export type NoteLine = {
  readonly name: string
  /** 8 hex digits */
  readonly keyId: string
  readonly signature: Uint8Array
}

export type Note = {
  /** what is signed; ends with a newline */
  readonly body: string
  readonly lines: readonly NoteLine[]
}

const KEY_ID_BYTES = 4
const MOST_LINES = 100
const LINE = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u
/** no control character but the newline */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f]/

/**
 * The id of a key under a name: a hint which key a line is of, never a proof.
 * @param publicKey 32 bytes
 * @returns 8 hex digits
 */
export const noteKeyId = (name: string, kind: keyof typeof NOTE_KEYS, publicKey: Uint8Array): string =>
  toHex(sha256(utf8(`${name}\n`), Uint8Array.of(NOTE_KEYS[kind]), publicKey).subarray(0, KEY_ID_BYTES))

/** One line of a note, with its newline. */
export const noteLine = ({ name, keyId, signature }: NoteLine): string =>
  `\u2014 ${name} ${Buffer.concat([Buffer.from(keyId, 'hex'), signature]).toString('base64')}\n`

/** A note as text: the body, an empty line, its lines. */
export const noteText = ({ body, lines }: Note): string => `${body}\n${lines.map(noteLine).join('')}`

/** @throws MALFORMED `{reason}`, TOO_LARGE */
export function parseNote(text: string): Note {
  if (text.length > LIMITS.noteChars) fail('TOO_LARGE', { maxChars: LIMITS.noteChars })
  if (!text.isWellFormed() || CONTROL.test(text)) fail('MALFORMED', { reason: 'not the text of a note' })
  const split = text.lastIndexOf('\n\n')
  if (split < 0) fail('MALFORMED', { reason: 'a note without an empty line' })
  return { body: text.slice(0, split + 1), lines: parseNoteLines(text.slice(split + 2)) }
}

/**
 * Lines alone, as a witness answers with them.
 * @throws MALFORMED `{reason}`
 */
export function parseNoteLines(text: string): readonly NoteLine[] {
  if (!text.endsWith('\n')) fail('MALFORMED', { reason: 'a note ends with a newline' })
  const lines = text.slice(0, -1).split('\n')
  if (lines.length > MOST_LINES) fail('MALFORMED', { reason: 'too many signatures' })
  return lines.map((line) => {
    const [, name = '', encoded = ''] = LINE.exec(line) ?? fail('MALFORMED', { reason: 'a line that is no signature' })
    const bytes = Buffer.from(encoded, 'base64')
    if (bytes.toString('base64') !== encoded || bytes.byteLength <= KEY_ID_BYTES)
      fail('MALFORMED', { reason: 'a signature that is not base64' })
    return {
      name,
      keyId: toHex(bytes.subarray(0, KEY_ID_BYTES)),
      signature: new Uint8Array(bytes.subarray(KEY_ID_BYTES)),
    }
  })
}
