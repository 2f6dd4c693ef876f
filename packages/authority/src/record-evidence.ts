/**
 * The entry of the record that made a commit, in a form that travels with the commit: header, payload with its salt
 * where it was not erased, and the word of the node in whose record it stands. What that proves: the payload is the one
 * the header commits to, it names the commit, and that node says so. That the entry stands in its record is not proved.
 * @clause L0.4 L1.5
 */
import {
  fail,
  fromBase64Url,
  isNodeError,
  signDocument,
  toBase64Url,
  utf8,
  verifyDocument,
  type KeyPair,
} from '@csb/core'
import { listHomes } from '@csb/files'
import { key, prefix, tail, type View } from '@csb/store'
import { readsIn, type ReadGroup } from './read-list.ts'
import { isCommitted, recordAt, recordOfCommit, type Mentioning } from './record.ts'
import { readStored, storedRow, type RecordHeader, type RecordPayload, type StoredPayload } from './record-row.ts'

export type Evidence = {
  readonly header: RecordHeader
  /** did of the node whose record it is of */
  readonly node: string
  /** with its salt; null where it was erased */
  readonly payload: (StoredPayload & { readonly salt: string }) | null
  /** of that node, over commit, header and node */
  readonly signature: string
}

/** Evidence that came with a home, read as an entry of this node's own record is. */
export type ImportedEvidence = Pick<Evidence, 'header' | 'node'> & {
  readonly home: string
  readonly payload: RecordPayload | null
  /** false where what is kept here is not what that node signed */
  readonly isSigned: boolean
}

const TEXTS = ['operation', 'outcome', 'door', 'label', 'payload'] as const
const TEXTS_OR_NULL = ['prev', 'code', 'actor', 'run', 'lease', 'basis'] as const
const COUNTS = ['seq', 'ts', 'reads'] as const
const MEMBERS = ['v', ...TEXTS, ...TEXTS_OR_NULL, ...COUNTS].sort().join()

/**
 * What this node's record says of a commit; undefined where it made none such.
 * @param signer key of this node
 * @throws RECORD_DAMAGED
 */
export function evidenceOf(view: View, commit: string, signer: KeyPair): Evidence | undefined {
  const seq = recordOfCommit(view, commit)
  if (seq === undefined || !view.has(key('header', seq))) return undefined
  const row = view.get(key('payload', seq))
  const { salt, stored } = row === undefined ? {} : readStored(row, seq)
  const { header } = recordAt(view, seq)
  const node = signer.did
  return {
    header,
    node,
    payload: salt === undefined || stored === undefined ? null : { ...stored, salt: toBase64Url(salt) },
    signature: signDocument('evidence', { commit, header, node }, signer),
  }
}

/**
 * Check evidence from elsewhere: its form, that the payload is the one its header commits to and names the commit, and
 * the signature.
 * @param commit that it is of
 * @throws MALFORMED
 */
export function checkEvidence(value: unknown, commit: string): void {
  const { header, payload, node, signature, ...rest } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (!isHeader(header) || typeof node !== 'string' || Object.keys(rest).length > 0)
    return fail('MALFORMED', { reason: 'evidence', commit })
  if (!verifyDocument('evidence', { commit, header, node }, signature, node))
    fail('MALFORMED', { reason: 'signature of evidence', commit, node })
  if (payload !== null && !isOf(header, payload, commit))
    fail('MALFORMED', { reason: 'evidence that its header does not commit to', commit })
}

/** Commits that begin so, of which evidence came with a home: commit to home. @param limit at most so many */
export async function importedCommits(view: View, oidPrefix: string, limit: number): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const { id: home } of await listHomes(view)) {
    const start = `${prefix('foreignRecord', home)}${oidPrefix}`
    for await (const [row] of view.range({ prefix: start, limit })) found.set(tail(row, 'foreignRecord', home), home)
  }
  return found
}

/** What came of a commit with its home. It was checked then, and is again. @throws NOT_FOUND */
export function importedEvidence(view: View, home: string, commit: string): ImportedEvidence {
  const kept = view.getJson<Evidence>(key('foreignRecord', home, commit)) ?? fail('NOT_FOUND', { home, commit })
  const { header, node, payload } = kept
  const read: RecordPayload | null =
    payload === null
      ? null
      : { reads: readsIn(() => view, groupsOf(payload)), effect: payload.effect, commit: payload.commit ?? null }
  return { home, header, node, payload: read, isSigned: isSound(kept, commit) }
}

/**
 * Evidence that mentions one of the given words, for the erase routine: a row of it goes as a whole.
 * @clause L3.4
 */
export async function importedThatMention(view: View, words: readonly string[]): Promise<Omit<Mentioning, 'seq'>[]> {
  const found: Omit<Mentioning, 'seq'>[] = []
  for (const { id: home } of await listHomes(view)) {
    for await (const [row] of view.range({ prefix: prefix('foreignRecord', home) })) {
      const payload = view.getJson<Evidence>(row)?.payload ?? null
      if (payload === null) continue
      const reads = readsIn(() => view, groupsOf(payload)).map(({ path, oid }) => `${path} ${oid}`)
      const text = [JSON.stringify(payload), ...reads].join('\n')
      const named = words.filter((word) => text.includes(word))
      if (named.length > 0) found.push({ key: row, bytes: utf8(payload.salt), words: named })
    }
  }
  return found
}

function isSound(value: Evidence, commit: string): boolean {
  try {
    checkEvidence(value, commit)
    return true
  } catch (error) {
    if (isNodeError(error, 'MALFORMED')) return false
    throw error
  }
}

/** Groups of reads that have the form: the rest came from elsewhere and is left out. */
const groupsOf = ({ reads = [] }: StoredPayload): readonly ReadGroup[] =>
  (Array.isArray(reads) ? reads : []).filter(isGroup)

function isGroup(value: unknown): value is ReadGroup {
  const { home, label, files, at, set } = (value ?? {}) as Readonly<Record<string, unknown>>
  const areFiles =
    Array.isArray(files) &&
    files.every(
      (one: unknown) => Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === 'string'),
    )
  const isPlaced = files === undefined && typeof at === 'string' && typeof set === 'string'
  return typeof home === 'string' && typeof label === 'string' && (areFiles || isPlaced)
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

function isOf(header: RecordHeader, payload: unknown, commit: string): boolean {
  if (typeof payload !== 'object' || payload === null) return false
  const { salt, ...stored } = payload as { readonly salt?: unknown }
  const bytes = typeof salt === 'string' ? fromBase64Url(salt) : undefined
  return (
    bytes !== undefined &&
    (stored as StoredPayload).commit === commit &&
    isCommitted(header, storedRow(bytes, stored as StoredPayload))
  )
}
