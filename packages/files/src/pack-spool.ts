/**
 * A pack on its way in, as a file without a name in the data folder: it can be read at any place, takes no memory,
 * and is gone with the process whatever happens to it.
 */
import { createHash } from 'node:crypto'
import { readSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { LIMITS, fail, random, toHex, toNodeError } from '@csb/core'
import type { HashName } from './objects.ts'

export type PackSpool = {
  /** objects that its header announces */
  readonly count: number
  /** where the checksum begins */
  readonly end: number
  /** @throws MALFORMED where it ends before */
  read(at: number, length: number): Promise<Buffer>
  /** As far as there is something. For little reads: it waits for the disk. */
  readNow(at: number, length: number): Buffer
  close(): Promise<void>
}

const HEAD_BYTES = 12
/** A pack of up to so much is read from the disk once. */
const HELD_BYTES = 4 * 1024 * 1024
/** The least an object takes: a header and a deflated nothing. */
const LEAST_ENTRY_BYTES = 9

/**
 * Write down a pack as it comes and check its frame: signature, version, count, checksum.
 * @param folder where the file lies
 * @throws MALFORMED, TOO_LARGE, DISK_FULL; whatever the source throws
 */
export async function spoolPack(folder: string, hash: HashName, source: AsyncIterable<Uint8Array>): Promise<PackSpool> {
  const path = join(folder, `push-${toHex(random(8))}.tmp`)
  const file = await open(path, 'wx+', 0o600).catch((error: unknown) => {
    throw toNodeError(error)
  })
  try {
    await rm(path, { force: true })
    const { bytes, sum } = await write(source, hash, async (chunk) => {
      for (let at = 0; at < chunk.byteLength;) at += (await file.write(chunk, at)).bytesWritten
    })
    const readNow = (at: number, length: number): Buffer => {
      const buffer = Buffer.allocUnsafe(length)
      return buffer.subarray(0, readSync(file.fd, buffer, 0, length, at))
    }
    const end = bytes - sum.byteLength
    if (end < HEAD_BYTES || !readNow(end, sum.byteLength).equals(sum))
      fail('MALFORMED', { reason: 'checksum of a pack' })
    const count = countOf(readNow(0, HEAD_BYTES))
    const held = end <= HELD_BYTES ? readNow(0, end) : undefined
    if (count * LEAST_ENTRY_BYTES > end - HEAD_BYTES) fail('MALFORMED', { reason: 'count of a pack', count })
    return {
      count,
      end,
      readNow: held === undefined ? readNow : (at, length) => held.subarray(at, at + length),
      read: async (at, length) => {
        if (held !== undefined && at + length <= end) return held.subarray(at, at + length)
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at)
        return bytesRead === length ? buffer : fail('MALFORMED', { reason: 'pack cut short' })
      },
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw toNodeError(error)
  }
}

/** Hash all but the last bytes, which are what the hash should be. */
async function write(
  source: AsyncIterable<Uint8Array>,
  name: HashName,
  take: (chunk: Uint8Array) => Promise<void>,
): Promise<{ bytes: number; sum: Buffer }> {
  const hash = createHash(name)
  const sumBytes = name === 'sha1' ? 20 : 32
  let tail = Buffer.alloc(0)
  let bytes = 0
  for await (const chunk of source) {
    if (bytes === 0 && chunk.byteLength >= HEAD_BYTES) countOf(Buffer.from(chunk))
    bytes += chunk.byteLength
    if (bytes > LIMITS.packBytes) fail('TOO_LARGE', { maxBytes: LIMITS.packBytes })
    await take(chunk)
    if (chunk.byteLength < sumBytes) {
      const all = Buffer.concat([tail, chunk])
      const sure = Math.max(all.byteLength - sumBytes, 0)
      hash.update(all.subarray(0, sure))
      tail = all.subarray(sure)
      continue
    }
    hash.update(tail).update(chunk.subarray(0, -sumBytes))
    tail = Buffer.from(chunk.subarray(-sumBytes))
  }
  return { bytes, sum: hash.digest() }
}

/** @throws MALFORMED, TOO_LARGE */
function countOf(head: Buffer): number {
  if (head.toString('latin1', 0, 4) !== 'PACK' || ![2, 3].includes(head.readUInt32BE(4)))
    fail('MALFORMED', { reason: 'not a pack of version 2' })
  const count = head.readUInt32BE(8)
  return count > LIMITS.packObjects ? fail('TOO_LARGE', { maxObjects: LIMITS.packObjects, objects: count }) : count
}
