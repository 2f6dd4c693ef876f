/**
 * The read list of whoever asks: what its transactions touched, never what it says. A run of this node has one for its
 * whole life; a session under a lease that was handed out comes back for as long as that lasts, so what it read is kept
 * until the next entry under its lease; anybody else has one a request.
 * @clause L1.5
 */
import { LIMITS, formatLabel } from '@csb/core'
import { createRunReads, groupsOf, keepReads, takeReads, type Principal, type RecordEntry } from '@csb/authority'
import { createReadList, type ReadEntry, type Transaction } from '@csb/store'
import type { Parts } from '../operation.ts'
import { isSession } from './session.ts'

export type Reads = {
  noteRead(entry: ReadEntry): void
  /** what this run or request has read so far */
  readonly reads: readonly ReadEntry[]
  /** For an entry of the record that is staged in the same transaction. */
  listed(tx: Transaction): Promise<Pick<RecordEntry, 'reads' | 'readGroups'>>
  /** An entry that lists it is durable. */
  wereListed(): void
  /**
   * Keep, behind the answer, what no entry lists.
   * @param append stages an entry that lists it, where much has come together
   */
  keep(append: (tx: Transaction) => Promise<void>): void
}

type Asking = { readonly principal: Principal; readonly run: string }

/** The list that a request adds to. */
export function readsFor(parts: Parts, { principal, run }: Asking): Reads {
  const { leaseHash, chain } = principal
  const isOfTask = (chain.at(-1)?.delegation.task ?? null) !== null
  return leaseHash === null || isOfTask || !isSession({ ...parts, principal })
    ? ofRun(parts, run)
    : ofLease(parts, leaseHash)
}

function ofRun({ runs, store }: Parts, run: string): Reads {
  const list = runs.reads.get(run) ?? createRunReads()
  return {
    noteRead: (entry) => list.noteRead(entry),
    get reads() {
      return list.reads
    },
    listed: async () => ({ reads: list.reads, readGroups: list.groups(store.view()) }),
    wereListed: () => undefined,
    keep: () => undefined,
  }
}

function ofLease({ runs, store, clock, log }: Parts, lease: string): Reads {
  const { unlisted } = runs
  let list = createReadList()
  return {
    noteRead: (entry) => list.noteRead(entry),
    get reads() {
      return list.reads
    },
    listed: async (tx) => {
      const all = createReadList()
      for (const read of [...(await takeReads(tx, lease)), ...list.reads]) all.noteRead(read)
      // what is read from here on is new, also where this transaction fails: then some is kept twice
      unlisted.delete(lease)
      return { reads: all.reads, readGroups: groupsOf(tx, all.reads) }
    },
    wereListed: () => {
      list = createReadList()
    },
    keep: (append) => {
      const known = namesOf(unlisted, lease)
      const fresh = list.reads.filter((read) => !known.has(nameOf(read)))
      if (fresh.length === 0) return
      for (const read of fresh) known.add(nameOf(read))
      list = createReadList()
      const isMuch = known.size > LIMITS.unlistedReads
      const kept = store.transact((tx) => keepReads(tx, lease, fresh, clock.now()))
      kept
        .then(() => (isMuch ? store.transact(append) : undefined))
        .catch((error: unknown) => {
          // it is not on the disk: read again, it is kept again
          unlisted.delete(lease)
          log('error', 'what was read is not kept', { error: String(error) })
        })
    },
  }
}

function namesOf(unlisted: Parts['runs']['unlisted'], lease: string): Set<string> {
  const known = unlisted.get(lease) ?? new Set()
  // the newest last; of a lease that is not used for long, what is read is kept once more
  unlisted.delete(lease)
  if (unlisted.size >= LIMITS.unlistedLeases) unlisted.delete([...unlisted.keys()].at(0) ?? '')
  unlisted.set(lease, known)
  return known
}

const nameOf = ({ home, path, oid, label }: ReadEntry): string => JSON.stringify([home, path, oid, formatLabel(label)])
