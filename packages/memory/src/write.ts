/**
 * What a home does with its own notes: make, delete softly, restore. Each is a new version under this node's
 * name and clock. A note above the writer's clearance is not there.
 */
import {
  fail,
  formatLabel,
  joinLabels,
  OUTSIDE,
  OWNER_PRIVATE,
  parseLabel,
  type Clearance,
  type Label,
} from '@csb/core'
import type { Transaction } from '@csb/store'
import { copyJson } from './coerce.ts'
import { normaliseEntry, type LevelMap } from './entry.ts'
import type { Warning } from './fields.ts'
import { nextHlc } from './hlc.ts'
import { changed, fromOutside, labelOfClock, rewritten, type LabelClock } from './label-clock.ts'
import { clockOf, placeForeign, underClock, type Note } from './note.ts'
import { putVersions, type WriteWords } from './put.ts'
import { getNote } from './read.ts'
import { getState } from './states.ts'

/** An entry as a caller gave it. */
export type NoteInput = {
  readonly entry: unknown
  /** default: private, the owner's */
  readonly label?: Label
  /** front matter of another program, kept as it is */
  readonly extra?: Readonly<Record<string, unknown>>
}

export type CreateNotes = WriteWords & {
  readonly inputs: readonly NoteInput[]
  /** did of this node */
  readonly actor: string
  /** false: this is a node of somebody else than the home's owner, and what it writes is from outside; default true */
  readonly ofOwner?: boolean
  readonly levelMap?: LevelMap
  /** `refuse` (default): an id that is here is a CONFLICT; `keep`: it stays as it is, for an import done again */
  readonly existing?: 'refuse' | 'keep'
}

export type Created = {
  readonly commit: string
  /** the new notes, in the order of the inputs */
  readonly notes: readonly Note[]
  /** what was changed in each of `notes` */
  readonly warnings: readonly (readonly Warning[])[]
  /** ids of inputs that were here already and were left alone */
  readonly kept: readonly string[]
}

export type ChangeNote = WriteWords & {
  readonly id: string
  /** did of this node */
  readonly actor: string
  readonly clearance: Clearance
  /** as for {@link CreateNotes} */
  readonly ofOwner?: boolean
}

/**
 * Normalise entries, stamp id and clock, and put them with one commit.
 * @throws INVALID_INPUT, TOO_LARGE, CONFLICT where an id is taken, NOT_FOUND without the home
 * @clause MEM-001.1.3 MEM-001.1.4
 */
export function createNotes(tx: Transaction, input: CreateNotes): Created {
  const { inputs, actor, levelMap = {}, existing = 'refuse', ofOwner = true, ...words } = input
  const made = new Map<string, { note: Note; warnings: readonly Warning[] }>()
  const kept: string[] = []
  for (const { entry: given, label = OWNER_PRIVATE, extra = {} } of inputs) {
    const { entry, warnings } = normaliseEntry(given, { now: words.now, levelMap })
    if (made.has(entry.id) || getState(tx, words.home, entry.id) !== undefined) {
      if (existing === 'refuse') fail('CONFLICT', { reason: 'a note with this id is here', id: entry.id })
      kept.push(entry.id)
      continue
    }
    // a label with a tag that has no spelling becomes the most restrictive, here as when it is read back
    const spelled = parseLabel(formatLabel(ofOwner ? label : joinLabels([label, OUTSIDE])))
    const note = {
      ...placeForeign(entry, copyJson(extra) as Readonly<Record<string, unknown>>),
      label: spelled,
      hlc: nextHlc(tx, words.now),
      actor,
      deletedAt: null,
    }
    made.set(entry.id, { note, warnings })
  }
  const notes = [...made.values()].map(({ note }) => note)
  const { commit } = putVersions(tx, words, notes)
  return { commit, notes, warnings: [...made.values()].map(({ warnings }) => warnings), kept }
}

/**
 * Mark a note deleted. It stays in the tree and can be restored; one that is deleted already stays as it is.
 * @throws NOT_FOUND
 * @clause MEM-005.5.2
 */
export function deleteNote(tx: Transaction, change: ChangeNote): { readonly note: Note; readonly commit: string } {
  return newVersion(tx, change, (note) => (note.deletedAt === null ? written(note, change.now) : undefined))
}

/**
 * Take the mark away; a note that is not deleted stays as it is.
 * @throws NOT_FOUND
 * @clause MEM-005.5.2
 */
export function restoreNote(tx: Transaction, change: ChangeNote): { readonly note: Note; readonly commit: string } {
  return newVersion(tx, change, (note) => (note.deletedAt === null ? undefined : written(note, null)))
}

/** Who writes sees the label as it is, and means it for what is written. */
const written = (note: Note, deletedAt: number | null): Edited => ({ deletedAt, clock: rewritten(clockOf(note)) })

/**
 * Give a note another label. Whether one may be lowered is decided above. Every node of the owner believes another in
 * it; anybody else's can only make a label stricter.
 * @throws NOT_FOUND; DENIED where a node of somebody else would lower it
 * @clause L1.7, L3.2
 */
export function relabelNote(
  tx: Transaction,
  { label: asked, ...change }: ChangeNote & { readonly label: Label },
): { readonly note: Note; readonly commit: string } {
  const label = parseLabel(formatLabel(asked))
  return newVersion(tx, change, (note, hlc) => {
    if (formatLabel(note.label) === formatLabel(label)) return undefined
    const { deletedAt } = note
    const clock = clockOf(note)
    if (change.ofOwner ?? true) return { deletedAt, clock: changed(clock, { actor: change.actor, at: hlc(), label }) }
    const given = { ...clock, written: joinLabels([label, OUTSIDE]) }
    if (formatLabel(labelOfClock(given)) !== formatLabel(given.written))
      fail('DENIED', { reason: "only the owner's nodes make a label less strict", id: note.entry.id })
    return { deletedAt, clock: given }
  })
}

type Edited = Pick<Note, 'deletedAt'> & { readonly clock: LabelClock }

/** @param edit `hlc` gives the reading of the new version; undefined where there is nothing to change */
function newVersion(
  tx: Transaction,
  { id, actor, clearance, ofOwner = true, ...words }: ChangeNote,
  edit: (note: Note, hlc: () => string) => Edited | undefined,
): { note: Note; commit: string } {
  const before = getNote(tx, words.home, id, clearance, { includeDeleted: true })
  let given: string | undefined
  const hlc = () => (given ??= nextHlc(tx, words.now))
  const edited = edit(before, hlc)
  if (edited === undefined) return { note: before, commit: putVersions(tx, words, []).commit }
  const { deletedAt, clock } = edited
  const note = underClock({ ...before, deletedAt, hlc: hlc(), actor }, ofOwner ? clock : fromOutside(clock))
  const { commit } = putVersions(tx, words, [note])
  return { note, commit }
}
