/**
 * The lines at the head of an archive: home, branches, recycle area, what was forgotten. Held in memory, in bounds, until the end
 * of the archive proved them.
 * @clause L0.4
 */
import { LIMITS, fail, formatLabel, isNodeError, parseLabel, publicKeyFromDid } from '@csb/core'
import { parseLine, type ArchiveReader, type FrameKind } from './archive-format.ts'
import { MAIN, MEMORY, type Home } from './homes.ts'
import { isOid, type HashName } from './objects.ts'
import { validateBranch, validatePath } from './paths.ts'
import { recycleKey, type Recycled } from './recycle.ts'
import type { Ref } from './refs.ts'
import type { Tag } from './tags.ts'
import { FOLDER, MODES } from './tree.ts'

export type HeldLines = {
  readonly home: Home
  readonly refs: readonly ({ readonly branch: string } & Ref)[]
  readonly tags: readonly ({ readonly name: string } & Tag)[]
  readonly recycled: readonly Recycled[]
  /** ids of blobs, and paths with a slash before them */
  readonly forgotten: ReadonlySet<string>
  /** as they came */
  readonly tombstones: readonly unknown[]
}

type Frame = { readonly kind: FrameKind; readonly bytes: number }
type Fields = Readonly<Record<string, unknown>>

/** Kinds of line behind that of the home, in their order. */
const ORDER: readonly FrameKind[] = ['ref', 'tag', 'recycled', 'forgotten', 'tombstone']

/**
 * @returns the lines, and the first frame behind them
 * @throws MALFORMED, TOO_LARGE
 */
export async function readHeld(reader: ArchiveReader): Promise<{ held: HeldLines; first: Frame | undefined }> {
  const head = await reader.next()
  if (head?.kind !== 'home') return fail('MALFORMED', { reason: 'an archive without a home' })
  const read = createLineReader(reader)
  const home = readHome(await read(head))
  const refs: ({ branch: string } & Ref)[] = []
  const tags: ({ name: string } & Tag)[] = []
  const recycled: Recycled[] = []
  const forgotten: string[] = []
  const tombstones: unknown[] = []
  let at = 0
  let frame = await reader.next()
  for (; frame !== undefined && ORDER.includes(frame.kind); frame = await reader.next()) {
    const place = ORDER.indexOf(frame.kind)
    if (place < at) return fail('MALFORMED', { reason: 'frames out of order' })
    at = place
    const line = await read(frame)
    if (frame.kind === 'ref') refs.push(readRef(line, home))
    else if (frame.kind === 'tag') tags.push(readTag(line, home))
    else if (frame.kind === 'recycled') recycled.push(readRecycled(line, home))
    else if (frame.kind === 'forgotten') forgotten.push(readMark(line))
    else tombstones.push(line)
  }
  requireOrder(refs.map(({ branch }) => branch))
  requireOrder(tags.map(({ name }) => name))
  requireOrder(recycled.map((entry) => recycleKey(home.id, entry)))
  requireOrder(forgotten)
  const main = refs.find(({ branch }) => branch === MAIN)
  if (main?.protected !== true || !refs.some(({ branch }) => branch === MEMORY))
    fail('MALFORMED', { reason: 'a home has a protected main and a memory' })
  return { held: { home, refs, tags, recycled, forgotten: new Set(forgotten), tombstones }, first: frame }
}

/** Bounded in each line and in all of them together. */
function createLineReader(reader: ArchiveReader): (frame: Frame) => Promise<unknown> {
  let total = 0
  return async ({ bytes }) => {
    total += bytes
    if (bytes > LIMITS.archiveLineBytes) fail('TOO_LARGE', { maxBytes: LIMITS.archiveLineBytes })
    if (total > LIMITS.archiveHeldBytes) fail('TOO_LARGE', { maxBytes: LIMITS.archiveHeldBytes })
    return parseLine(await reader.take(bytes))
  }
}

function readHome(value: unknown): Home {
  const { id, hash, owner, origin, createdAt } = fieldsOf(value, ['id', 'hash', 'owner', 'origin', 'createdAt'])
  const isSound =
    typeof id === 'string' &&
    /^home_[a-z2-7]{26}$/.test(id) &&
    (hash === 'sha256' || hash === 'sha1') &&
    isDid(owner) &&
    isDid(origin) &&
    isTime(createdAt)
  return isSound ? { id, hash, owner, origin, createdAt } : fail('MALFORMED', { reason: 'home of an archive' })
}

function readRef(value: unknown, { hash }: Home): { branch: string } & Ref {
  const fields = fieldsOf(value, ['branch', 'commit', 'protected', 'updatedAt'], ['outside', 'words', 'agent'])
  const { branch, commit, protected: isProtected, updatedAt } = fields
  const isSound =
    typeof branch === 'string' &&
    isAllowed(() => validateBranch(branch)) &&
    isOidOf(commit, hash) &&
    typeof isProtected === 'boolean' &&
    isTime(updatedAt) &&
    isMark(fields)
  if (!isSound) return fail('MALFORMED', { reason: 'branch of an archive' })
  return { branch, commit, protected: isProtected, updatedAt, ...markOf(fields) }
}

function readTag(value: unknown, { hash }: Home): { name: string } & Tag {
  const fields = fieldsOf(value, ['name', 'oid', 'commit', 'createdAt'], ['words'])
  const { name, oid, commit, createdAt } = fields
  const isSound =
    typeof name === 'string' &&
    isAllowed(() => validateBranch(name)) &&
    isOidOf(oid, hash) &&
    isOidOf(commit, hash) &&
    isTime(createdAt) &&
    isMark(fields)
  return isSound
    ? { name, oid, commit, createdAt, ...markOf(fields) }
    : fail('MALFORMED', { reason: 'tag of an archive' })
}

const RECYCLED = ['branch', 'path', 'oid', 'mode', 'label', 'deletedAt', 'until', 'commit'] as const

/** A file with its mode, or a whole branch, which has neither path nor mode and is named by its head. */
function readRecycled(value: unknown, { hash }: Home): Recycled {
  const fields = fieldsOf(value, RECYCLED, ['outside', 'words', 'agent'])
  const { branch, path, oid, mode, label, deletedAt, until, commit } = fields
  const known = MODES.find((one) => one === mode) ?? null
  const isWhole = path === null && mode === null && commit === oid
  const isFile = typeof path === 'string' && isAllowed(() => validatePath(path)) && known !== null && known !== FOLDER
  const isSound =
    typeof branch === 'string' &&
    isAllowed(() => validateBranch(branch)) &&
    (isWhole || isFile) &&
    typeof label === 'string' &&
    formatLabel(parseLabel(label)) === label &&
    isOidOf(oid, hash) &&
    isOidOf(commit, hash) &&
    isTime(deletedAt) &&
    isTime(until) &&
    isMark(fields)
  if (!isSound) return fail('MALFORMED', { reason: 'recycle area of an archive' })
  return { branch, path: isFile ? path : null, oid, mode: known, label, deletedAt, until, commit, ...markOf(fields) }
}

function readMark(value: unknown): string {
  const { mark } = fieldsOf(value, ['mark'])
  const isSound =
    typeof mark === 'string' && (mark.startsWith('/') ? isAllowed(() => validatePath(mark.slice(1))) : isOid(mark))
  return isSound ? mark : fail('MALFORMED', { reason: 'name of what was forgotten' })
}

/** Whether the name of a branch and words of its commits came from outside, and a session pushed to it: said, or nothing. */
const isMark = ({ outside, words, agent }: Fields): boolean =>
  [outside, words, agent].every((mark) => mark === undefined || mark === true)
const markOf = ({ outside, words, agent }: Fields): Pick<Ref, 'outside' | 'words' | 'agent'> => ({
  ...(outside === true ? { outside } : {}),
  ...(words === true ? { words } : {}),
  ...(agent === true ? { agent } : {}),
})

/** Exactly these members, and those that need not be there. */
function fieldsOf(value: unknown, names: readonly string[], others: readonly string[] = []): Fields {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const told = isObject ? Object.keys(value).filter((name) => !others.includes(name)) : []
  if (!isObject || told.sort().join() !== [...names].sort().join())
    return fail('MALFORMED', { reason: 'members of a line', expected: names })
  return value as Fields
}

/** Ascending by bytes, each once. */
function requireOrder(names: readonly string[]): void {
  const isOrdered = names.every((name, at) => {
    const before = names[at - 1]
    return before === undefined || Buffer.compare(Buffer.from(before), Buffer.from(name)) < 0
  })
  if (!isOrdered) fail('MALFORMED', { reason: 'lines out of order' })
}

function isAllowed(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (isNodeError(error)) return false
    throw error
  }
}

const isOidOf = (value: unknown, hash: HashName): value is string =>
  typeof value === 'string' && isOid(value) && value.length === (hash === 'sha1' ? 40 : 64)
const isDid = (value: unknown): value is string => typeof value === 'string' && publicKeyFromDid(value) !== undefined
const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
