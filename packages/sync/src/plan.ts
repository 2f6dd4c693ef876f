/**
 * What one side makes of the other's lists: which notes it asks for, and which ids the other is to let go.
 * @clause L4.2, L4.3
 */
import { LIMITS, fail, isNodeError, parseLabel, type Clearance } from '@csb/core'
import { getTombstone, isVisible } from '@csb/guard'
import { getState, isNews, parseClock, type LabelClock, type NoteState, type Standing } from '@csb/memory'
import type { View } from '@csb/store'
import type { Row } from './messages.ts'

/** A version as it was listed, with the label it was listed under. */
export type Listed = { readonly row: Row; readonly label: string }

export type Plan = {
  /** versions this side asks for, by id; each is taken away when it came */
  readonly wanted: Map<string, Listed>
  /** ids the other side holds and may not see any more */
  readonly withdraw: string[]
}

export type Planning = {
  readonly home: string
  /** what the other side may see */
  readonly clearance: Clearance
  /** whether it may change this home here */
  readonly accepts: boolean
  readonly standing: Standing
}

/** A plan that grows by one page of rows at a time. */
export function createPlanner({ home, clearance, accepts, standing }: Planning) {
  const plan: Plan = { wanted: new Map(), withdraw: [] }
  const seen = new Set<string>()

  let bytes = 0

  const judge = (view: View, row: Row, listedUnder: string): void => {
    const [id] = row
    const clock = clockIn(row, listedUnder)
    const own = getState(view, home, id)
    const tombstone = getTombstone(view, home, id)
    // a note it may not see is none of its business: it can not change it, and lets go of what it holds of it. The
    // same for one that was forgotten since it rose above the other's clearance: no tombstone tells it
    const label = tombstone?.label ?? own?.label
    if (label !== undefined && !isVisible(clearance, label)) plan.withdraw.push(id)
    else if (tombstone !== undefined) return
    else if (accepts && (own === undefined || isWanted(own, { row, label: listedUnder }, clock, standing)))
      plan.wanted.set(id, { row, label: listedUnder })
  }

  return {
    plan,
    /** @throws PEER_MISBEHAVED where an id comes twice, a clock is none, or more than LIMITS.syncRows or syncListBytes come */
    add: (view: View, label: string, rows: readonly Row[]): void => {
      for (const row of rows) {
        if (seen.has(row[0])) fail('PEER_MISBEHAVED', { reason: 'listed twice', id: row[0] })
        seen.add(row[0])
        bytes += row.reduce((sum, text = '') => sum + Buffer.byteLength(text), 0)
        if (bytes > LIMITS.syncListBytes) fail('PEER_MISBEHAVED', { reason: 'no end', maxBytes: LIMITS.syncListBytes })
        judge(view, row, label)
      }
      if (seen.size > LIMITS.syncRows) fail('PEER_MISBEHAVED', { reason: 'no end', maxRows: LIMITS.syncRows })
    },
  }
}

/** Would that version change what is here? As the memory room merges them. */
function isWanted(own: NoteState, { row, label }: Listed, clock: LabelClock, standing: Standing): boolean {
  const [, hlc, actor, oid] = row
  if (oid === own.oid) return false
  const mine = {
    hlc: own.hlc,
    actor: own.actor,
    clock: parseClock(own.clock, { ...own, label: parseLabel(own.label) }),
  }
  if (isNews(mine, { hlc, actor, clock }, standing)) return true
  // two versions under one clock reading, alike in all that a row says: their words decide
  return hlc === own.hlc && actor === own.actor && label === own.label && row[4] === own.clock
}

/** @throws PEER_MISBEHAVED */
function clockIn(row: Row, listedUnder: string): LabelClock {
  try {
    const [, hlc, actor, , clock] = row
    return parseClock(clock, { hlc, actor, label: parseLabel(listedUnder) })
  } catch (error) {
    if (isNodeError(error, 'MALFORMED')) fail('PEER_MISBEHAVED', { reason: 'not a label clock', id: row[0] }, error)
    throw error
  }
}
