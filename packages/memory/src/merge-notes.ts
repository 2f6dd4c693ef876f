/**
 * What comes of two versions of one note: the words of the later one by (hlc, actor), and a label that is never less
 * strict than what both rest on. A pure function of the two and of who brought one: all nodes of an owner that hold the
 * same versions hold the same note, to the byte.
 *
 * A node of the owner is believed in what it says of labels. Whoever else may write brings words: it can make the label
 * of a note stricter and never less strict, and what it brings is from outside.
 * @clause L1.7, L3.2, L4.1
 */
import { formatLabel, joinLabels, OUTSIDE, type Label } from '@csb/core'
import {
  changed,
  fromOutside,
  hasRoom,
  isSameClock,
  joinClocks,
  labelOfClock,
  plainClock,
  type LabelClock,
} from './label-clock.ts'

/** Who brought a version, and whose node this is, seen from the owner of the home. */
export type Standing = { readonly from: 'owner' | 'other'; readonly here: 'owner' | 'other' }

/** A version as far as it matters here. */
export type Stamp = { readonly hlc: string; readonly actor: string; readonly clock: LabelClock }

export type Outcome = {
  readonly words: 'mine' | 'theirs'
  readonly clock: LabelClock
  /** this node has to change the label itself: who says so is not believed in it, or there is no room for both clocks */
  readonly raise: Label | null
}

/** What two nodes of the same owner are to each other. */
export const OWNERS: Standing = { from: 'owner', here: 'owner' }

/** A version of a note that is not here. */
export function taken(theirs: Stamp, { from }: Standing): LabelClock {
  if (from === 'owner') return theirs.clock
  const label = labelOfClock(theirs.clock)
  return fromOutside(plainClock({ ...theirs, label }))
}

/**
 * @param order which of two versions of the same (hlc, actor) has the greater words; 0 where they are the same
 */
export function mergeStamps(mine: Stamp, theirs: Stamp, order: number, standing: Standing): Outcome {
  const age = compareText(mine.hlc, theirs.hlc) || compareText(mine.actor, theirs.actor) || order
  const words = age < 0 ? 'theirs' : 'mine'
  if (standing.from === 'other') return doubted(mine.clock, theirs.clock, words, standing)
  const clock = believed(mine.clock, theirs.clock, age, standing)
  return hasRoom(clock) ? { words, clock, raise: null } : crowded(mine.clock, theirs.clock, words)
}

/** Would this node change anything if it had that version? */
export function isNews(mine: Stamp, theirs: Stamp, standing: Standing): boolean {
  const { words, clock, raise } = mergeStamps(mine, theirs, 0, standing)
  return words === 'theirs' || raise !== null || !isSameClock(clock, mine.clock)
}

/** The clock after a change of this node that it makes because of {@link Outcome.raise}. */
export const raised = (
  clock: LabelClock,
  raise: Label,
  by: { readonly actor: string; readonly at: string },
): LabelClock => changed(clock, { ...by, label: joinLabels([labelOfClock(clock), raise]) })

function believed(mine: LabelClock, theirs: LabelClock, age: number, { here }: Standing): LabelClock {
  const joined = joinClocks(mine, theirs)
  // the owner's nodes take no making from anybody else's: theirs are the ones that there are
  if (here === 'other') return { ...joined, made: theirs.made, written: age > 0 ? mine.written : theirs.written }
  if (age !== 0) return { ...joined, written: age < 0 ? theirs.written : mine.written }
  return { ...joined, written: joinLabels([mine.written, theirs.written]) }
}

/** More was said than there is room for: one change of this node, as strict as all of it, takes the place of all lines. */
function crowded(mine: LabelClock, theirs: LabelClock, words: Outcome['words']): Outcome {
  const before = labelOfClock(mine)
  const label = joinLabels([before, labelOfClock(theirs)])
  const isDone = mine.made.length + Object.keys(mine.changes).length === 1
  if (!isDone || formatLabel(label) !== formatLabel(before))
    return { words, clock: { written: label, made: [], changes: {} }, raise: label }
  return { words, clock: words === 'mine' ? mine : { ...mine, written: label }, raise: null }
}

function doubted(mine: LabelClock, theirs: LabelClock, words: Outcome['words'], { here }: Standing): Outcome {
  const before = labelOfClock(mine)
  const said = labelOfClock(theirs)
  // words that are not taken influence nothing
  const stricter = joinLabels([before, { ...said, integrity: before.integrity }])
  const isRaised = formatLabel(stricter) !== formatLabel(before)
  const clock = words === 'mine' ? mine : { ...mine, written: joinLabels([before, said, OUTSIDE]) }
  if (!isRaised) return { words, clock, raise: null }
  if (here === 'owner') return { words, clock, raise: stricter }
  return { words, clock: { ...clock, written: joinLabels([labelOfClock(clock), stricter]) }, raise: null }
}

const compareText = (a: string, b: string): number => Number(a > b) - Number(a < b)
