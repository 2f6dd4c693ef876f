/**
 * L2 operations: notes in the memory branch of a home. Every write is one commit with its record. Nothing is forgotten
 * here: that is asked for, and done when the owner approves.
 */
import { OWNER_PRIVATE, fail, formatLabel, isWithin, joinLabels, parseLabel, type Label, type Memory } from '@csb/core'
import { isForgotten, isVisible } from '@csb/guard'
import {
  createNotes,
  deleteNote,
  getNote,
  getState,
  levelOf,
  listNotes,
  notePath,
  restoreNote,
  type Note,
} from '@csb/memory'
import { noteCommit } from '../git/ids.ts'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { isOfOwner, labelHere } from '../session/foreign-home.ts'
import { askGate } from '../gate/gates.ts'
import { withOwnIds } from '../session/note-ids.ts'
import { leastLabel, withoutOutside } from '../session/taint.ts'
import {
  EVERYTHING,
  checkReach,
  homeOf,
  locationOf,
  reaches,
  type Context,
  type Operation,
  type Parts,
} from '../operation.ts'

type Home = { readonly home?: string }
type Item = { readonly entry: unknown; readonly label?: string; readonly extra?: Readonly<Record<string, unknown>> }
type Existing = 'refuse' | 'keep'
type Named = Home & { readonly id: string; readonly reason?: string }
type Forgetting = Home & { readonly ids: readonly string[]; readonly reason?: string }
type Filter = Home & {
  readonly level?: string
  readonly type?: Memory['type']
  readonly limit?: number
  readonly cursor?: string
  readonly include_deleted?: boolean
}

const BRANCH = 'memory'

const place = (input: Home, parts: Pick<Parts, 'key' | 'identity'>) => ({
  location: locationOf(parts, homeOf(input, parts)),
  branch: BRANCH,
})

const reading = (input: Home, parts: Parts) => ({ ...place(input, parts), action: 'read' as const, path: '/notes' })

/** What is about one note names its file, so that a lease can leave out a part of them. */
const onNote = (action: 'read' | 'write') => (input: Named, parts: Parts) => ({
  ...place(input, parts),
  action,
  path: `/${notePath(input.id)}`,
})

/** Of several notes the least restricted one says whether the lease's floor is kept. */
const writing = (input: Home & { readonly items: readonly Item[] }, parts: Parts) => ({
  ...place(input, parts),
  action: 'write' as const,
  path: '/notes',
  label: input.items
    .map(({ label }) => (label === undefined ? OWNER_PRIVATE : parseLabel(label)))
    .reduce((least, label) => (isWithin(label.level, least.level) ? label : least), EVERYTHING),
})

/** The form of a note that crosses a door: the MEM-001 entry with its label and versions. */
const shown = (note: Note) => ({
  ...note.entry,
  label: formatLabel(note.label),
  hlc: note.hlc,
  ...marked(note.deletedAt),
})

const marked = (deletedAt: number | null) => (deletedAt === null ? {} : { deleted: true, deleted_at: deletedAt })

/**
 * What an agent remembers is the agent's, whatever it says: only the owner's own lease writes as the owner. What a
 * session remembers that has read from outside may have been said there.
 */
function labelGiven(context: Context, given: string | undefined): Label {
  return joinLabels([given === undefined ? OWNER_PRIVATE : parseLabel(given), leastLabel(context, context.view)])
}

async function create(context: Context, home: string, given: readonly Item[], existing: Existing) {
  const named = ({ entry }: Item) => String((entry as { id?: unknown }).id)
  return context.write(
    (tx) => {
      const items = withOwnIds(context, tx, home, given)
      const gone = items.map(named).filter((id) => isForgotten(tx, home, id))
      if (gone.length > 0 && existing === 'refuse') fail('FORGOTTEN', { id: gone[0] })
      const made = createNotes(tx, {
        home,
        inputs: items
          .filter((item) => !gone.includes(named(item)))
          .map(({ entry, label, extra }) => ({
            entry,
            label: labelGiven(context, label),
            ...(extra === undefined ? {} : { extra }),
          })),
        existing,
        actor: context.key.did,
        ofOwner: isOfOwner(context, tx, home),
        author: authorOf(context),
        message: items.length === 1 ? 'remember a note' : `remember ${items.length} notes`,
        trailers: trailersOf(context),
        levelMap: context.identity.memory_level_map,
        now: context.clock.now(),
      })
      // where a note lies follows from its id
      for (const { entry } of made.notes) {
        checkReach(context, { ...place({ home }, context), action: 'write', path: `/${notePath(entry.id)}` })
      }
      return { ...made, kept: [...made.kept, ...gone] }
    },
    ({ commit, notes }) => ({ home, branch: BRANCH, commit, notes: notes.map(({ entry }) => entry.id) }),
  )
}

export const memoryOperations: readonly Operation[] = [
  {
    name: 'memory.create',
    input: 'MemoryCreate',
    kind: 'write',
    open: 'lease',
    needs: (input: Home & Item, parts) => writing({ ...input, items: [input] }, parts),
    run: async (context: Context, input: Home & Item) => {
      const { commit, notes, warnings } = await create(context, homeOf(input, context), [input], 'refuse')
      const note = notes[0] ?? fail('INTERNAL', { reason: 'no note was made' })
      return { ...shown(note), ...noteCommit(context, commit), warnings: warnings[0] ?? [] }
    },
  },
  {
    name: 'memory.batch',
    input: 'MemoryBatch',
    kind: 'write',
    open: 'lease',
    needs: writing,
    run: async (context: Context, input: Home & { items: readonly Item[]; existing?: Existing }) => {
      const { commit, notes, warnings, kept } = await create(
        context,
        homeOf(input, context),
        input.items,
        input.existing ?? 'refuse',
      )
      return {
        ...noteCommit(context, commit),
        kept,
        items: notes.map((note, at) => ({ ...shown(note), warnings: warnings[at] ?? [] })),
      }
    },
  },
  {
    name: 'memory.get',
    input: 'MemoryGet',
    kind: 'read',
    open: 'lease',
    needs: onNote('read'),
    run: (context: Context, input: Named) =>
      shown(getNote(context.view, homeOf(input, context), input.id, context.clearance)),
  },
  {
    name: 'memory.list',
    input: 'MemoryList',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: async (context: Context, input: Filter) => {
      const level = input.level === undefined ? undefined : levelOf(input.level, context.identity.memory_level_map)
      if (input.level !== undefined && level === undefined)
        fail('INVALID_INPUT', { field: 'level', value: input.level })
      const { items, next } = await listNotes(context.view, homeOf(input, context), {
        ...(level === undefined ? {} : { level }),
        ...(input.type === undefined ? {} : { type: input.type }),
        ...(input.cursor === undefined ? {} : { after: input.cursor }),
        limit: input.limit ?? 50,
        includeDeleted: input.include_deleted ?? false,
        clearance: context.clearance,
      })
      const own = place(input, context)
      const reached = items.filter(({ entry }) =>
        reaches(context, { ...own, action: 'read', path: `/${notePath(entry.id)}` }),
      )
      const home = homeOf(input, context)
      const told = withoutOutside(context, reached, ({ label }) => labelHere(context, context.view, home, label))
      return { items: told.map(shown), next_cursor: next }
    },
  },
  {
    name: 'memory.delete',
    input: 'MemoryDelete',
    kind: 'write',
    open: 'lease',
    needs: onNote('write'),
    run: (context: Context, input: Named) => change(context, input, 'delete', deleteNote),
  },
  {
    name: 'memory.restore',
    input: 'MemoryRestore',
    kind: 'write',
    open: 'lease',
    needs: onNote('write'),
    run: (context: Context, input: Named) => change(context, input, 'restore', restoreNote),
  },
  {
    name: 'memory.forget',
    input: 'MemoryForget',
    kind: 'write',
    open: 'lease',
    needs: (input: Forgetting, parts: Parts) => onNote('write')({ ...input, id: input.ids[0] ?? '' }, parts),
    run: (context: Context, input: Forgetting) => {
      const home = homeOf(input, context)
      const ids = [...new Set(input.ids)].sort()
      for (const id of ids) {
        checkReach(context, onNote('write')({ home, id }, context))
        // what may not be seen can not be forgotten, and looks like what is not there; nothing of it is read
        const state = getState(context.view, home, id)
        if (state === undefined || !isVisible(context.clearance, state.label)) fail('NOT_FOUND', { home, id })
      }
      return askGate(context, { kind: 'forget', home, ids, reason: input.reason ?? 'unspecified' })
    },
  },
]

async function change(context: Context, input: Named, verb: string, work: typeof deleteNote | typeof restoreNote) {
  const home = homeOf(input, context)
  const done = await context.write(
    (tx) =>
      work(tx, {
        home,
        id: input.id,
        clearance: context.clearance,
        actor: context.key.did,
        ofOwner: isOfOwner(context, tx, home),
        author: authorOf(context),
        message: `${verb} a note`,
        trailers: trailersOf(context),
        now: context.clock.now(),
      }),
    ({ commit }) => ({ home, branch: BRANCH, commit, note: input.id, reason: input.reason ?? 'unspecified' }),
  )
  const { entry, label, deletedAt } = done.note
  // what it says is for those who may read it, and they know how
  return { id: entry.id, label: formatLabel(label), ...marked(deletedAt), ...noteCommit(context, done.commit) }
}
