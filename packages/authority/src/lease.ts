/**
 * The lease: what a run may touch. Three questions only: is this lease within that one, does it allow this
 * request, what is left of two leases together.
 *
 * An absent permission grants nothing; an absent restriction restricts nothing, and may not be dropped by a
 * child whose parent has it. There is no word in the vocabulary for deleting a snapshot or writing a
 * protected branch, so no lease can say it.
 * @clause L1.2
 * @clause L1.4
 */
import {
  EVERY_TAG,
  compareLevels,
  dominates,
  isWithin,
  peerIdFromDid,
  type Clearance,
  type Label,
  type Lease,
  type Level,
} from '@csb/core'

/** A lease allows, or is within another; otherwise the first field that stands against it. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly field: string }

export type LeaseAction = Lease['actions'][number]

/** What a run is about to do. */
export type LeaseRequest = {
  /** see {@link locationOf} */
  readonly location: string
  readonly action: LeaseAction
  /** `/`-rooted canonical path; absent where the action is not about a file */
  readonly path?: string
  /** it is about all that lies below the path too: nothing of that may be denied */
  readonly below?: true
  /** `*` for all branches, also those to come; absent where the action is not about a branch */
  readonly branch?: string
  /** what is read or sent bears this label; what is written will bear it */
  readonly label?: Label
  /** what kind of act it is, where it is one: B touches sensitive data, C changes state or speaks to others */
  readonly capability?: 'B' | 'C'
}

const OK: Verdict = { ok: true }
const no = (field: string): Verdict => ({ ok: false, field })

/** The location of a home at a node, as leases name it. @throws INVALID_INPUT where `did` is no did:key */
export const locationOf = (did: string, home: string): string => `nas://${peerIdFromDid(did)}/${home}`

/** What the holder of a lease may see. Without `labels_max` that is what is public. */
export const clearanceOfLease = (lease: Lease): Clearance => ({
  level: lease.labels_max ?? 'public',
  tags: [...new Set(lease.label_tags)].sort(),
})

/** True for a `/`-rooted path in its one spelling: NFC, no empty, `.` or `..` segment, no backslash or control character. */
export function isCanonicalPath(path: string): boolean {
  if (!path.startsWith('/') || path.includes('\\') || /\p{Cc}/u.test(path)) return false
  if (!path.isWellFormed() || path.normalize('NFC') !== path) return false
  return (
    path === '/' ||
    trimmed(path)
      .slice(1)
      .split('/')
      .every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  )
}

/**
 * The first field of a lease that is not in its one spelling, or undefined.
 * What the schema can not say: canonical paths, well-placed wildcards.
 */
export function misspelledField(lease: Lease): string | undefined {
  if (!(lease.paths ?? []).every(isCanonicalPath)) return 'paths'
  if (!(lease.deny_paths ?? []).every(isCanonicalPath)) return 'deny_paths'
  if (!(lease.branches ?? []).every((branch) => branch === '*' || /^[^*]+(?:\/\*)?$/.test(branch))) return 'branches'
  if (!lease.locations.every((location) => /^nas:\/\/(?:\*\/[^*/]+|[^*/]+\/(?:\*|[^*/]+))$/.test(location)))
    return 'locations'
  return undefined
}

/**
 * Is everything that `child` allows also allowed by `parent`?
 * @clause L1.2
 */
export function isSubset(child: Lease, parent: Lease): Verdict {
  if (!child.locations.every((a) => parent.locations.some((b) => isLocationWithin(a, b)))) return no('locations')
  if (!isSubsetOf(child.actions, parent.actions)) return no('actions')
  if (!(child.paths ?? []).every((a) => (parent.paths ?? []).some((b) => isPathWithin(a, b)))) return no('paths')
  if (!(parent.deny_paths ?? []).every((denied) => keepsDenied(child, denied))) return no('deny_paths')
  if (!(child.branches ?? []).every((a) => (parent.branches ?? []).some((b) => isBranchWithin(a, b))))
    return no('branches')
  if (!isWithin(child.labels_max ?? 'public', parent.labels_max ?? 'public')) return no('labels_max')
  if (!areTagsWithin(child.label_tags ?? [], parent.label_tags ?? [])) return no('label_tags')
  if (!isWithin(parent.label_floor ?? 'public', child.label_floor ?? 'public')) return no('label_floor')
  if (!isSubsetOf(child.capabilities ?? [], parent.capabilities ?? [])) return no('capabilities')
  if (parent.external === 'deny' && child.external !== 'deny') return no('external')
  if (!isSubsetOf(parent.gates ?? [], child.gates ?? [])) return no('gates')
  for (const [unit, most] of budgetOf(parent)) {
    if ((child.budget?.[unit] ?? Number.POSITIVE_INFINITY) > most) return no(`budget.${unit}`)
  }
  if ((child.max_children ?? 0) > (parent.max_children ?? 0)) return no('max_children')
  return OK
}

/**
 * Does the lease allow this request? An action that its gates name takes a person, and no card does it: it is refused.
 * To propose is to ask a person already.
 */
export function allows(lease: Lease, request: LeaseRequest): Verdict {
  if (!lease.locations.some((location) => isLocationWithin(request.location, location))) return no('locations')
  if (!lease.actions.includes(request.action)) return no('actions')
  if (request.action !== 'propose' && lease.gates?.includes(request.action) === true) return no('gates')
  if (request.path !== undefined) {
    const { path } = request
    if (!isCanonicalPath(path) || !(lease.paths ?? []).some((outer) => isPathWithin(path, outer))) return no('paths')
    const isDenied = (denied: string) =>
      isPathWithin(path, denied) || (request.below === true && isPathWithin(denied, path))
    if ((lease.deny_paths ?? []).some(isDenied)) return no('deny_paths')
  }
  if (request.branch !== undefined) {
    const { branch } = request
    if (
      (branch !== '*' && branch.includes('*')) ||
      !(lease.branches ?? []).some((outer) => isBranchWithin(branch, outer))
    )
      return no('branches')
  }
  if (request.label !== undefined) {
    const refused = refusedLabel(lease, request.action, request.label)
    if (refused !== undefined) return no(refused)
  }
  if (request.capability !== undefined && !(lease.capabilities ?? []).includes(request.capability))
    return no('capabilities')
  return OK
}

/**
 * The widest lease that is within both; null where they have no location or no action in common.
 */
export function meet(a: Lease, b: Lease): Lease | null {
  const locations = commonLocations(a.locations, b.locations)
  const actions = a.actions.filter((action) => b.actions.includes(action))
  if (locations.length === 0 || actions.length === 0) return null
  const units = new Set([...budgetOf(a), ...budgetOf(b)].map(([unit]) => unit))
  const budget = Object.fromEntries([...units].map((unit) => [unit, leastOf(a.budget?.[unit], b.budget?.[unit])]))
  const lists = {
    paths: innerOf(a.paths ?? [], b.paths ?? [], isPathWithin),
    deny_paths: unionOf(a.deny_paths, b.deny_paths),
    branches: innerOf(a.branches ?? [], b.branches ?? [], isBranchWithin),
    label_tags: commonTags(a.label_tags ?? [], b.label_tags ?? []),
    capabilities: (a.capabilities ?? []).filter((capability) => b.capabilities?.includes(capability)),
    gates: unionOf(a.gates, b.gates),
  }
  return {
    type: 'urn:csb:lease:1',
    locations,
    actions,
    ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)),
    labels_max: lower(a.labels_max ?? 'public', b.labels_max ?? 'public'),
    label_floor: higher(a.label_floor ?? 'public', b.label_floor ?? 'public'),
    external: a.external === 'deny' || b.external === 'deny' ? 'deny' : 'taint',
    ...(units.size > 0 ? { budget } : {}),
    max_children: Math.min(a.max_children ?? 0, b.max_children ?? 0),
  }
}

/** By whole segments: `/notes2` is not within `/notes`. */
function isPathWithin(inner: string, outer: string): boolean {
  const a = trimmed(inner)
  const b = trimmed(outer)
  return a === b || a.startsWith(b === '/' ? b : `${b}/`)
}

const trimmed = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** A branch or pattern within a pattern: `runs/*` holds `runs/7` and `runs/7/*`, neither `runs` nor `runs7`; `*` holds all. */
function isBranchWithin(inner: string, outer: string): boolean {
  if (outer === '*' || inner === outer) return true
  return outer.endsWith('/*') && inner !== '*' && inner.startsWith(outer.slice(0, -1)) && inner.length >= outer.length
}

/**
 * `nas://<peer>/<home>` is within itself, within `nas://*` followed by the same home, and within `nas://<peer>/*`,
 * which is every home kept at that node. Both at once can not be said.
 */
function isLocationWithin(inner: string, outer: string): boolean {
  if (inner === outer) return true
  if (outer.startsWith('nas://*/'))
    return inner.slice(inner.indexOf('/', 'nas://'.length)) === outer.slice('nas://*'.length)
  return outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1))
}

/** Besides the inner ones: one home at any node and any home at one node have that home at that node in common. */
function commonLocations(left: readonly string[], right: readonly string[]): string[] {
  const found = new Set(innerOf(left, right, isLocationWithin))
  for (const anywhere of [...left, ...right].filter((location) => location.startsWith('nas://*/'))) {
    for (const any of (left.includes(anywhere) ? right : left).filter((location) => location.endsWith('/*'))) {
      found.add(`${any.slice(0, -1)}${anywhere.slice('nas://*/'.length)}`)
    }
  }
  return [...found]
}

/** Tags of a clearance; `*` holds every tag. */
const areTagsWithin = (inner: readonly string[], outer: readonly string[]): boolean =>
  outer.includes(EVERY_TAG) || isSubsetOf(inner, outer)

function commonTags(a: readonly string[], b: readonly string[]): string[] {
  if (a.includes(EVERY_TAG)) return [...b]
  return b.includes(EVERY_TAG) ? [...a] : a.filter((tag) => b.includes(tag))
}

/** A parent's exclusion survives in the child, or does not touch anything the child may reach. */
function keepsDenied(child: Lease, denied: string): boolean {
  if ((child.deny_paths ?? []).some((own) => isPathWithin(denied, own))) return true
  return !(child.paths ?? []).some((path) => isPathWithin(denied, path) || isPathWithin(path, denied))
}

/** Reading needs the clearance; writing only has to keep the floor, since writing upwards discloses nothing. */
function refusedLabel(lease: Lease, action: LeaseAction, label: Label): string | undefined {
  if (action === 'write' || action === 'propose') {
    return isWithin(lease.label_floor ?? 'public', label.level) ? undefined : 'label_floor'
  }
  const clearance = clearanceOfLease(lease)
  if (!isWithin(label.level, clearance.level)) return 'labels_max'
  return dominates(clearance, label) ? undefined : 'label_tags'
}

type Unit = keyof NonNullable<Lease['budget']>

const budgetOf = (lease: Lease) => Object.entries(lease.budget ?? {}) as [Unit, number][]
const leastOf = (a?: number, b?: number): number =>
  Math.min(a ?? Number.POSITIVE_INFINITY, b ?? Number.POSITIVE_INFINITY)
const isSubsetOf = (inner: readonly string[], outer: readonly string[]): boolean =>
  inner.every((item) => outer.includes(item))
const unionOf = (a: readonly string[] = [], b: readonly string[] = []): string[] => [...new Set([...a, ...b])]
const lower = (a: Level, b: Level): Level => (compareLevels(a, b) <= 0 ? a : b)
const higher = (a: Level, b: Level): Level => (compareLevels(a, b) >= 0 ? a : b)

/** Of each pair where one holds the other, the inner one. */
function innerOf(
  left: readonly string[],
  right: readonly string[],
  isInside: (a: string, b: string) => boolean,
): string[] {
  const found = new Set<string>()
  for (const a of left) {
    for (const b of right) {
      if (isInside(a, b)) found.add(a)
      else if (isInside(b, a)) found.add(b)
    }
  }
  return [...found]
}
