/**
 * The form of an archive: a line that names it, frames, and a digest of all of it in the last one. See
 * `protocols/archive-1.0.0.md`.
 *
 * Reading is bounded: nothing is taken into memory before its length was compared with what that frame may have.
 * @clause L0.4
 */
import { createHash, type Hash } from 'node:crypto'
import { LIMITS, canonicalize, fail, fromUtf8, utf8 } from '@csb/core'

/** In the order in which they come. Evidence of a commit follows the commit. */
export const FRAMES = {
  home: 'H',
  ref: 'R',
  tag: 'G',
  recycled: 'Y',
  forgotten: 'F',
  tombstone: 'T',
  object: 'O',
  evidence: 'E',
  end: 'Z',
} as const

export type FrameKind = keyof typeof FRAMES

export const MAGIC = utf8('csb-archive 1.0\n')
/** One letter and the length of what follows, big-endian. */
export const FRAME_HEAD_BYTES = 9
export const DIGEST_BYTES = 32

export type ArchiveReader = {
  /** The next frame's kind and length; undefined where the end was read and proved right. */
  next(): Promise<{ readonly kind: FrameKind; readonly bytes: number } | undefined>
  /** The next bytes of the frame, exactly so many. @throws MALFORMED where they do not come */
  take(bytes: number): Promise<Buffer>
  /** The next bytes of the frame in pieces as they come. */
  pieces(bytes: number): AsyncGenerator<Uint8Array>
  /** `sha256:` of the whole archive but its last frame; there once the end was read */
  digest(): string
}

const KINDS = new Map<string, FrameKind>(Object.entries(FRAMES).map(([kind, letter]) => [letter, kind as FrameKind]))

/** The head of a frame. */
export function frameHead(kind: FrameKind, bytes: number): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.write(FRAMES[kind], 0, 'latin1')
  head.writeBigUInt64BE(BigInt(bytes), 1)
  return head
}

/** A frame that holds one JSON value, in its one spelling. @throws TOO_LARGE */
export function lineFrame(kind: FrameKind, value: unknown): Buffer {
  const text = utf8(canonicalize(value))
  if (text.byteLength > LIMITS.archiveLineBytes) fail('TOO_LARGE', { maxBytes: LIMITS.archiveLineBytes, kind })
  return Buffer.concat([frameHead(kind, text.byteLength), text])
}

/** A JSON value that is spelled in its one way. @throws MALFORMED */
export function parseLine(bytes: Uint8Array): unknown {
  const text = fromUtf8(bytes) ?? fail('MALFORMED', { reason: 'not UTF-8' })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return fail('MALFORMED', { reason: 'not JSON' }, error)
  }
  // a nesting that is too deep for canonicalize is no line of ours either
  if (depthOf(text) > LIMITS.jsonDepth || canonicalize(value) !== text)
    fail('MALFORMED', { reason: 'not canonical JSON' })
  return value
}

/** @throws MALFORMED where it is no archive of a version this node reads, is cut short, goes on, or was changed */
export async function openArchive(source: AsyncIterable<Uint8Array>): Promise<ArchiveReader> {
  const input = createInput(source)
  const magic = await input.take(MAGIC.byteLength)
  if (!magic.equals(MAGIC)) fail('MALFORMED', { reason: 'not an archive of version 1' })
  let digest: string | undefined
  return {
    next: async () => {
      const head = await input.takeUnhashed(FRAME_HEAD_BYTES)
      const kind = KINDS.get(head.toString('latin1', 0, 1))
      const length = head.readBigUInt64BE(1)
      if (kind === undefined || length > BigInt(Number.MAX_SAFE_INTEGER)) return fail('MALFORMED', { reason: 'frame' })
      const bytes = Number(length)
      if (kind !== 'end') {
        input.hash.update(head)
        return { kind, bytes }
      }
      const proper = input.hash.digest()
      const told = await input.takeUnhashed(bytes === DIGEST_BYTES ? bytes : 0)
      if (!proper.equals(told)) fail('MALFORMED', { reason: 'the archive was changed' })
      await input.finish()
      digest = `sha256:${proper.toString('hex')}`
      return undefined
    },
    take: input.take,
    pieces: input.pieces,
    digest: () => digest ?? fail('INTERNAL', { reason: 'the archive is not read to its end' }),
  }
}

type Input = {
  readonly hash: Hash
  take(bytes: number): Promise<Buffer>
  takeUnhashed(bytes: number): Promise<Buffer>
  pieces(bytes: number): AsyncGenerator<Uint8Array>
  finish(): Promise<void>
}

function createInput(source: AsyncIterable<Uint8Array>): Input {
  const iterator = source[Symbol.asyncIterator]()
  const hash = createHash('sha256')
  let held: Uint8Array = new Uint8Array()
  const more = async (): Promise<boolean> => {
    const { done, value } = await iterator.next()
    if (done === true) return false
    held = value
    return true
  }
  const cut = async function* (bytes: number): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0;) {
      if (held.byteLength === 0 && !(await more())) fail('MALFORMED', { reason: 'the archive is cut short' })
      const part = held.subarray(0, left)
      held = held.subarray(part.byteLength)
      left -= part.byteLength
      if (part.byteLength > 0) yield part
    }
  }
  const pieces = async function* (bytes: number): AsyncGenerator<Uint8Array> {
    for await (const part of cut(bytes)) {
      hash.update(part)
      yield part
    }
  }
  const collect = async (parts: AsyncIterable<Uint8Array>): Promise<Buffer> => {
    const all: Uint8Array[] = []
    for await (const part of parts) all.push(part)
    return Buffer.concat(all)
  }
  return {
    hash,
    take: (bytes) => collect(pieces(bytes)),
    takeUnhashed: (bytes) => collect(cut(bytes)),
    pieces,
    finish: async () => {
      while (held.byteLength === 0) if (!(await more())) return
      fail('MALFORMED', { reason: 'the archive goes on behind its end' })
    },
  }
}

/** Deepest nesting of brackets outside of strings. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{}\]]/g)) {
    if (token === '[' || token === '{') deepest = Math.max(deepest, ++depth)
    else if (token === ']' || token === '}') depth--
  }
  return deepest
}
