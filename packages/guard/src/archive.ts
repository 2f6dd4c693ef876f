/**
 * What an archive holds of this room, and what comes of it: tombstones, each signed, in the order of their ids. A
 * tombstone wins over a note that came with it.
 * @clause L0.4 L4.3
 */
import { EVERY_TAG, fail, type Clearance, type Tombstone } from '@csb/core'
import { isErased, type ExportSources, type Home } from '@csb/files'
import { notePath, rebuildIndex, type WriteWords } from '@csb/memory'
import type { Transaction, View } from '@csb/store'
import { applyTombstones } from './forget.ts'
import { checkTombstone, listTombstones, putTombstone } from './tombstones.ts'

const EVERYTHING: Clearance = { level: 'sealed', tags: [EVERY_TAG] }

/** @param evidence what this node's record says of a commit, as a JSON value; undefined where it says nothing */
export const exportSources = (evidence: (view: View, commit: string) => unknown): ExportSources => ({
  tombstones: (view, home) => listTombstones(view, home, EVERYTHING),
  evidence,
})

/**
 * Stage the index and the tombstones of a home that was imported.
 * @param input `tombstones` as they stood in the archive
 * @throws MALFORMED, DENIED where one is forged or of another home
 * @clause L4.3
 */
export async function settleImport(
  tx: Transaction,
  {
    home,
    tombstones,
    ...words
  }: Omit<WriteWords, 'home' | 'message'> & {
    readonly home: Home
    readonly tombstones: readonly unknown[]
  },
): Promise<void> {
  await rebuildIndex(tx, home.id)
  const checked = tombstones.map((value) => checkTombstone(value, home.id))
  if (checked.some(({ id }, at) => at > 0 && (checked[at - 1]?.id ?? '') >= id))
    fail('MALFORMED', { reason: 'tombstones out of order' })
  const isDone = ({ id }: Tombstone): boolean => isErased(tx, home.id, `/${notePath(id)}`)
  for (const tombstone of checked.filter(isDone)) putTombstone(tx, tombstone)
  await applyTombstones(tx, { ...words, home: home.id, tombstones: checked.filter((one) => !isDone(one)) })
}
