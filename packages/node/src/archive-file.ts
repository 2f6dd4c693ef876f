/**
 * A home's archive as a file: written beside its name until it is whole, so that an export that broke off can go on,
 * and read as it is sent.
 * @clause L0.4
 */
import { createReadStream } from 'node:fs'
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { fail } from '@csb/core'
import type { Client, Download } from './client.ts'

export type ExportTo = {
  readonly file: string
  /** id of a home; omitted: the node's own */
  readonly home?: string
  /** go on with what an export of before left */
  readonly resume: boolean
  /** told now and then: bytes that are there, of how many */
  readonly onProgress: (bytes: number, of: number) => void
}

export type Exported = {
  readonly file: string
  readonly bytes: number
  /** bytes that were there already */
  readonly resumedAt: number
}

type Imported = {
  readonly home: string
  readonly objects: number
  readonly branches: number
  readonly digest: string
}

const ARCHIVE_TYPE = 'application/vnd.csb.archive'

/**
 * @throws INVALID_INPUT where the file is there; PEER_UNREACHABLE where it broke off; what the node answers
 * @clause L0.4
 */
export async function exportToFile(client: Client, { file, home, resume, onProgress }: ExportTo): Promise<Exported> {
  if ((await sizeOf(file)) !== undefined) fail('INVALID_INPUT', { reason: 'that file is there already', file })
  const part = `${file}.part`
  const mark = `${part}.id`
  const left = resume ? ((await sizeOf(part)) ?? 0) : 0
  const known = left === 0 ? undefined : await readFile(mark, 'utf8').catch(() => undefined)
  const query = home === undefined ? '' : `?${new URLSearchParams({ home }).toString()}`
  const answer = await client.download(
    `/v1/files/export${query}`,
    known === undefined ? {} : { range: `bytes=${left}-`, 'if-range': known.trim() },
  )
  // a node that begins anew says so by 200
  const resumedAt = answer.status === 206 ? left : 0
  const total = resumedAt + Number(answer.headers['content-length'])
  await writeFile(mark, `${answer.headers.etag ?? ''}\n`, { mode: 0o600 })
  await append(part, answer, resumedAt, (bytes) => onProgress(bytes, total))
  const bytes = (await sizeOf(part)) ?? 0
  if (bytes !== total) fail('PEER_UNREACHABLE', { reason: 'the export broke off', file: part, bytes, total })
  await rename(part, file)
  await rm(mark, { force: true })
  return { file, bytes, resumedAt }
}

/**
 * @throws NOT_FOUND where there is no such file, INVALID_INPUT where it is a folder; what the node answers
 * @clause L0.4
 */
export async function importFromFile(
  client: Client,
  file: string,
  onProgress: (bytes: number, of: number) => void,
): Promise<Imported> {
  const total = (await sizeOf(file)) ?? fail('NOT_FOUND', { file })
  if ((await stat(file)).isDirectory()) fail('INVALID_INPUT', { reason: 'not_an_archive', file })
  const source = async function* (): AsyncGenerator<Uint8Array> {
    let sent = 0
    for await (const chunk of createReadStream(file) as AsyncIterable<Uint8Array>) {
      yield chunk
      sent += chunk.byteLength
      onProgress(sent, total)
    }
  }
  return client.upload<Imported>('/v1/files/import', ARCHIVE_TYPE, source())
}

/** An archive holds what is secret: nobody else reads the file. */
async function append(part: string, { body }: Download, from: number, onBytes: (bytes: number) => void): Promise<void> {
  const handle = await open(part, from === 0 ? 'w' : 'a', 0o600)
  let bytes = from
  try {
    for await (const chunk of body) {
      await handle.appendFile(chunk)
      bytes += chunk.byteLength
      onBytes(bytes)
    }
    await handle.sync()
  } catch (error) {
    const isLocal = (error as { syscall?: string }).syscall === 'write'
    if (isLocal) throw error
    fail('PEER_UNREACHABLE', { reason: 'the export broke off', file: part, bytes }, error)
  } finally {
    await handle.close()
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined
    throw error
  }
}
