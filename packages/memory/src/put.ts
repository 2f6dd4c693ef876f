/**
 * Notes into the tree and out of it, with their index rows, one commit for many. The words of the last writer win by
 * (hlc, actor), and no version makes a label less strict that it did not see, so that all nodes with the same notes have
 * the same tree, whatever came first. Who may see or change what is judged by the rooms above, and so are tombstones.
 * @clause L1.7
 */
import { LIMITS, PUBLIC, fail, parseLabel } from '@csb/core'
import { commitFiles, getRef, MEMORY, readBlob, staleProjections, type CommitWords } from '@csb/files'
import { key, type Transaction, type View } from '@csb/store'
import { isAhead, nextHlc, observeHlc } from './hlc.ts'
import { isSameClock, parseClock, plainClock } from './label-clock.ts'
import { OWNERS, mergeStamps, raised, taken, type Stamp, type Standing } from './merge-notes.ts'
import { clockOf, latestIn, parseNote, renderNote, underClock, type Note } from './note.ts'
import { dropState, getState, isLabelHere, labelsOf, oidOf, putState, stateOf, type NoteState } from './states.ts'

/** Which home, and what its commit says of itself. */
export type WriteWords = CommitWords & { readonly home: string }

export type PutNotes = WriteWords & {
  readonly notes: readonly Note[]
  /** who brings them, and to whose node; default: two nodes of the owner, of which this one is the author */
  readonly standing?: Receiving
}

/** `node`: did of this node, which changes a label itself where {@link mergeStamps} asks for it. */
export type Receiving = Standing & { readonly node: string }

export type Put = {
  /** head of the branch `memory` afterwards */
  readonly commit: string
  readonly applied: readonly NoteState[]
  /** ids of notes that lost against what is here, or are here already */
  readonly ignored: readonly string[]
  /** ids of notes whose hlc lies more than LIMITS.futureHlcMs ahead */
  readonly ahead: readonly string[]
}

/**
 * Take versions in, from another node or back from an export: each is merged with the one that is here.
 * @throws TOO_LARGE, INVALID_INPUT, NOT_FOUND, FORGOTTEN where exactly these bytes were forgotten
 * @clause L1.7, MEM-002.2.1
 */
export function putNotes(tx: Transaction, { notes, standing: given, ...words }: PutNotes): Put {
  const standing = given ?? { ...OWNERS, node: words.author.did }
  const isEarly = (note: Note): boolean => isAhead(latestOf(note, standing), words.now)
  const { true: ahead = [], false: timely = [] } = Object.groupBy(notes, (note) => `${isEarly(note)}`)
  return { ...putVersions(tx, words, timely, standing), ahead: ahead.map(({ entry }) => entry.id) }
}

/**
 * The same wherever the clock of this node stands; without `standing` for versions of its own, each of which was made of the
 * one that is here and takes its place.
 */
export function putVersions(
  tx: Transaction,
  words: WriteWords,
  notes: readonly Note[],
  standing?: Receiving,
): Omit<Put, 'ahead'> {
  const winners = new Map<string, Note>()
  const ignored: string[] = []
  for (const note of notes) {
    const { id } = note.entry
    observeHlc(tx, standing === undefined ? latestIn(note) : latestOf(note, standing))
    const after = standing === undefined ? note : merged(tx, words, { note, staged: winners.get(id), standing })
    if (after === undefined || winners.has(id)) ignored.push(id)
    if (after !== undefined) winners.set(id, after)
  }
  return { ...write(tx, words, [...winners.values()], standing), ignored }
}

type Coming = { readonly note: Note; readonly staged: Note | undefined; readonly standing: Receiving }

/** What this node holds once it has that version too; undefined where it changes nothing. */
function merged(tx: Transaction, { home, now }: WriteWords, { note, staged, standing }: Coming): Note | undefined {
  const theirs = stampOf(note)
  const state = staged === undefined ? getState(tx, home, note.entry.id) : undefined
  if (staged === undefined && state === undefined) return underClock(note, taken(theirs, standing))
  const mine = state === undefined ? stampOf(staged ?? note) : stampIn(state)
  // what is here is read only where its words matter
  const here = (): Note => staged ?? parseNote(readBlob(tx, home, state?.oid ?? ''))
  const isTie = mine.hlc === theirs.hlc && mine.actor === theirs.actor
  const outcome = mergeStamps(mine, theirs, isTie ? compareWords(here(), note) : 0, standing)
  const { raise } = outcome
  const clock =
    raise === null ? outcome.clock : raised(outcome.clock, raise, { actor: standing.node, at: nextHlc(tx, now) })
  if (outcome.words === 'mine' && isSameClock(clock, mine.clock)) return undefined
  return underClock(outcome.words === 'mine' ? here() : note, clock)
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

function write(
  tx: Transaction,
  words: WriteWords,
  winners: readonly Note[],
  standing: Receiving | undefined,
): Pick<Put, 'commit' | 'applied'> {
  const { home } = words
  const files = winners.map((note) => ({ note, bytes: renderNote(note) }))
  const states = files.map(({ note, bytes }) => stateOf(note, oidOf(tx, home, bytes)))
  const changes = files.map(({ bytes }, at) => ({ path: states[at]?.path ?? '', bytes }))
  const commit = commitOrHead(tx, words, changes)
  for (const state of states) {
    const before = getState(tx, home, state.id)
    if (isRelabelled(tx, home, state, before)) staleProjections(tx, home)
    checkLabel(tx, home, state.label, standing)
    putState(tx, home, state, before)
  }
  return { commit, applied: states }
}

/**
 * Each label is told in every session. Who brings one more than that many is stopped there, and nobody else.
 * @throws TOO_LARGE
 */
function checkLabel(view: View, home: string, label: string, standing: Receiving | undefined): void {
  const maxLabels = standing?.from === 'other' ? LIMITS.syncLabelsOfOthers : LIMITS.syncLabels
  if (labelsOf(view, home) >= maxLabels && !isLabelHere(view, home, label)) fail('TOO_LARGE', { maxLabels })
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

/** The latest reading in a note that is believed. */
const latestOf = (note: Note, { from }: Standing): string => (from === 'owner' ? latestIn(note) : note.hlc)

const stampOf = (note: Note): Stamp => ({ hlc: note.hlc, actor: note.actor, clock: clockOf(note) })

const stampIn = (state: NoteState): Stamp => ({
  hlc: state.hlc,
  actor: state.actor,
  clock: parseClock(state.clock, { ...state, label: parseLabel(state.label) }),
})

/** Two versions of one (hlc, actor), whatever is said of their labels: no label decides which words stand. */
function compareWords(a: Note, b: Note): number {
  const [left, right] = [a, b].map((note) => renderNote(underClock(note, plainClock({ ...note, label: PUBLIC }))))
  return Buffer.compare(left ?? new Uint8Array(0), right ?? new Uint8Array(0))
}
