/**
 * How far a reader sees: labels up to a clearance, and of the tree only certain paths. What lies beyond the paths is
 * hidden as what lies above the clearance is.
 * @clause L1.2 L4.2
 */
import { EVERY_TAG, canonicalize, dominates, sha256Hex, type Clearance, type Label } from '@csb/core'

/** Paths are those of a tree, without a slash before them; an empty one is the root. */
export type Sight = Clearance & {
  /** files and folders that are seen with all below; omitted: all */
  readonly paths?: readonly string[]
  /** what of these is not */
  readonly denied?: readonly string[]
}

const EVERYTHING: Label = { level: 'sealed', integrity: 'owner', tags: [EVERY_TAG] }

/** True where nothing is hidden from a reader. */
export const seesEverything = (sight: Sight): boolean => isEverywhere(sight) && dominates(sight, EVERYTHING)

/** True where no path is beyond the reader. */
export const isEverywhere = ({ paths, denied = [] }: Sight): boolean =>
  (paths === undefined || paths.includes('')) && denied.length === 0

/** True where the reader gets as far as that path and all below it that is not denied. */
export const reachesPath = ({ paths, denied = [] }: Sight, path: string): boolean =>
  (paths === undefined || paths.some((outer) => isWithin(path, outer))) &&
  !denied.some((outer) => isWithin(path, outer))

/** The same for a folder on the way to something that is reached. */
export const leadsOn = (sight: Sight, folder: string): boolean =>
  reachesPath(sight, folder) ||
  ((sight.paths ?? []).some((path) => isWithin(path, folder)) &&
    !(sight.denied ?? []).some((outer) => isWithin(folder, outer)))

/** Readers who see alike have one key, whatever the order in which their bounds are told. */
export function keyOfSight(sight: Sight): string {
  const sorted = (names: readonly string[]) => [...new Set(names)].sort()
  const { level, paths, denied = [] } = sight
  const bounds = isEverywhere(sight)
    ? {}
    : { paths: paths === undefined ? null : sorted(paths), denied: sorted(denied) }
  return sha256Hex(canonicalize({ level, tags: sorted(sight.tags), ...bounds })).slice(0, 32)
}

const isWithin = (path: string, outer: string): boolean =>
  outer === '' || path === outer || path.startsWith(`${outer}/`)
