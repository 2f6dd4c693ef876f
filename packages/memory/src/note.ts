/**
 * The form of a note: YAML front matter and the content as it is, readable with cat, grep and git alone.
 * Rendering is a pure function, and what was rendered reads back as the same note.
 * @clause L2.2
 */
import { fail, formatLabel, fromUtf8, LIMITS, parseLabel, utf8, validate, type Label, type Memory } from '@csb/core'
import { isObject, parseDate } from './coerce.ts'
import { readYaml, splitFrontMatter, writeYaml } from './front-matter.ts'
import { isHlc } from './hlc.ts'
import {
  formatClock,
  isDid,
  labelOfClock,
  latestInClock,
  plainClock,
  readClock,
  writeClock,
  type LabelClock,
} from './label-clock.ts'

/** Members of an entry in the order they are written; `content` is the body. */
const BEFORE = ['id', 'type', 'level', 'timestamp', 'source', 'tags', 'links'] as const
const AFTER = ['metadata', 'embedding', 'fault_tolerance', 'link_metadata', 'business_context'] as const
/** Keys of the front matter that are no members of an entry. */
const OWN = ['label', 'label_clock', 'hlc', 'actor', 'deleted_at', 'foreign'] as const
/** Names an unknown member can not bear beside ours; `deleted` is what MEM-005 calls the mark in answers. */
const TAKEN: ReadonlySet<string> = new Set([...BEFORE, 'content', ...AFTER, ...OWN, 'deleted'])
const MEMBERS: ReadonlySet<string> = new Set([...BEFORE, 'content', ...AFTER])

/** An entry as deep as it may be, one deeper below `foreign`. */
const MAX_DEPTH = LIMITS.jsonDepth + 1
/** The last millisecond that ISO 8601 writes with a year of four digits. */
const LAST_ISO_MS = 253_402_300_799_999

export type Note = {
  /** with its unknown members, which stand in the front matter under their own names */
  readonly entry: Memory
  readonly label: Label
  /** what was said of the label, and comes to it; omitted where these words are the note's first and nothing was */
  readonly clock?: LabelClock
  /** 16 hex digits */
  readonly hlc: string
  /** did of the node that wrote this version */
  readonly actor: string
  /** ms since epoch; null where not deleted */
  readonly deletedAt: number | null
  /** foreign front matter whose names are taken by ours (`type: book`), kept below `foreign` */
  readonly extra: Readonly<Record<string, unknown>>
}

/**
 * Foreign members stand under their own names, among the members of the entry; those whose names are ours go
 * to `extra`, so that nobody sets a label or a clock by calling a member so.
 * @param entry as normalised, unknown members and all
 * @param foreign front matter of another program
 */
export function placeForeign(entry: Memory, foreign: Readonly<Record<string, unknown>>): Pick<Note, 'entry' | 'extra'> {
  const extra: (readonly [string, unknown])[] = []
  const members: (readonly [string, unknown])[] = []
  for (const member of Object.entries(foreign)) (TAKEN.has(member[0]) ? extra : members).push(member)
  for (const member of Object.entries(entry)) {
    ;(MEMBERS.has(member[0]) || !TAKEN.has(member[0]) ? members : extra).push(member)
  }
  return { entry: Object.fromEntries(members) as Memory, extra: Object.fromEntries(extra) }
}

/** What was said of a note's label. */
export const clockOf = (note: Note): LabelClock => note.clock ?? plainClock(note)

/** The same in its one spelling; undefined where the note needs none. */
export const spellClock = (note: Note): string | undefined => formatClock(clockOf(note), note)

/** The latest reading in a note: of its words, or of a change of its label. */
export function latestIn(note: Note): string {
  const said = latestInClock(clockOf(note))
  return said > note.hlc ? said : note.hlc
}

/** The note under a clock, and under the label that it comes to. */
export function underClock({ clock: _before, ...note }: Note, clock: LabelClock): Note {
  const label = labelOfClock(clock)
  return writeClock(clock, note) === undefined ? { ...note, label } : { ...note, label, clock }
}

/**
 * @param note entry as {@link normaliseEntry} gives it
 * @returns at most LIMITS.noteFileBytes
 * @throws TOO_LARGE where it is more than LIMITS.syncNoteBytes beside what is said of its label
 */
export function renderNote(note: Note): Uint8Array {
  const { entry, extra } = note
  const clock = writeClock(clockOf(note), note)
  if (clock !== undefined && formatLabel(labelOfClock(clockOf(note))) !== formatLabel(note.label))
    fail('INTERNAL', { reason: 'a label that its clock does not come to', id: entry.id })
  const unknown = Object.entries(entry).filter(([name]) => !TAKEN.has(name))
  const label = { label: formatLabel(note.label), ...(clock === undefined ? {} : { label_clock: clock }) }
  const members = [
    ...pick(entry, BEFORE).map(
      ([name, value]) => [name, name === 'timestamp' ? writeTime(value as number) : value] as const,
    ),
    ...Object.entries(label),
    ['hlc', note.hlc] as const,
    ['actor', note.actor] as const,
    ...(note.deletedAt === null ? [] : [['deleted_at', writeTime(note.deletedAt)] as const]),
    ...pick(entry, AFTER),
    ...unknown,
    ...(Object.keys(extra).length === 0 ? [] : [['foreign', extra] as const]),
  ]
  const bytes = utf8(`---\n${writeYaml(Object.fromEntries(members))}---\n\n${entry.content}\n`)
  // no later word about its label makes a note too large that was not
  if (isTooLarge(bytes, label)) fail('TOO_LARGE', { maxBytes: LIMITS.syncNoteBytes, id: entry.id })
  return bytes
}

/**
 * Read a note file. A label that nobody can read is the most restrictive one.
 * @param bytes at most LIMITS.noteFileBytes
 * @throws MALFORMED
 */
export function parseNote(bytes: Uint8Array): Note {
  if (bytes.byteLength > LIMITS.noteFileBytes)
    fail('MALFORMED', { reason: 'too large', maxBytes: LIMITS.noteFileBytes })
  const text = fromUtf8(bytes) ?? fail('MALFORMED', { reason: 'not UTF-8' })
  const { yaml, body } = splitFrontMatter(text)
  if (yaml === undefined) fail('MALFORMED', { reason: 'no front matter' })
  const {
    label: spelled,
    label_clock: clock,
    hlc,
    actor,
    deleted_at: deletedAt,
    foreign,
    ...members
  } = readYaml(yaml, LIMITS.noteFileBytes, MAX_DEPTH)
  if (isTooLarge(bytes, { label: spelled, label_clock: clock }))
    fail('MALFORMED', { reason: 'too large', maxBytes: LIMITS.syncNoteBytes })
  if (!isHlc(hlc)) fail('MALFORMED', { reason: 'no clock reading' })
  if (!isDid(actor)) fail('MALFORMED', { reason: 'no actor' })
  if ('content' in members || 'deleted' in members) fail('MALFORMED', { reason: 'a name that is taken' })
  const { id, type, level, ...others } = members
  const content = withoutOne(body.replace(/^\r?\n/, ''), '\n')
  const entry = { id, type, content, level, ...others, timestamp: readTime(others['timestamp']) }
  const label = parseLabel(spelled)
  return {
    entry: validate('Memory', entry, 'MALFORMED'),
    label,
    ...(clock === undefined ? {} : { clock: readClock(clock, { hlc, actor, label }) }),
    hlc,
    actor,
    deletedAt: deletedAt === undefined ? null : readTime(deletedAt),
    extra: readForeign(foreign),
  }
}

/** Beside what it says of its label. */
const isTooLarge = (bytes: Uint8Array, said: Readonly<Record<string, unknown>>): boolean =>
  bytes.byteLength > LIMITS.syncNoteBytes && bytes.byteLength - utf8(writeYaml(said)).byteLength > LIMITS.syncNoteBytes

function pick(entry: Memory, names: readonly string[]): (readonly [string, unknown])[] {
  return names.filter((name) => entry[name] !== undefined).map((name) => [name, entry[name]] as const)
}

const writeTime = (ms: number): string | number => (ms <= LAST_ISO_MS ? new Date(ms).toISOString() : ms)

function readTime(value: unknown): number {
  const ms = typeof value === 'string' ? parseDate(value) : value
  if (typeof ms !== 'number' || !Number.isSafeInteger(ms) || ms < 0) fail('MALFORMED', { reason: 'not a time' })
  return ms
}

/** Only taken names stand there: any other would have two places, and a note two spellings. */
function readForeign(value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined) return {}
  if (!isObject(value) || !Object.keys(value).every((name) => TAKEN.has(name)))
    fail('MALFORMED', { reason: 'foreign front matter' })
  return value
}

const withoutOne = (text: string, end: string): string => (text.endsWith(end) ? text.slice(0, -end.length) : text)
