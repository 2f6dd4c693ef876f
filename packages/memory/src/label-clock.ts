/**
 * How the labels of versions that did not know of each other come together. Beside its words a version says what was
 * said of its label: the label under which the words were written, the one it began with, and the last change that each
 * node of the owner made, with what that node had seen. What nobody changed needs no clock, and a note's bytes say none.
 *
 * Clocks join point by point: in whatever order versions come, the same comes out. A change counts until a later one
 * that has seen it covers it; so two that did not see each other both count, and the note bears the join of what
 * counts. A label gets less strict in one way only: by a change that has seen every stricter one.
 * @clause L1.7, L4.1
 */
import { canonicalize, fail, formatLabel, joinLabels, OUTSIDE, parseLabel, type Label } from '@csb/core'
import { isObject } from './coerce.ts'
import { isHlc } from './hlc.ts'

/** The last change that a node made. */
export type LabelChange = {
  /** 16 hex digits */
  readonly at: string
  /** null: a later change of another node has seen this one, and it counts no more */
  readonly label: Label | null
}

export type LabelClock = {
  /** the label under which the words were written: they are never shown under less without a change that saw them */
  readonly written: Label
  /** the label the note began with; null once a change has seen it */
  readonly base: Label | null
  /** by did of the node */
  readonly changes: Readonly<Record<string, LabelChange>>
}

/** More nodes than an owner has; of each one line stays. */
const MOST_CHANGES = 256
const MEMBERS: ReadonlySet<string> = new Set(['written', 'base', 'changes'])
const CHANGE = /^([0-9a-f]{16})(?: (\S+))?$/

/** The clock of a note that says none. */
export const plainClock = (label: Label): LabelClock => ({ written: label, base: label, changes: {} })

/** The label that a clock comes to. */
export const labelOfClock = ({ written, base, changes }: LabelClock): Label =>
  joinLabels([
    written,
    ...[base, ...Object.values(changes).map(({ label }) => label)].filter((label) => label !== null),
  ])

/** Words that were written anew by somebody who saw the label as it is. */
export const rewritten = (clock: LabelClock): LabelClock => ({ ...clock, written: labelOfClock(clock) })

/** Words of somebody who is no node of the owner. */
export const fromOutside = (clock: LabelClock): LabelClock => ({
  ...clock,
  written: joinLabels([clock.written, OUTSIDE]),
})

/** A change of the label by a node of the owner that has seen all that the clock says. */
export function changed(clock: LabelClock, { actor, at, label }: { actor: string; at: string; label: Label }) {
  const seen = Object.entries(clock.changes).map(([did, change]) => [did, { at: change.at, label: null }] as const)
  return { written: label, base: null, changes: { ...Object.fromEntries(seen), [actor]: { at, label } } }
}

/** What both say; `written` is a matter of the words and stays that of the first. */
export function joinClocks(a: LabelClock, b: LabelClock): LabelClock {
  const dids = new Set([...Object.keys(a.changes), ...Object.keys(b.changes)])
  const changes = [...dids].map((did) => [did, later(a.changes[did], b.changes[did])] as const)
  return { written: a.written, base: both(a.base, b.base), changes: Object.fromEntries(changes) }
}

export const isSameClock = (a: LabelClock, b: LabelClock): boolean => spell(a) === spell(b)

/** The one spelling of a clock, for rows; undefined where the note needs none. */
export function formatClock(clock: LabelClock): string | undefined {
  const value = writeClock(clock)
  return value === undefined ? undefined : canonicalize(value)
}

/** @param text as {@link formatClock} gave it; undefined where it gave none @throws MALFORMED */
export function parseClock(text: string | undefined, label: Label): LabelClock {
  if (text === undefined) return plainClock(label)
  try {
    return readClock(JSON.parse(text), label)
  } catch (error) {
    return fail('MALFORMED', { reason: 'a label clock' }, error)
  }
}

/** The clock as a member of the front matter; undefined where the note needs none. Dids are in order. */
export function writeClock(clock: LabelClock): Readonly<Record<string, unknown>> | undefined {
  const { written, base, changes } = clock
  const dids = Object.keys(changes).sort()
  if (dids.length === 0 && base !== null && formatLabel(base) === formatLabel(written)) return undefined
  const lines = dids.map((did) => [did, writeChange(changes[did])])
  return {
    ...(formatLabel(written) === formatLabel(labelOfClock(clock)) ? {} : { written: formatLabel(written) }),
    ...(base === null ? {} : { base: formatLabel(base) }),
    ...(lines.length === 0 ? {} : { changes: Object.fromEntries(lines) }),
  }
}

/**
 * @param value the member of the front matter; undefined where there is none
 * @param label that the note says
 * @throws MALFORMED also where the clock does not come to that label
 */
export function readClock(value: unknown, label: Label): LabelClock {
  if (value === undefined) return plainClock(label)
  if (!isObject(value) || !Object.keys(value).every((name) => MEMBERS.has(name))) return malformed()
  const { written, base, changes = {} } = value
  if (!isObject(changes) || Object.keys(changes).length > MOST_CHANGES) return malformed()
  if (base === undefined && Object.keys(changes).length === 0) return malformed()
  const clock = {
    written: written === undefined ? label : parseLabel(written),
    base: base === undefined ? null : parseLabel(base),
    changes: Object.fromEntries(Object.entries(changes).map(([did, text]) => [did, readChange(text)])),
  }
  if (formatLabel(labelOfClock(clock)) !== formatLabel(label)) return malformed()
  return clock
}

const malformed = (): never => fail('MALFORMED', { reason: 'a label clock' })

const spell = (clock: LabelClock): string =>
  canonicalize({ ...writeClock(clock), label: formatLabel(labelOfClock(clock)) })

function writeChange(change: LabelChange | undefined): string {
  if (change === undefined) return ''
  return change.label === null ? change.at : `${change.at} ${formatLabel(change.label)}`
}

function readChange(text: unknown): LabelChange {
  const [, at, label] = (typeof text === 'string' ? CHANGE.exec(text) : null) ?? []
  if (!isHlc(at)) return malformed()
  return { at, label: label === undefined ? null : parseLabel(label) }
}

/** The later change of one node: it knew its earlier one. Of the same change, that it was seen outweighs that it counts. */
function later(a: LabelChange | undefined, b: LabelChange | undefined): LabelChange {
  if (a === undefined || b === undefined) return a ?? b ?? malformed()
  if (a.at !== b.at) return a.at > b.at ? a : b
  return { at: a.at, label: both(a.label, b.label) }
}

const both = (a: Label | null, b: Label | null): Label | null => (a === null || b === null ? null : joinLabels([a, b]))
