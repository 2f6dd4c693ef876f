/**
 * What was read before under the same lease. A session asks over and over, and an entry lists what was read since the one
 * before it; so a commit rests on what earlier entries list as well, and a commit in between hides nothing of it.
 *
 * Only of leases that were handed out: the owner's command line is one lease for ever, and what a person read for one
 * request says nothing of the next. Neither does what the node read for its own work.
 * @clause L1.5, L1.7
 */
import { LIMITS } from '@csb/core'
import { createReadList, key, prefix, tail, type ReadEntry, type View } from '@csb/store'
import { isSameOwner } from './key-line.ts'
import { recordAt } from './record.ts'
import { storedChain } from './stored-grants.ts'

export type EarlierReads = {
  /** each once, in the order in which they were listed */
  readonly reads: readonly ReadEntry[]
  /** entries whose payload was erased */
  readonly erased: number
  /** at least so many things were read before all of these, which were not looked at */
  readonly more: number
}

const NOTHING: EarlierReads = { reads: [], erased: 0, more: 0 }

/**
 * The newest {@link LIMITS.earlierEntries} entries with reads are looked at, as long as they list no more than
 * {@link LIMITS.earlierLooked} things together.
 * @param lease hash of its grant
 * @param before number of an entry: those before it are meant
 * @clause L1.5
 */
export async function earlierReads(view: View, lease: string | null, before: number): Promise<EarlierReads> {
  if (lease === null || !isHandedOut(view, lease)) return NOTHING
  const found: (readonly ReadEntry[])[] = []
  let [looked, things, erased, more] = [0, 0, 0, 0]
  const behind = { after: key('recordByLease', lease, before), reverse: true, limit: LIMITS.earlierEntries * 10 }
  for await (const [fullKey] of view.range({ prefix: prefix('recordByLease', lease), ...behind })) {
    if (++looked > LIMITS.earlierEntries || things > LIMITS.earlierLooked) {
      more++
      continue
    }
    const { header, payload } = recordAt(view, Number(tail(fullKey, 'recordByLease').split('/')[1]))
    things += header.reads
    if (payload === null) erased++
    else if (things > LIMITS.earlierLooked) more += header.reads
    else found.push(payload.reads)
  }
  const list = createReadList()
  for (const read of found.toReversed().flat()) list.noteRead(read)
  return { reads: list.reads, erased, more }
}

/**
 * Does somebody speak through this lease that is neither the owner nor the node? One whose grants are not kept here is
 * nobody's that is known.
 */
function isHandedOut(view: View, lease: string): boolean {
  const chain = storedChain(view, lease)
  const [first, leaf] = [chain?.at(0)?.delegation, chain?.at(-1)?.delegation]
  if (first === undefined || leaf === undefined) return true
  if (isSameOwner(view, first.grantor_key, leaf.grantee_key)) return false
  const own = view.getJson<string>(key('meta', 'node-grant'))
  const node = own === undefined ? undefined : storedChain(view, own)?.at(-1)?.delegation.grantee_key
  // what the node lends itself for one task is the lease of the agent that does it
  return leaf.grantee_key !== node || leaf.task !== null
}
