/**
 * The index over notes: one row per note, one per level and type and one per label, each a pure function of the note and its
 * place in the tree. Nothing is in it that the tree does not say, so it can be thrown away and made anew.
 * @clause L2.1
 */
import { hash } from 'node:crypto'
import { formatLabel, fromUtf8, isNodeError, type Memory } from '@csb/core'
import { getHome, getRef, listFiles, MEMORY, readBlob } from '@csb/files'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { observeHlc } from './hlc.ts'
import { latestIn, parseNote, spellClock, type Note } from './note.ts'
import { notePath, NOTES_FOLDER } from './paths.ts'

/** What the index knows of a note. */
export type NoteState = {
  readonly id: string
  readonly path: string
  /** object id of the note's file */
  readonly oid: string
  readonly hlc: string
  readonly actor: string
  /** `level:integrity[:tags]` */
  readonly label: string
  /** what was said of the label, in its one spelling; omitted where the note needs none */
  readonly clock?: string
  readonly level: Memory['level']
  readonly type: Memory['type']
  /** ms since epoch; null where not deleted */
  readonly deletedAt: number | null
  /** ms since epoch */
  readonly timestamp: number
}

const EMPTY = new Uint8Array(0)

/** The row of a note, or undefined; for rooms that decide by the label themselves. */
export const getState = (view: View, home: string, id: string): NoteState | undefined =>
  view.getJson<NoteState>(key('note', home, id))

/** All rows of a home in id order, deleted notes too; for rooms that decide by the label themselves. */
export async function* listStates(view: View, home: string): AsyncGenerator<NoteState> {
  for await (const [, value] of view.range({ prefix: prefix('note', home) })) {
    yield JSON.parse(fromUtf8(value) ?? '') as NoteState
  }
}

/** @param oid object id of the rendered note */
export function stateOf(note: Note, oid: string): NoteState {
  const { id, level, type, timestamp } = note.entry
  const { hlc, actor, deletedAt } = note
  const clock = spellClock(note)
  return {
    id,
    path: notePath(id),
    oid,
    hlc,
    actor,
    label: formatLabel(note.label),
    ...(clock === undefined ? {} : { clock }),
    level,
    type,
    deletedAt,
    timestamp,
  }
}

/** Stage the rows of a note; `before` are the ones it replaces. */
export function putState(tx: Transaction, home: string, state: NoteState, before: NoteState | undefined): void {
  if (before !== undefined) dropState(tx, home, before)
  tx.putJson(key('note', home, state.id), state)
  tx.put(key('noteByLevel', home, state.level, state.id), EMPTY)
  tx.put(key('noteByType', home, state.type, state.id), EMPTY)
  countLabel(tx, home, state.label, 1)
}

/** Stage the removal of a note's rows. */
export function dropState(tx: Transaction, home: string, state: NoteState): void {
  tx.del(key('note', home, state.id))
  tx.del(key('noteByLevel', home, state.level, state.id))
  tx.del(key('noteByType', home, state.type, state.id))
  countLabel(tx, home, state.label, -1)
}

/** Do some notes of the home bear that label? */
export const isLabelHere = (view: View, home: string, label: string): boolean => view.has(key('noteLabel', home, label))

/** How many labels the notes of a home bear. */
export const labelsOf = (view: View, home: string): number => view.getJson<number>(key('noteLabel', home)) ?? 0

function countLabel(tx: Transaction, home: string, label: string, by: 1 | -1): void {
  const row = key('noteLabel', home, label)
  const before = tx.getJson<number>(row) ?? 0
  const after = Math.max(before + by, 0)
  if (after > 0) tx.putJson(row, after)
  else tx.del(row)
  if (before > 0 !== after > 0) tx.putJson(key('noteLabel', home), Math.max(labelsOf(tx, home) + by, 0))
}

/** The object id that git gives a file, without writing it: a version that loses leaves no bytes behind. */
export function oidOf(view: View, home: string, bytes: Uint8Array): string {
  return hash(getHome(view, home).hash, Buffer.concat([Buffer.from(`blob ${bytes.byteLength}\0`), bytes]), 'hex')
}

/**
 * Throw the index of a home away and make it anew from the tree of its branch `memory` alone. Files that are
 * no notes, or do not lie where their id says, are none of it.
 * @returns how many notes there are
 * @throws NOT_FOUND, OBJECT_DAMAGED
 * @clause L2.1
 */
export async function rebuildIndex(tx: Transaction, home: string): Promise<number> {
  for (const table of ['note', 'noteByLevel', 'noteByType', 'noteLabel'] as const) {
    for await (const [row] of tx.range({ prefix: prefix(table, home) })) tx.del(row)
  }
  tx.del(key('noteLabel', home))
  let count = 0
  for (const { path, oid } of noteFiles(tx, home)) {
    const note = readOr(() => parseNote(readBlob(tx, home, oid)), 'MALFORMED')
    if (note === undefined || notePath(note.entry.id) !== path) continue
    putState(tx, home, stateOf(note, oid), undefined)
    observeHlc(tx, latestIn(note))
    count++
  }
  return count
}

function noteFiles(view: View, home: string): { path: string; oid: string }[] {
  if (getRef(view, home, MEMORY) === undefined) return []
  const found = readOr(() => listFiles(view, { home, at: MEMORY, path: NOTES_FOLDER, recursive: true }), 'NOT_FOUND')
  return (found ?? []).filter(({ kind }) => kind === 'file')
}

function readOr<T>(read: () => T, absent: 'MALFORMED' | 'NOT_FOUND'): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isNodeError(error, absent)) return undefined
    throw error
  }
}
