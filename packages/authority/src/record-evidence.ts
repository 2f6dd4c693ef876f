/**
 * The entry of the record that made a commit, in a form that travels with the commit: header, and payload with its
 * salt where it was not erased. It proves itself only so far: the payload is the one the header commits to. Which commit
 * it is of is told by who exports it.
 * @clause L0.4 L1.5
 */
import { fail, fromBase64Url, toBase64Url } from '@csb/core'
import { key, type View } from '@csb/store'
import { isCommitted, recordAt, recordOfCommit } from './record.ts'
import { readStored, storedRow, type RecordHeader, type StoredPayload } from './record-row.ts'

export type Evidence = {
  readonly header: RecordHeader
  /** with its salt; null where it was erased */
  readonly payload: Readonly<Record<string, unknown>> | null
}

const TEXTS = ['operation', 'outcome', 'door', 'label', 'payload'] as const
const TEXTS_OR_NULL = ['prev', 'code', 'actor', 'run', 'lease', 'basis'] as const
const COUNTS = ['seq', 'ts', 'reads'] as const
const MEMBERS = ['v', ...TEXTS, ...TEXTS_OR_NULL, ...COUNTS].sort().join()

/** What this node's record says of a commit; undefined where it made none such. @throws RECORD_DAMAGED */
export function evidenceOf(view: View, commit: string): Evidence | undefined {
  const seq = recordOfCommit(view, commit)
  if (seq === undefined || !view.has(key('header', seq))) return undefined
  const row = view.get(key('payload', seq))
  const { salt, stored } = row === undefined ? {} : readStored(row, seq)
  return {
    header: recordAt(view, seq).header,
    payload: salt === undefined ? null : { ...stored, salt: toBase64Url(salt) },
  }
}

/**
 * Check evidence from elsewhere: its form, and that the payload is the one its header commits to.
 * @param commit told where it fails
 * @throws MALFORMED
 */
export function checkEvidence(value: unknown, commit: string): void {
  const { header, payload, ...rest } = (value ?? {}) as { header?: unknown; payload?: unknown }
  if (!isHeader(header) || Object.keys(rest).length > 0) return fail('MALFORMED', { reason: 'evidence', commit })
  if (payload === null) return
  if (!isOf(header, payload)) fail('MALFORMED', { reason: 'evidence that its header does not commit to', commit })
}

function isHeader(value: unknown): value is RecordHeader {
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Readonly<Record<string, unknown>>
  return (
    Object.keys(fields).sort().join() === MEMBERS &&
    fields['v'] === 1 &&
    TEXTS.every((name) => typeof fields[name] === 'string') &&
    TEXTS_OR_NULL.every((name) => fields[name] === null || typeof fields[name] === 'string') &&
    COUNTS.every((name) => Number.isSafeInteger(fields[name]))
  )
}

function isOf(header: RecordHeader, payload: unknown): boolean {
  if (typeof payload !== 'object' || payload === null) return false
  const { salt, ...stored } = payload as { readonly salt?: unknown }
  const bytes = typeof salt === 'string' ? fromBase64Url(salt) : undefined
  return bytes !== undefined && isCommitted(header, storedRow(bytes, stored as StoredPayload))
}
