/**
 * Takes a person's notes into the home of a running node: read here, sent in batches, each batch one commit. Done
 * again it makes no twins. What the node refuses of a batch is found one by one and named; the rest goes in.
 */
import { stat } from 'node:fs/promises'
import { LIMITS, fail, formatLabel, isNodeError, type Label, type NodeError } from '@csb/core'
import { readNoteFile, readTranscript, readVault, type ImportItem } from '@csb/memory'
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

/** What is wrong with a note itself; anything else is wrong with every one of them. */
const REFUSALS = ['INVALID_INPUT', 'MALFORMED', 'TOO_LARGE'] as const

type Batch = { readonly items: readonly { readonly id: string }[]; readonly kept: readonly string[] }

/**
 * Import a folder of Markdown, one file of Markdown or text, or a file that holds a chat transcript.
 * @param into `label` for every note, default private, the owner's; `home` default the node's own
 * @throws NOT_FOUND where there is neither, MALFORMED where a file is no transcript
 */
export async function importNotes(
  client: Client,
  path: string,
  { label, home }: { readonly label: Label | null; readonly home?: string },
  progress: ImportProgress,
): Promise<ImportReport> {
  const found = await stat(path).catch(() => fail('NOT_FOUND', { path }))
  const report = { created: 0, kept: 0, skipped: [], warnings: [], ids: [] } as Mutable
  let batch: Sent[] = []
  const send = async () => {
    if (batch.length === 0) return
    const items = batch
    batch = []
    await deliver(items)
    progress(report.created + report.kept)
  }
  const deliver = async (items: readonly Sent[]): Promise<void> => {
    const answer = await client
      .call<Batch>('POST', '/v1/memory/batch', {
        items: items.map(({ path: _path, ...item }) => item),
        existing: 'keep',
        ...(home === undefined ? {} : { home }),
      })
      .catch((error: unknown) => {
        if (REFUSALS.some((code) => isNodeError(error, code))) return error as NodeError
        throw error
      })
    if (!isNodeError(answer)) {
      report.created += answer.items.length
      report.kept += answer.kept.length
      report.ids.push(...answer.items.map(({ id }) => id))
    } else if (items.length > 1) {
      // halves, so that one note among many costs few questions
      const half = Math.ceil(items.length / 2)
      await deliver(items.slice(0, half))
      await deliver(items.slice(half))
    } else for (const { path: file } of items) report.skipped.push({ path: file, reason: reasonOf(answer) })
  }
  for await (const item of readerOf(path, found.isDirectory())) {
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

function readerOf(path: string, isFolder: boolean): AsyncIterable<ImportItem> {
  if (isFolder) return readVault(path)
  return /\.(?:md|markdown|txt)$/i.test(path) ? readNoteFile(path) : readTranscript(path)
}

type Mutable = {
  -readonly [Member in keyof ImportReport]: ImportReport[Member] extends readonly (infer T)[]
    ? T[]
    : ImportReport[Member]
}
type Sent = { path: string; entry: unknown; extra: unknown; label?: string }

const reasonOf = ({ code, message }: NodeError): string => `${message} [${code}]`

const sentOf = ({ path, input }: Extract<ImportItem, { kind: 'note' }>, label: Label | null): Sent => ({
  path,
  entry: input.entry,
  extra: input.extra,
  ...(label === null ? {} : { label: formatLabel(label) }),
})
