/**
 * What a home does with its own notes: make, delete softly, restore. Each is a new version under this node's
 * name and clock. A note above the writer's clearance is not there.
 */
import { fail, formatLabel, OWNER_PRIVATE, parseLabel, type Clearance, type Label } from '@csb/core'
import type { Transaction } from '@csb/store'
import { copyJson } from './coerce.ts'
import { normaliseEntry, type LevelMap } from './entry.ts'
import type { Warning } from './fields.ts'
import { nextHlc } from './hlc.ts'
import { placeForeign, type Note } from './note.ts'
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

export type ChangeNote = WriteWords & { readonly id: string; readonly actor: string; readonly clearance: Clearance }

/**
 * Normalise entries, stamp id and clock, and put them with one commit.
 * @throws INVALID_INPUT, TOO_LARGE, CONFLICT where an id is taken, NOT_FOUND without the home
 * @clause MEM-001.1.3 MEM-001.1.4
 */
export function createNotes(tx: Transaction, input: CreateNotes): Created {
  const { inputs, actor, levelMap = {}, existing = 'refuse', ...words } = input
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
    const spelled = parseLabel(formatLabel(label))
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
  return newVersion(tx, change, (note) => (note.deletedAt === null ? { ...note, deletedAt: change.now } : note))
}

/**
 * Take the mark away; a note that is not deleted stays as it is.
 * @throws NOT_FOUND
 * @clause MEM-005.5.2
 */
export function restoreNote(tx: Transaction, change: ChangeNote): { readonly note: Note; readonly commit: string } {
  return newVersion(tx, change, (note) => (note.deletedAt === null ? note : { ...note, deletedAt: null }))
}

/**
 * Give a note another label. Whether one may be lowered is decided above.
 * @throws NOT_FOUND
 * @clause L3.2
 */
export function relabelNote(
  tx: Transaction,
  { label, ...change }: ChangeNote & { readonly label: Label },
): { readonly note: Note; readonly commit: string } {
  return newVersion(tx, change, (note) =>
    formatLabel(note.label) === formatLabel(label) ? note : { ...note, label: parseLabel(formatLabel(label)) },
  )
}

function newVersion(
  tx: Transaction,
  { id, actor, clearance, ...words }: ChangeNote,
  edit: (note: Note) => Note,
): { note: Note; commit: string } {
  const before = getNote(tx, words.home, id, clearance, { includeDeleted: true })
  const after = edit(before)
  const note = after === before ? before : { ...after, hlc: nextHlc(tx, words.now), actor }
  const { commit } = putVersions(tx, words, note === before ? [] : [note])
  return { note, commit }
}
