/**
 * Takes a person's notes into the home of a running node: read here, sent in batches, each batch one commit. Done
 * again it makes no twins.
 */
import { stat } from 'node:fs/promises'
import { LIMITS, fail, formatLabel, type Label } from '@csb/core'
import { readTranscript, readVault, type ImportItem } from '@csb/memory'
import type { Client } from './client.ts'

export type ImportReport = {
  readonly created: number
  /** here already, or forgotten: left as they are */
  readonly kept: number
  readonly skipped: readonly { readonly path: string; readonly reason: string }[]
  readonly warnings: readonly { readonly path: string; readonly warnings: readonly string[] }[]
  /** ids of the new notes */
  readonly ids: readonly string[]
}

/** How many entries were sent so far. */
export type ImportProgress = (sent: number) => void

type Batch = { readonly items: readonly { readonly id: string }[]; readonly kept: readonly string[] }

/**
 * Import a folder of Markdown, or a file that holds a chat transcript.
 * @param label for every note; default private, the owner's
 * @throws NOT_FOUND where there is neither, MALFORMED where a file is no transcript
 */
export async function importNotes(
  client: Client,
  path: string,
  label: Label | null,
  progress: ImportProgress,
): Promise<ImportReport> {
  const found = await stat(path).catch(() => fail('NOT_FOUND', { path }))
  const report = { created: 0, kept: 0, skipped: [], warnings: [], ids: [] } as Mutable
  let batch: Sent[] = []
  const send = async () => {
    if (batch.length === 0) return
    const answer = await client.call<Batch>('POST', '/v1/memory/batch', { items: batch, existing: 'keep' })
    report.created += answer.items.length
    report.kept += answer.kept.length
    report.ids.push(...answer.items.map(({ id }) => id))
    batch = []
    progress(report.created + report.kept)
  }
  for await (const item of found.isDirectory() ? readVault(path) : readTranscript(path)) {
    if (item.kind === 'skipped') report.skipped.push({ path: item.path, reason: item.reason })
    else {
      if (item.warnings.length > 0) report.warnings.push({ path: item.path, warnings: item.warnings })
      batch.push(sentOf(item, label))
    }
    if (batch.length >= LIMITS.memoryBatch) await send()
  }
  await send()
  return report
}

type Mutable = {
  -readonly [Member in keyof ImportReport]: ImportReport[Member] extends readonly (infer T)[]
    ? T[]
    : ImportReport[Member]
}
type Sent = { entry: unknown; extra: unknown; label?: string }

const sentOf = ({ input }: Extract<ImportItem, { kind: 'note' }>, label: Label | null): Sent => ({
  entry: input.entry,
  extra: input.extra,
  ...(label === null ? {} : { label: formatLabel(label) }),
})
