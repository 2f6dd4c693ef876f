/**
 * How the labels of versions that did not know of each other come together. Beside its words a version says what was
 * said of its label: the label under which the words were written, the one under which each node made the note, and the
 * last change that each node of the owner made, with what that node had seen. What was made once and not touched since
 * needs no clock, and its bytes say none.
 *
 * Clocks join point by point: in whatever order versions come, the same comes out. What was said counts until a later
 * change that has seen it covers it; so two that did not see each other both count, and the note bears the join of what
 * counts. A label gets less strict in one way only: by a change that has seen every stricter one.
 * @clause L1.7, L4.1
 */
import { canonicalize, fail, formatLabel, joinLabels, LIMITS, OUTSIDE, parseLabel, type Label } from '@csb/core'
import { isObject } from './coerce.ts'
import { isHlc } from './hlc.ts'

/** That a node made the note. An id is made more than once where two nodes take in the same thing from elsewhere. */
export type Making = {
  /** 16 hex digits */
  readonly at: string
  /** did of the node */
  readonly actor: string
  /** null: a later change has seen this one, and it counts no more */
  readonly label: Label | null
}

/** The last change that a node made; it has seen the earlier ones of that node. */
export type LabelChange = Pick<Making, 'at' | 'label'>

export type LabelClock = {
  /** the label under which the words were written: they are never shown under less without a change that saw them */
  readonly written: Label
  /** in order of (at, actor), each once: no making takes the place of another one */
  readonly made: readonly Making[]
  /** by did of the node */
  readonly changes: Readonly<Record<string, LabelChange>>
}

/** What a note says of itself outside its clock. */
export type Head = { readonly hlc: string; readonly actor: string; readonly label: Label }

/** `written` stands beside the lines and changes with the words: there is always room for the longest. */
const LINE_CHARS = LIMITS.labelClockChars - 2 * LIMITS.labelChars
const DID = /^did:key:z[1-9A-HJ-NP-Za-km-z]{40,60}$/
const MEMBERS: ReadonlySet<string> = new Set(['written', 'made', 'changes'])

export const isDid = (value: unknown): value is string => typeof value === 'string' && DID.test(value)

/** The clock of a note that says none: these words were its first. */
export const plainClock = ({ hlc, actor, label }: Head): LabelClock => ({
  written: label,
  made: [{ at: hlc, actor, label }],
  changes: {},
})

/** The label that a clock comes to. */
export const labelOfClock = ({ written, made, changes }: LabelClock): Label =>
  joinLabels([written, ...[...made, ...Object.values(changes)].map(({ label }) => label).filter(isLabel)])

/** Words that were written anew by somebody who saw the label as it is. */
export const rewritten = (clock: LabelClock): LabelClock => ({ ...clock, written: labelOfClock(clock) })

/** Words of somebody who is no node of the owner. */
export const fromOutside = (clock: LabelClock): LabelClock => ({
  ...clock,
  written: joinLabels([clock.written, OUTSIDE]),
})

/**
 * A change of the label by a node of the owner that has seen all that the clock says. Where there is no room for what it
 * has seen, the change stands alone: an older copy can make the label stricter again, and nothing less strict.
 */
export function changed(
  { made, changes }: LabelClock,
  { actor, at, label }: { readonly actor: string; readonly at: string; readonly label: Label },
): LabelClock {
  const seen = Object.entries(changes).map(([did, change]) => [did, { at: change.at, label: null }] as const)
  const whole = {
    written: label,
    made: made.map((making) => ({ ...making, label: null })),
    changes: { ...Object.fromEntries(seen), [actor]: { at, label } },
  }
  return hasRoom(whole) ? whole : { written: label, made: [], changes: { [actor]: { at, label } } }
}

/** Is it no longer than one that can be read? What two say may be. */
export const hasRoom = ({ made, changes }: LabelClock): boolean => spellLines({ made, changes }).length <= LINE_CHARS

/** What both say; `written` is a matter of the words and stays that of the first. */
export function joinClocks(a: LabelClock, b: LabelClock): LabelClock {
  const dids = new Set([...Object.keys(a.changes), ...Object.keys(b.changes)])
  const changes = [...dids].map((did) => [did, later(own(a.changes, did), own(b.changes, did))] as const)
  return { written: a.written, made: joinMakings(a.made, b.made), changes: Object.fromEntries(changes) }
}

/** The latest reading in it. */
export const latestInClock = ({ made, changes }: LabelClock): string =>
  [...made, ...Object.values(changes)].reduce((last, { at }) => (at > last ? at : last), '')

export const isSameClock = (a: LabelClock, b: LabelClock): boolean => spell(a) === spell(b)

/** The one spelling of a clock, for rows; undefined where the note needs none. */
export function formatClock(clock: LabelClock, head: Pick<Head, 'hlc' | 'actor'>): string | undefined {
  const value = writeClock(clock, head)
  return value === undefined ? undefined : canonicalize(value)
}

/** @param text as {@link formatClock} gave it; undefined where it gave none @throws MALFORMED */
export function parseClock(text: string | undefined, head: Head): LabelClock {
  if (text === undefined) return plainClock(head)
  try {
    return readClock(JSON.parse(text), head)
  } catch (error) {
    return fail('MALFORMED', { reason: 'a label clock' }, error)
  }
}

/** The clock as a member of the front matter; undefined where the note needs none. Everything in it is in order. */
export function writeClock(
  clock: LabelClock,
  head: Pick<Head, 'hlc' | 'actor'>,
): Readonly<Record<string, unknown>> | undefined {
  const { written, made, changes } = clock
  const label = labelOfClock(clock)
  if (spell(clock) === spell(plainClock({ ...head, label }))) return undefined
  const dids = Object.keys(changes).sort()
  return {
    ...(formatLabel(written) === formatLabel(label) ? {} : { written: formatLabel(written) }),
    ...(made.length === 0 ? {} : { made: made.map(writeMaking) }),
    ...(dids.length === 0 ? {} : { changes: Object.fromEntries(dids.map((did) => [did, writeLine(changes[did])])) }),
  }
}

/**
 * @param value the member of the front matter; undefined where there is none
 * @param head what the note says
 * @throws MALFORMED also where the clock does not come to that label
 */
export function readClock(value: unknown, head: Head): LabelClock {
  if (value === undefined) return plainClock(head)
  if (!isObject(value) || !Object.keys(value).every((name) => MEMBERS.has(name))) return malformed()
  const { written, made = [], changes = {} } = value
  if (!Array.isArray(made) || !isObject(changes)) return malformed()
  if (made.length + Object.keys(changes).length === 0 || !Object.keys(changes).every(isDid)) return malformed()
  const clock = {
    written: written === undefined ? head.label : parseLabel(written),
    made: made.map(readMaking),
    changes: Object.fromEntries(Object.entries(changes).map(([did, text]) => [did, readLine(text)])),
  }
  if (!hasRoom(clock) || spell(clock).length > LIMITS.labelClockChars) return malformed()
  if (spell(clock) !== spell({ ...clock, made: joinMakings(clock.made, []) })) return malformed()
  if (formatLabel(labelOfClock(clock)) !== formatLabel(head.label)) return malformed()
  return clock
}

const malformed = (): never => fail('MALFORMED', { reason: 'a label clock' })

const isLabel = (label: Label | null): label is Label => label !== null

/** The same for the same clock, whatever note bears it. */
const spell = ({ written, ...lines }: LabelClock): string =>
  canonicalize({ written: formatLabel(written), lines: spellLines(lines) })

const spellLines = ({ made, changes }: Omit<LabelClock, 'written'>): string =>
  canonicalize({
    made: made.map(writeMaking),
    changes: Object.fromEntries(Object.entries(changes).map(([did, change]) => [did, writeLine(change)])),
  })

const writeMaking = ({ at, actor, label }: Making): string => withLabel(`${at} ${actor}`, label)

const writeLine = (change: LabelChange | undefined): string =>
  change === undefined ? malformed() : withLabel(change.at, change.label)

const withLabel = (text: string, label: Label | null): string =>
  label === null ? text : `${text} ${formatLabel(label)}`

function readMaking(text: unknown): Making {
  const [at, actor, label, ...rest] = typeof text === 'string' ? text.split(' ') : []
  if (!isHlc(at) || !isDid(actor) || rest.length > 0) return malformed()
  return { at, actor, label: label === undefined ? null : parseLabel(label) }
}

function readLine(text: unknown): LabelChange {
  const [at, label, ...rest] = typeof text === 'string' ? text.split(' ') : []
  if (!isHlc(at) || rest.length > 0) return malformed()
  return { at, label: label === undefined ? null : parseLabel(label) }
}

const own = (changes: LabelClock['changes'], did: string): LabelChange | undefined =>
  Object.hasOwn(changes, did) ? changes[did] : undefined

/** The later change of one node: it knew its earlier one. Of the same change, that it was seen outweighs that it counts. */
function later(a: LabelChange | undefined, b: LabelChange | undefined): LabelChange {
  if (a === undefined || b === undefined) return a ?? b ?? malformed()
  if (a.at !== b.at) return a.at > b.at ? a : b
  return { at: a.at, label: both(a.label, b.label) }
}

function joinMakings(a: readonly Making[], b: readonly Making[]): readonly Making[] {
  const made = new Map<string, Making>()
  for (const making of [...a, ...b]) {
    const name = `${making.at} ${making.actor}`
    const other = made.get(name)
    made.set(name, other === undefined ? making : { ...making, label: both(other.label, making.label) })
  }
  return [...made].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, making]) => making)
}

const both = (a: Label | null, b: Label | null): Label | null => (a === null || b === null ? null : joinLabels([a, b]))
