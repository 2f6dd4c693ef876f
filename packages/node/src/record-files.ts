/**
 * The record outside the node: a proof read from a file and checked without any node, and every entry as a line of
 * JSON with the checkpoint behind it.
 * @clause L1.6
 */
import { readFile } from 'node:fs/promises'
import { LIMITS, fail } from '@csb/core'
import { verifyProof, type ProvedRecord } from '@csb/authority'
import type { Client } from './client.ts'

type Page = { readonly items: readonly { readonly header: { readonly seq: number } }[] }
type Checkpoint = { readonly size: number; readonly latest: { readonly size: number; readonly note: string } | null }

/** @throws NOT_FOUND where there is no such file; as verifyProof does */
export async function readProof(file: string): Promise<ProvedRecord> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => fail('NOT_FOUND', { file }, error))
  return verifyProof(text)
}

/**
 * Every entry that the newest checkpoint covers, oldest first, then the checkpoint with its cosignatures; where none
 * was made yet, every entry there is, and null.
 */
export async function* exportRecord(client: Client): AsyncGenerator<object> {
  const { size, latest } = await client.call<Checkpoint>('GET', '/v1/record/checkpoint')
  const end = latest?.size ?? size
  for (let after = -1; after < end - 1;) {
    const limit = Math.min(LIMITS.listMax, end - 1 - after)
    const { items } = await client.call<Page>('GET', `/v1/record?after=${after}&limit=${limit}`)
    if (items.length === 0) fail('RECORD_DAMAGED', { seq: after + 1, reason: 'header missing' })
    yield* items
    after = items.at(-1)?.header.seq ?? end
  }
  yield { checkpoint: latest?.note ?? null }
}
