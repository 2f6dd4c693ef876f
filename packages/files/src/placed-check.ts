/**
 * A file that is put where neither side of a merge had it, or back from the recycle area: git is told nothing there
 * that harms who clones, and no link leads out of the tree. By itself, elsewhere, it was sound.
 * @clause L0.5
 */
import { LIMITS, fail } from '@csb/core'
import type { View } from '@csb/store'
import { checkGitFile, climbOf, gitFileOf } from './git-files.ts'
import { isErased, objectSize, readBlob } from './objects.ts'
import type { Side } from './tree-diff.ts'
import { LINK, isBlob } from './tree.ts'

/** True where what is put there is looked at; of all other files nothing is read. */
export const isWatched = ({ mode }: Side, path: string): boolean =>
  mode === LINK || gitFileOf(path.slice(path.lastIndexOf('/') + 1)) !== undefined

/** @throws INVALID_INPUT with the reason and the path, TOO_LARGE, OBJECT_DAMAGED */
export function checkPlaced(view: View, home: string, side: Side, path: string): void {
  if (!isWatched(side, path) || (isBlob(side) && isErased(view, home, side.oid))) return
  const own = gitFileOf(path.slice(path.lastIndexOf('/') + 1))
  const isLink = side.mode === LINK
  if (isBlob(side) && objectSize(view, home, side.oid) > LIMITS.gitFileBytes)
    fail('TOO_LARGE', { maxBytes: LIMITS.gitFileBytes, path })
  const bytes = isBlob(side) ? readBlob(view, home, side.oid) : null
  if (isLink && bytes !== null && climbOf(bytes, path) > path.split('/').length - 1)
    fail('INVALID_INPUT', { reason: 'a symbolic link out of the tree', path })
  // a link by the name of attributes is only not read
  if (own === undefined || (isLink && own === 'attributes')) return
  checkGitFile(own, isLink ? null : bytes, path)
}
