/**
 * What was projected before: commit or folder to what a reader with a certain sight sees of it.
 *
 * Rows say nothing that could not be worked out again. All of a home's rows are of one epoch; whoever changes a label
 * in force or forgets something begins a new one, so that no row outlives what it was made from.
 */
import { key, prefix, tail, type Store, type Transaction, type View } from '@csb/store'
import { keyOfSight, type Sight } from './sight.ts'

/** Rows of ended epochs that one transaction removes. */
const SWEEP_ROWS = 2_000

/** Rows of one home, epoch and sight; `null`: nothing of it is seen; undefined: not worked out yet. */
export type Memo = {
  commit(oid: string): string | null | undefined
  folder(place: string): string | null | undefined
}

export type MemoWriter = Memo & {
  keepCommit(oid: string, seen: string | null): void
  keepFolder(place: string, seen: string | null): void
}

/** Which epoch a home's projections are in. */
export const epochOf = (view: View, home: string): number => view.getJson<number>(epochKey(home)) ?? 0

/**
 * Begin a new epoch: a label in force has changed, something was forgotten, or what was projected is to be collected.
 * Ids of projected commits stay the same where what they show does.
 */
export function staleProjections(tx: Transaction, home: string): void {
  tx.putJson(epochKey(home), epochOf(tx, home) + 1)
}

/** The rows that hold now. */
export function readMemo(view: View, home: string, sight: Sight): Memo {
  const place = placeOf(view, home, sight)
  return {
    commit: (oid) => view.getJson<string | null>(place(`c${oid}`)),
    folder: (of) => view.getJson<string | null>(place(`t${of}`)),
  }
}

/** The same, to add to. */
export function writeMemo(tx: Transaction, home: string, sight: Sight): MemoWriter {
  const place = placeOf(tx, home, sight)
  return {
    ...readMemo(tx, home, sight),
    keepCommit: (oid, seen) => tx.putJson(place(`c${oid}`), seen),
    keepFolder: (of, seen) => tx.putJson(place(`t${of}`), seen),
  }
}

/** Remove the rows of epochs that have ended, in bounded steps. */
export async function sweepMemo(store: Store, home: string): Promise<void> {
  for (let swept = SWEEP_ROWS; swept === SWEEP_ROWS;) {
    swept = await store.transact(async (tx) => {
      const epoch = epochOf(tx, home)
      let count = 0
      for await (const [row] of tx.range({ prefix: prefix('projection', home), limit: SWEEP_ROWS })) {
        if (Number(tail(row, 'projection', home).split('/')[0]) === epoch) break
        tx.del(row)
        count++
      }
      return count
    })
  }
}

function placeOf(view: View, home: string, sight: Sight): (name: string) => string {
  const reader = keyOfSight(sight)
  const epoch = epochOf(view, home)
  return (name) => key('projection', home, epoch, reader, name)
}

const epochKey = (home: string): string => key('meta', 'projection', home)
