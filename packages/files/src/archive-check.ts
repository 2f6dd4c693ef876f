/**
 * Whether the objects of an archive fit together: each hashes to its id, is read as git reads it, and needs nothing
 * that did not come before it. Whoever says so holds one number for each object.
 * @clause L0.4
 */
import { LIMITS, fail, isNodeError } from '@csb/core'
import { packOid } from './archive-walk.ts'
import { decodeCommit } from './commit.ts'
import { CODES, type ObjectKind } from './entry.ts'
import { oidOf, type HashName } from './objects.ts'
import { checkGitFile, climbOf, gitFileOf } from './git-files.ts'
import { FOLDER, LINK, SUBMODULE, decodeTree, isBlob, type TreeEntry } from './tree.ts'

export type ObjectCheck = {
  /** @throws MALFORMED where it is here already, was forgotten, or there are too many */
  announce(kind: ObjectKind, oid: string): void
  /** A whole small object. @throws MALFORMED */
  check(kind: ObjectKind, oid: string, body: Uint8Array): void
  /** A blob that was hashed on its way. */
  add(oid: string): void
  hasCommit(oid: string): boolean
  hasBlob(oid: string): boolean
  readonly count: number
}

const BLOB = -1
const COMMIT = -2
const TAG = -3
const TAGGED = /^object ([0-9a-f]+)\ntype (commit|tag)\n/

/** The kinds of object that an archive holds. @throws MALFORMED */
export function kindOfByte(byte: number | undefined): ObjectKind {
  const kind = (['blob', 'tree', 'commit', 'tag'] as const).find((known) => CODES[known] === byte)
  return kind ?? fail('MALFORMED', { reason: 'kind of an object' })
}

/**
 * @param forgotten ids of blobs that must not come, and need not
 * @param bodyOf the bytes of a blob that came
 */
export function createObjectCheck(
  hash: HashName,
  forgotten: ReadonlySet<string>,
  bodyOf: (oid: string) => Uint8Array,
): ObjectCheck {
  /** what it is; of a folder the length of the longest path in it */
  const known = new Map<string, number>()
  const find = (oid: string): number | undefined => known.get(packOid(oid))
  const keep = (oid: string, what: number): void => {
    known.set(packOid(oid), what)
  }

  const pathBelow = ({ mode, name, oid }: TreeEntry): number => {
    if (mode === SUBMODULE) return name.length
    const found = find(oid)
    if (mode !== FOLDER) {
      if (found !== BLOB && !(found === undefined && forgotten.has(oid)))
        return fail('MALFORMED', { reason: 'a file whose bytes did not come', oid })
      return name.length
    }
    if (found === undefined || found < 0) return fail('MALFORMED', { reason: 'a folder that did not come', oid })
    return name.length + 1 + found
  }

  /** of a folder with links that climb out of it: by how much */
  const climbs = new Map<string, number>()
  const climbIn = ({ mode, name, oid }: TreeEntry): number => {
    if (mode === FOLDER) return Math.max(0, (climbs.get(packOid(oid)) ?? 0) - 1)
    return mode === LINK && !forgotten.has(oid) ? climbOf(bodyOf(oid), name) : 0
  }
  /** What git reads by itself is looked at as a push does. */
  const checkOwn = (entry: TreeEntry): void => {
    const own = gitFileOf(entry.name)
    if (own === undefined || (isBlob(entry) && forgotten.has(entry.oid))) return
    const isPlain = isBlob(entry) && entry.mode !== LINK
    if (isPlain || own === 'modules' || !isBlob(entry))
      checkGitFile(own, isPlain ? bodyOf(entry.oid) : null, entry.name)
  }

  const checkTree = (body: Uint8Array, oid: string): void => {
    const entries = decodeTree(body, oid.length / 2)
    const longest = Math.max(0, ...entries.map(pathBelow))
    const climb = orMalformed(oid, () => {
      for (const entry of entries) checkOwn(entry)
      return Math.max(0, ...entries.map(climbIn))
    })
    if (climb > 0) climbs.set(packOid(oid), climb)
    if (longest > LIMITS.pathChars) fail('MALFORMED', { reason: 'path too long', maxChars: LIMITS.pathChars })
    keep(oid, longest)
  }

  const checkCommit = (body: Uint8Array, oid: string): void => {
    const { tree, parents } = decodeCommit(body)
    if ((find(tree) ?? BLOB) < 0) fail('MALFORMED', { reason: 'a commit whose tree did not come', oid })
    if (climbs.has(packOid(tree))) fail('MALFORMED', { reason: 'a symbolic link out of the tree', oid })
    if (parents.some((parent) => find(parent) !== COMMIT))
      fail('MALFORMED', { reason: 'a commit whose parents did not come', oid })
    keep(oid, COMMIT)
  }

  const checkTag = (body: Uint8Array, oid: string): void => {
    const [, target = '', kind] = TAGGED.exec(Buffer.from(body).toString('latin1', 0, 128)) ?? []
    if (find(target) !== (kind === 'tag' ? TAG : COMMIT))
      fail('MALFORMED', { reason: 'a tag of what did not come', oid })
    keep(oid, TAG)
  }

  return {
    announce: (kind, oid) => {
      if (known.size >= LIMITS.archiveObjects) fail('TOO_LARGE', { maxObjects: LIMITS.archiveObjects })
      if (find(oid) !== undefined) fail('MALFORMED', { reason: 'an object comes twice', oid })
      if (kind === 'blob' && forgotten.has(oid)) fail('MALFORMED', { reason: 'bytes that were forgotten', oid })
    },
    check: (kind, oid, body) => {
      if (oidOf(hash, kind, body) !== oid) fail('MALFORMED', { reason: 'an object that is not what its id says', oid })
      if (kind === 'tree') checkTree(body, oid)
      else if (kind === 'commit') checkCommit(body, oid)
      else if (kind === 'tag') checkTag(body, oid)
      else keep(oid, BLOB)
    },
    add: (oid) => keep(oid, BLOB),
    hasCommit: (oid) => find(oid) === COMMIT,
    hasBlob: (oid) => find(oid) === BLOB,
    get count() {
      return known.size
    },
  }
}

/** What a push would refuse is nothing an archive may hold. */
function orMalformed<T>(tree: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!isNodeError(error, 'INVALID_INPUT')) throw error
    return fail('MALFORMED', { ...error.details, tree }, error)
  }
}
