/** L0 operations: branches, reading, writing into run branches. Protected branches are refused by the files room. */
import { dominates, fail, formatLabel, fromUtf8, joinLabels, parseLabel, utf8, type Label } from '@csb/core'
import {
  MAIN,
  MEMORY,
  commitFiles,
  entryAt,
  getHome,
  getRef,
  isBlob,
  labelAt,
  listFiles,
  listRefs,
  readCommit,
  readFile,
  readLog,
  validatePath,
  type Committed,
} from '@csb/files'
import { labelOfFile, placeBeside } from '@csb/guard'
import type { Transaction } from '@csb/store'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { takeShown, takeInBranches } from '../session/bulk-reads.ts'
import { changesShown, commitKnown, headShown, isPart, known, writeShown, type IdReader } from '../git/ids.ts'
import { marksOf, namesTold } from '../git/names.ts'
import { sightOf } from '../git/view.ts'
import { labelHere } from '../session/foreign-home.ts'
import { leastLabel, withoutOutside } from '../session/taint.ts'
import { EVERYTHING, homeOf, locationOf, reaches, type Context, type Operation, type Parts } from '../operation.ts'

type Home = { readonly home?: string }
type At = Home & { readonly branch: string; readonly path?: string }
type Write = At & {
  readonly path: string
  readonly text?: string
  readonly base64?: string
  readonly delete?: boolean
  readonly message?: string
  readonly label?: string
  readonly expect?: string | null
}

const reading = (input: At, parts: Pick<Parts, 'key' | 'identity'>) => ({
  location: locationOf(parts, homeOf(input, parts)),
  action: 'read' as const,
  branch: input.branch,
  ...(input.path === undefined || input.path === '' ? {} : { path: `/${input.path}` }),
})

type Labelled = { readonly path: string; readonly kind: 'file' | 'folder' | 'submodule'; readonly label: Label }

/** What may not be seen, or lies beyond the lease, looks like what is not there. */
const isShown = (context: Context, input: At, { path, label }: Labelled): boolean =>
  dominates(context.clearance, label) && reaches(context, reading({ ...input, path }, context))

/** The files that are shown, and the folders they lie in: one that holds nothing to be seen would tell of what is hidden. */
function shownOf<T extends Labelled>(items: readonly T[], isVisible: (item: T) => boolean): T[] {
  const shown = new Set(items.filter((item) => item.kind !== 'folder' && isVisible(item)).map(({ path }) => path))
  for (const path of shown) {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) shown.add(path.slice(0, at))
  }
  return items.filter(({ path }) => shown.has(path))
}

/**
 * The label that is set: what is asked for, or what is there, and no less than whoever writes it stands for. A label can
 * be raised by writing, never lowered: that takes a person's approval.
 * @returns undefined where it stays as it is
 * @throws DENIED
 */
function labelWritten(tx: Transaction, context: Context, { label, path, ...input }: Write): Label | undefined {
  const home = homeOf(input, context)
  // a new branch begins as `main` is
  const at = getRef(tx, home, input.branch) === undefined ? 'main' : input.branch
  const before = labelAt(tx, { home, at, path })
  const asked = label === undefined ? before.label : parseLabel(label)
  if (before.isThere && formatLabel(joinLabels([before.label, asked])) !== formatLabel(asked))
    fail('DENIED', { reason: 'a label is not lowered by writing', path })
  const next = joinLabels([asked, leastLabel(context, tx)])
  return label === undefined && formatLabel(next) === formatLabel(before.label) ? undefined : next
}

/** The path that is written: beside what stands there where the caller does not see it, as a push of it would land. */
function placeWritten(tx: Transaction, context: Context, { branch, path, ...input }: Write): string {
  if (!isPart(context)) return path
  const home = homeOf(input, context)
  const head = (getRef(tx, home, branch) ?? getRef(tx, home, MAIN))?.commit ?? fail('NOT_FOUND', { branch })
  return placeBeside(tx, { home, clearance: sightOf(context), tree: readCommit(tx, home, head).tree, path })
}

/** What is written; null: the file goes. @throws INVALID_INPUT where not exactly one thing is asked */
function bytesOf({ text, base64, delete: isGone }: Write): Uint8Array | null {
  if ([text, base64, isGone === true ? '' : undefined].filter((way) => way !== undefined).length !== 1)
    fail('INVALID_INPUT', { reason: 'one of text, base64 and delete is needed' })
  if (isGone === true) return null
  if (text !== undefined) return utf8(text)
  const bytes = Buffer.from(base64 ?? '', 'base64')
  if (bytes.toString('base64') !== base64) fail('INVALID_INPUT', { field: 'base64', reason: 'it is not whole' })
  return bytes
}

type ListedShown = Labelled & { readonly oid?: string }

/** The label of a file that may be seen. One that may not looks like one that is not there. @throws NOT_FOUND */
function labelSeen(context: Context, home: string, { branch, path }: At & { readonly path: string }): Label {
  const { view, clearance } = context
  const none = () => fail('NOT_FOUND', { path })
  const head = getRef(view, home, branch)?.commit ?? none()
  const entry = entryAt(view, home, readCommit(view, home, head).tree, validatePath(path))
  if (entry === undefined || !isBlob(entry)) return none()
  const inTree = labelAt(view, { home, at: branch, path }).label
  const label = labelOfFile(view, { home, branch, path, oid: entry.oid, label: inTree })
  return dominates(clearance, label) ? label : none()
}

/** A folder of a branch, with all that is below, as the reader is shown it: ids of folders are digests of what lies in them. */
async function listShown(context: Context, home: string, { branch, path = '', ...input }: At): Promise<ListedShown[]> {
  const { view } = context
  const list = (at: string) => listFiles(view, { home, at, path, recursive: true })
  knownBranch(context, { ...input, branch })
  const head = getRef(view, home, branch)?.commit ?? fail('NOT_FOUND', { branch })
  // notes bear labels of their own: of them each is looked at below
  const at = branch === MEMORY && isPart(context) ? undefined : await commitKnown(context, home, head)
  if (at === null) return []
  return at === undefined
    ? list(branch).map(({ oid, ...item }) => (item.kind === 'folder' ? item : { ...item, oid }))
    : list(at)
}

/** A lease names branches: a commit id in their place would go round it. @throws NOT_FOUND */
function knownBranch(context: Context, input: At): string {
  const home = homeOf(input, context)
  if (getRef(context.view, home, input.branch) === undefined) fail('NOT_FOUND', { branch: input.branch })
  return input.branch
}

/** What is told of a commit that was made. */
async function writtenShown(tx: Transaction, context: Context, home: string, done: Committed, ids: IdReader) {
  if (!isPart(context)) return done
  const [commit, parent] = [await ids.shown(done.commit), await ids.shown(done.parent)]
  const changed = changesShown(tx, home, { commit, parent }, done.changed)
  const tree = commit === undefined ? undefined : readCommit(tx, home, commit).tree
  return known({ commit, parent, tree, changed })
}

export const filesOperations: readonly Operation[] = [
  {
    name: 'files.refs',
    input: 'FilesRefs',
    kind: 'read',
    open: 'lease',
    needs: (input: Home, parts) => ({ location: locationOf(parts, homeOf(input, parts)), action: 'list' }),
    run: async (context: Context, input: Home) => {
      const { view } = context
      const home = getHome(view, homeOf(input, context))
      const refs = await listRefs(view, home.id)
      const location = locationOf(context, home.id)
      const reached = refs.filter(({ branch }) => reaches(context, { location, action: 'list', branch }))
      const told = namesTold(context, home.id, reached)
      const shown = []
      for (const { commit, ...ref } of told)
        shown.push({ ...ref, ...(await headShown(context, home.id, ref.branch, commit)) })
      return { home, refs: shown }
    },
  },
  {
    name: 'files.list',
    input: 'FilesList',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: async (context: Context, input: At) => {
      const { view } = context
      const home = homeOf(input, context)
      const items = await listShown(context, home, input)
      const labelled = items.map((item) => ({
        ...item,
        label: labelOfFile(view, {
          ...item,
          home,
          branch: input.branch,
          oid: item.kind === 'file' ? (item.oid ?? null) : null,
        }),
      }))
      const open = withoutOutside(context, labelled, ({ label }) => labelHere(context, context.view, home, label))
      const shown = shownOf(open, (item) => isShown(context, input, item))
      // a name is content too
      for (const { path, oid = '', label } of shown) takeShown(context, { home, path, oid, label })
      return { items: shown }
    },
  },
  {
    name: 'files.read',
    input: 'FilesRead',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: (context: Context, input: At & { path: string }) => {
      const home = homeOf(input, context)
      const at = knownBranch(context, input)
      const label = labelSeen(context, home, input)
      const file = readFile(context.view, { home, at, path: input.path })
      context.view.noteRead({ home, path: input.path, oid: file.oid, label })
      const text = fromUtf8(file.bytes)
      const body = text === undefined ? { base64: Buffer.from(file.bytes).toString('base64') } : { text }
      return { path: input.path, oid: file.oid, label, ...body }
    },
  },
  {
    name: 'files.log',
    input: 'FilesLog',
    kind: 'read',
    open: 'lease',
    // messages speak of whatever was changed, wherever it lies
    needs: (input: At, parts) => ({ ...reading(input, parts), path: '/', below: true as const, label: EVERYTHING }),
    run: async (context: Context, input: At & { limit?: number }) => {
      const home = homeOf(input, context)
      const at = knownBranch(context, input)
      // a message is content too, of whoever had read what lies there
      await takeInBranches(context, home, (branch) => branch === at)
      return { items: readLog(context.view, { home, at, limit: input.limit ?? 50 }) }
    },
  },
  {
    name: 'files.write',
    input: 'FilesWrite',
    kind: 'write',
    open: 'lease',
    // a path that is none is no question of rights
    needs: (input: Write, parts) => ({
      ...reading({ ...input, path: validatePath(input.path) }, parts),
      action: 'write' as const,
      // what is not asked for is raised as far as the lease wants it
      ...(input.label === undefined ? {} : { label: parseLabel(input.label) }),
    }),
    run: (context: Context, input: Write) => {
      const { path } = input
      // notes have an index and a clock beside them: they are written as notes
      if (input.branch === MEMORY) fail('PROTECTED', { branch: MEMORY, reason: 'notes are written as notes' })
      const bytes = bytesOf(input)
      const home = homeOf(input, context)
      return writeShown(
        context,
        home,
        [input.branch],
        async (tx, ids) => {
          const at = placeWritten(tx, context, input)
          const label = labelWritten(tx, context, { ...input, path: at })
          const expect = typeof input.expect === 'string' ? await ids.meant(input.branch, input.expect) : input.expect
          // what is not seen does not go either
          const isNothing = at !== path && bytes === null
          const isLabelled = label !== undefined && !isNothing && (bytes !== null || input.label !== undefined)
          const done = commitFiles(tx, {
            home,
            branch: input.branch,
            changes: isNothing ? [] : [{ path: at, bytes }],
            ...(isLabelled ? { labels: [{ path: at, label }] } : {}),
            ...(expect === undefined ? {} : { expect }),
            ...marksOf(context, tx, input.branch),
            author: authorOf(context),
            message: input.message ?? `${input.delete === true ? 'delete' : 'write'} ${path}`,
            trailers: trailersOf(context),
            now: context.clock.now(),
          })
          const told = await writtenShown(tx, context, home, done, ids)
          return { done, told: at === path || isNothing ? told : { ...told, placed: [{ path, at }] } }
        },
        ({ done: { commit, parent, tree } }) => ({ home, branch: input.branch, commit, parent, tree }),
      ).then(({ told }) => told)
    },
  },
]
