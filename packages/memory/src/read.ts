/**
 * Reading notes. The reader's clearance is part of every read and never left out: a note above it is not
 * there, and what was read is noted with the note's own label.
 * @clause L4.2
 */
import { dominates, fail, LIMITS, parseLabel, type Clearance, type Memory } from '@csb/core'
import { readBlob } from '@csb/files'
import { key, prefix, tail, type View } from '@csb/store'
import { parseNote, type Note } from './note.ts'
import { getState, type NoteState } from './states.ts'

export type ListNotes = {
  readonly level?: Memory['level']
  readonly type?: Memory['type']
  /** 1 to LIMITS.listMax */
  readonly limit: number
  /** id behind which to go on, the `next` of the page before */
  readonly after?: string
  /** deleted notes too; default false */
  readonly includeDeleted?: boolean
  readonly clearance: Clearance
}

export type NotePage = { readonly items: readonly Note[]; readonly next: string | null }

/**
 * One note; the read is noted.
 * @param options `includeDeleted`: a softly deleted note too; default false
 * @throws NOT_FOUND where it is not here, deleted, or above the clearance; OBJECT_DAMAGED, FORGOTTEN
 * @clause L1.5 L4.2
 */
export function getNote(
  view: View,
  home: string,
  id: string,
  clearance: Clearance,
  { includeDeleted = false }: { readonly includeDeleted?: boolean } = {},
): Note {
  const state = getState(view, home, id)
  if (state === undefined || !isShown(state, clearance, includeDeleted)) return fail('NOT_FOUND', { home, id })
  return read(view, home, state, clearance) ?? fail('NOT_FOUND', { home, id })
}

/**
 * A page of notes, newest id first; each read is noted.
 * @throws OBJECT_DAMAGED
 * @clause L1.5 L4.2
 */
export async function listNotes(view: View, home: string, options: ListNotes): Promise<NotePage> {
  const { level, type, after, includeDeleted = false, clearance } = options
  const limit = Math.min(Math.max(1, options.limit), LIMITS.listMax)
  const [table, parts] = indexFor(home, level, type)
  const from = after === undefined ? {} : { after: key(table, ...parts, after) }
  const items: Note[] = []
  for await (const [row] of view.range({ prefix: prefix(table, ...parts), ...from, reverse: true })) {
    const state = getState(view, home, tail(row, table, ...parts))
    if (state === undefined || (level !== undefined && state.level !== level)) continue
    if (!isShown(state, clearance, includeDeleted)) continue
    if (items.length === limit) return { items, next: items.at(-1)?.entry.id ?? null }
    const note = read(view, home, state, clearance)
    if (note !== undefined) items.push(note)
  }
  return { items, next: null }
}

function indexFor(home: string, level?: string, type?: string) {
  if (type !== undefined) return ['noteByType', [home, type]] as const
  return level === undefined ? (['note', [home]] as const) : (['noteByLevel', [home, level]] as const)
}

const isShown = (state: NoteState, clearance: Clearance, includeDeleted: boolean): boolean =>
  dominates(clearance, parseLabel(state.label)) && (includeDeleted || state.deletedAt === null)

/** The index and the note itself must both allow it; undefined where the note does not. */
function read(view: View, home: string, { path, oid }: NoteState, clearance: Clearance): Note | undefined {
  const note = parseNote(readBlob(view, home, oid))
  if (!dominates(clearance, note.label)) return undefined
  view.noteRead({ home, path, oid, label: note.label })
  return note
}
