/**
 * The end of a forgetting: bytes leave the disk, and entries of the record that name what was forgotten lose what they
 * say. Their headers go on proving that something was done; who and when stays, what does not.
 * @clause L1.6, L3.4
 */
import { importedThatMention, payloadsThatMention, unlistedThatMention } from '@csb/authority'
import { finishErasures, type FindMentions, type ForgetReport } from '@csb/guard'
import type { Store } from '@csb/store'

/** The salt at the head of a payload: 32 random bytes, so that a scan for it finds this payload and nothing else. */
const SALT_BYTES = 32

/** In this node's own record, and in what of others' came with a home, there as a whole. */
const inRecords: FindMentions = async (view, words) => {
  const own = [...(await payloadsThatMention(view, words)), ...(await unlistedThatMention(view, words))]
  const imported = await importedThatMention(view, words)
  return [
    ...own.map(({ key, bytes, words: named }) => ({ key, marker: bytes.slice(0, SALT_BYTES), words: named })),
    ...imported.map(({ key, bytes: marker, words: named }) => ({ key, marker, words: named })),
  ]
}

/**
 * Finish whatever forgetting is not finished: after an approval, after a round with a peer, at start.
 * @param ids notes whose reports are wanted; omitted: all
 * @throws OBJECT_DAMAGED, DISK_FULL
 * @clause L3.4
 */
export async function finishForgetting(store: Store, ids?: readonly string[]): Promise<ForgetReport[]> {
  const reports = await finishErasures(store, inRecords)
  return ids === undefined ? reports : reports.filter(({ id }) => ids.includes(id))
}
