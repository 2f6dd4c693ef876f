/**
 * What forgetting would do, told before anybody agrees: for each note what it is now, which versions of its file go,
 * which bytes stay because another file needs them. The same notes in the same home give the same plan, so that who
 * agreed to it can be held to it. Changes nothing.
 * @clause L3.4
 */
import { fail, sha256Hex } from '@csb/core'
import { findVersions, lookThrough, readBlob, type LiveCopy, type Looked } from '@csb/files'
import { getState, notePath } from '@csb/memory'
import type { View } from '@csb/store'
import { isForgotten } from './tombstones.ts'

/** One note of a plan, as it is now. */
export type ForgetItem = {
  readonly id: string
  readonly path: string
  /** of the version in force */
  readonly oid: string
  /** of the bytes of that version */
  readonly sha256: string
  /** of that version, in bytes */
  readonly size: number
  /** `level:integrity[:tags]` */
  readonly label: string
  /** blobs whose bytes go, sorted */
  readonly versions: readonly string[]
  /** files that need the same bytes, which therefore stay */
  readonly kept: readonly LiveCopy[]
}

/**
 * Look through history for what forgetting takes away, before anybody waits for it: {@link planForget} and
 * `forgetNotes` then look at what came since only.
 * @param ids the same, in the same order
 * @throws OBJECT_DAMAGED, INVALID_INPUT
 */
export const lookForNotes = (view: View, home: string, ids: readonly string[]): Promise<Looked> =>
  lookThrough(view, home, ids.map(notePath))

/**
 * @param ids without repeats; they are told in this order
 * @throws NOT_FOUND; FORGOTTEN where one was already; OBJECT_DAMAGED
 * @clause L3.4
 */
export async function planForget(
  view: View,
  home: string,
  ids: readonly string[],
  looked?: Looked,
): Promise<ForgetItem[]> {
  const states = ids.map((id) => {
    if (isForgotten(view, home, id)) fail('FORGOTTEN', { home, id })
    return getState(view, home, id) ?? fail('NOT_FOUND', { home, id })
  })
  const paths = states.map(({ path }) => path)
  const found = await findVersions(view, home, paths, looked)
  return states.map(({ id, path, oid, label }, at) => {
    const bytes = readBlob(view, home, oid)
    const { oids: versions = [], kept = [] } = found[at] ?? {}
    return { id, path, oid, sha256: sha256Hex(bytes), size: bytes.byteLength, label, versions, kept }
  })
}
