/** A lease as a person writes it into a file. */
import { readFile } from 'node:fs/promises'
import { fail, fromUtf8, parseBounded, type Lease } from '@csb/core'

const FILE_BYTES = 64 * 1024

/** `authorization_details` as a file: the list, its one entry, or the document around it. */
export async function readLease(path: string): Promise<Partial<Lease>> {
  const text = fromUtf8(await readFile(path).catch((error: unknown) => fail('NOT_FOUND', { file: path }, error)))
  const value = parseBounded(text ?? '', FILE_BYTES) as { authorization_details?: unknown } | null
  const list = value?.authorization_details ?? value
  const [entry, ...more] = Array.isArray(list) ? list : [list]
  if (typeof entry !== 'object' || entry === null || more.length > 0)
    fail('INVALID_INPUT', { file: path, reason: 'one lease is expected' })
  return entry as Partial<Lease>
}
