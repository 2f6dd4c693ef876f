/**
 * Checkpoints: how long a record is and what its root is, signed by the node whose record it is, cosigned by those
 * who have seen nothing that contradicts it. C2SP checkpoint and cosignature/v1. Pure.
 *
 * The first line names the log: the did of the node, `/record`, and from the first restored backup on `/` and a
 * number, since a log that lost entries is another log. A witness is named by its did.
 * @clause L1.6
 */
import { didFromPublicKey, fail, publicKeyFromDid, toHex, utf8, verifySignature, type KeyPair } from '@csb/core'
import { noteKeyId, noteLine, noteText, parseNote, type Note, type NoteLine } from './note.ts'

/** Whose log, and the how manieth: 0 until a backup was restored. */
export type LogId = { readonly did: string; readonly number: number }

export type TreeHead = {
  /** entries */
  readonly size: number
  /** 64 hex digits */
  readonly root: string
}

export type Checkpoint = TreeHead & { readonly log: LogId }

export type Cosignature = {
  /** did of the witness */
  readonly did: string
  /** ms since epoch, by the witness's clock, in whole seconds */
  readonly at: number
}

/** A checkpoint that its log has signed. */
export type SignedCheckpoint = Checkpoint & {
  /** the note, as it came */
  readonly note: string
  /** those that verify, each witness once */
  readonly cosignatures: readonly Cosignature[]
}

const ORIGIN = /^(did:key:z[1-9A-HJ-NP-Za-km-z]{40,60})\/record(?:\/([1-9][0-9]{0,8}))?$/
const SIZE = /^(?:0|[1-9][0-9]{0,15})$/
const TIME_BYTES = 8

/** The first line of a log's checkpoints. */
export const originOf = ({ did, number }: LogId): string => `${did}/record${number === 0 ? '' : `/${number}`}`

/** @returns the note, signed by the node whose log it is */
export function signCheckpoint(number: number, head: TreeHead, key: KeyPair): string {
  const name = originOf({ did: key.did, number })
  const body = bodyOf({ ...head, log: { did: key.did, number } })
  const keyId = noteKeyId(name, 'log', key.publicKey)
  return noteText({ body, lines: [{ name, keyId, signature: key.sign(utf8(body)) }] })
}

/**
 * Read a checkpoint of a node's record. Lines of unknown keys are passed over.
 * @throws MALFORMED, TOO_LARGE; GRANT_INVALID with `bad_signature` where its log has not signed it
 */
export function readCheckpoint(text: string): SignedCheckpoint {
  const note = parseNote(text)
  const checkpoint = parseBody(note.body)
  if (!isSignedByLog(note, checkpoint.log)) fail('GRANT_INVALID', { reason: 'bad_signature' })
  return { ...checkpoint, note: text, cosignatures: cosignaturesOf(note, checkpoint.log.did) }
}

/**
 * Say that the log showed this checkpoint and that it follows from the one cosigned before.
 * @param now ms since epoch
 * @returns the line, to be put below the note
 */
export function cosign(text: string, key: KeyPair, now: number): string {
  const seconds = Math.floor(now / 1000)
  const time = new Uint8Array(TIME_BYTES)
  new DataView(time.buffer).setBigUint64(0, BigInt(seconds))
  const signature = key.sign(cosignedBytes(seconds, parseNote(text).body))
  const keyId = noteKeyId(key.did, 'cosignature', key.publicKey)
  return noteLine({ name: key.did, keyId, signature: Buffer.concat([time, signature]) })
}

/** The note with more lines: those that cosign it and verify, one of each witness, the newest. */
export function withCosignatures(text: string, lines: readonly NoteLine[], asked: (did: string) => boolean): string {
  const { body, lines: before } = parseNote(text)
  const { log } = parseBody(body)
  const fresh = lines.filter((line) => asked(line.name) && cosignatureIn(line, body, log.did) !== undefined)
  const names = new Set(fresh.map(({ name }) => name))
  return noteText({ body, lines: [...before.filter(({ name }) => !names.has(name)), ...fresh] })
}

function bodyOf({ log, size, root }: Checkpoint): string {
  return `${originOf(log)}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`
}

/** Lines behind the third are extensions of others and mean nothing here. */
function parseBody(body: string): Checkpoint {
  const [origin = '', size = '', root = ''] = body.split('\n')
  const [, did = '', number = '0'] = ORIGIN.exec(origin) ?? fail('MALFORMED', { reason: 'not the log of a node' })
  const hash = Buffer.from(root, 'base64')
  if (!SIZE.test(size) || !Number.isSafeInteger(Number(size))) fail('MALFORMED', { reason: 'size' })
  if (hash.byteLength !== 32 || hash.toString('base64') !== root) fail('MALFORMED', { reason: 'root' })
  return { log: { did, number: Number(number) }, size: Number(size), root: toHex(hash) }
}

function isSignedByLog({ body, lines }: Note, log: LogId): boolean {
  const name = originOf(log)
  const publicKey = publicKeyFromDid(log.did)
  if (publicKey === undefined) return false
  const keyId = noteKeyId(name, 'log', publicKey)
  const own = lines.filter((line) => line.name === name && line.keyId === keyId)
  return own.length > 0 && own.every(({ signature }) => verifySignature(log.did, utf8(body), signature))
}

function cosignaturesOf({ body, lines }: Note, logDid: string): readonly Cosignature[] {
  const found = new Map<string, Cosignature>()
  for (const line of lines) {
    const cosignature = cosignatureIn(line, body, logDid)
    if (cosignature !== undefined) found.set(cosignature.did, cosignature)
  }
  return [...found.values()]
}

/** Undefined for a line of another kind, one that does not verify, and for one of the log's own key. */
function cosignatureIn({ name, keyId, signature }: NoteLine, body: string, logDid: string): Cosignature | undefined {
  const publicKey = publicKeyFromDid(name)
  if (publicKey === undefined || didFromPublicKey(publicKey) === logDid) return undefined
  if (keyId !== noteKeyId(name, 'cosignature', publicKey) || signature.byteLength !== TIME_BYTES + 64) return undefined
  const seconds = Number(new DataView(signature.buffer, signature.byteOffset).getBigUint64(0))
  if (!Number.isSafeInteger(seconds * 1000)) return undefined
  const isGood = verifySignature(name, cosignedBytes(seconds, body), signature.subarray(TIME_BYTES))
  return isGood ? { did: name, at: seconds * 1000 } : undefined
}

const cosignedBytes = (seconds: number, body: string): Uint8Array => utf8(`cosignature/v1\ntime ${seconds}\n${body}`)
