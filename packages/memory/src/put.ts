/**
 * Notes into the tree and out of it, with their index rows, one commit for many. The last writer wins by
 * (hlc, actor, object id), so that all nodes with the same notes have the same tree, whatever came first.
 * Labels and tombstones are judged by the rooms above.
 */
import { commitFiles, getRef, MEMORY, staleProjections, type CommitWords } from '@csb/files'
import { key, type Transaction, type View } from '@csb/store'
import { isAhead, observeHlc } from './hlc.ts'
import { renderNote, type Note } from './note.ts'
import { dropState, getState, oidOf, putState, stateOf, type NoteState } from './states.ts'

/** Which home, and what its commit says of itself. */
export type WriteWords = CommitWords & { readonly home: string }

export type PutNotes = WriteWords & { readonly notes: readonly Note[] }

export type Put = {
  /** head of the branch `memory` afterwards */
  readonly commit: string
  readonly applied: readonly NoteState[]
  /** ids of notes that lost against what is here, or are here already */
  readonly ignored: readonly string[]
  /** ids of notes whose hlc lies more than LIMITS.futureHlcMs ahead */
  readonly ahead: readonly string[]
}

type Candidate = { readonly note: Note; readonly bytes: Uint8Array }

/**
 * Take notes in as they are: from another node, or back from an export.
 * @throws TOO_LARGE, INVALID_INPUT, NOT_FOUND, FORGOTTEN where exactly these bytes were forgotten
 * @clause MEM-002.2.1
 */
export function putNotes(tx: Transaction, { notes, ...words }: PutNotes): Put {
  const { true: ahead = [], false: timely = [] } = Object.groupBy(notes, ({ hlc }) => `${isAhead(hlc, words.now)}`)
  return { ...putVersions(tx, words, timely), ahead: ahead.map(({ entry }) => entry.id) }
}

/** The same for versions of this node itself, which it takes wherever its clock stands. */
export function putVersions(tx: Transaction, words: WriteWords, notes: readonly Note[]): Omit<Put, 'ahead'> {
  const { home } = words
  const winners = new Map<string, Candidate>()
  const ignored: string[] = []
  for (const note of notes) {
    const { id } = note.entry
    const candidate = { note, bytes: renderNote(note) }
    const rival = winners.get(id)
    const wins = beatsState(tx, home, candidate, getState(tx, home, id)) && beatsNote(tx, home, candidate, rival)
    if (!wins || rival !== undefined) ignored.push(id)
    if (wins) winners.set(id, candidate)
    observeHlc(tx, note.hlc)
  }
  return { ...write(tx, words, [...winners.values()]), ignored }
}

/**
 * Take notes out of the tree and the index, without a trace in either. History keeps what it has.
 * @param input `ids` that are not here are passed over
 * @throws NOT_FOUND without the home
 */
export function removeNotes(
  tx: Transaction,
  { ids, ...words }: WriteWords & { readonly ids: readonly string[] },
): { readonly commit: string; readonly removed: readonly string[] } {
  const { home } = words
  const states = [...new Set(ids)].map((id) => getState(tx, home, id)).filter((state) => state !== undefined)
  const commit = commitOrHead(
    tx,
    words,
    states.map(({ path }) => ({ path, bytes: null })),
  )
  for (const state of states) {
    dropState(tx, home, state)
    tx.putJson(removedKey(home, state.id), true)
  }
  if (states.length > 0) staleProjections(tx, home)
  return { commit, removed: states.map(({ id }) => id) }
}

function write(tx: Transaction, words: WriteWords, winners: readonly Candidate[]): Pick<Put, 'commit' | 'applied'> {
  const { home } = words
  const states = winners.map(({ note, bytes }) => stateOf(note, oidOf(tx, home, bytes)))
  const changes = winners.map(({ bytes }, at) => ({ path: states[at]?.path ?? '', bytes }))
  const commit = commitOrHead(tx, words, changes)
  for (const state of states) {
    const before = getState(tx, home, state.id)
    if (isRelabelled(tx, home, state, before)) staleProjections(tx, home)
    putState(tx, home, state, before)
  }
  return { commit, applied: states }
}

/** True where versions in history bear another label from now on. */
function isRelabelled(tx: Transaction, home: string, state: NoteState, before: NoteState | undefined): boolean {
  if (before !== undefined) return before.label !== state.label
  const wasHere = tx.has(removedKey(home, state.id))
  if (wasHere) tx.del(removedKey(home, state.id))
  return wasHere
}

/** Says that history holds versions of a note that is in no row. */
const removedKey = (home: string, id: string): string => key('meta', 'removed', home, id)

function commitOrHead(
  tx: Transaction,
  words: WriteWords,
  changes: readonly { readonly path: string; readonly bytes: Uint8Array | null }[],
): string {
  const head = getRef(tx, words.home, MEMORY)?.commit
  if (changes.length === 0 && head !== undefined) return head
  return commitFiles(tx, { ...words, branch: MEMORY, changes }).commit
}

function beatsState(view: View, home: string, { note, bytes }: Candidate, before: NoteState | undefined): boolean {
  if (before === undefined) return true
  return compare(note, before) || (isTie(note, before) && oidOf(view, home, bytes) > before.oid)
}

function beatsNote(view: View, home: string, { note, bytes }: Candidate, rival: Candidate | undefined): boolean {
  if (rival === undefined) return true
  if (!isTie(note, rival.note)) return compare(note, rival.note)
  return oidOf(view, home, bytes) > oidOf(view, home, rival.bytes)
}

type Version = { readonly hlc: string; readonly actor: string }

const isTie = (a: Version, b: Version): boolean => a.hlc === b.hlc && a.actor === b.actor

const compare = (a: Version, b: Version): boolean => (a.hlc === b.hlc ? a.actor > b.actor : a.hlc > b.hlc)
