/**
 * What a lease sees of a home through git: all of it as it is, or for a lower clearance or some paths the projection of
 * each branch.
 * @clause L0.5 L1.2 L4.2
 */
import { fail } from '@csb/core'
import { allows } from '@csb/authority'
import { createHistory, listGitRefs, seesEverything, type Sight } from '@csb/files'
import { projectCommit } from '@csb/guard'
import { namesOpen } from './names.ts'
import { locationOf, type Context } from '../operation.ts'

/** `branch`: how a lease names it. */
export type SeenRef = {
  readonly name: string
  readonly branch: string
  readonly oid: string
  readonly peeled?: string
  /** its name was given by a session that had read from outside */
  readonly outside?: true
  /** commits behind it were made by a session that had read from outside */
  readonly words?: true
}

/** How far the lease sees: labels, and of every tree the paths it names. */
export function sightOf({ clearance, principal: { lease } }: Pick<Context, 'clearance' | 'principal'>): Sight {
  const { paths = [], deny_paths: denied = [] } = lease ?? {}
  const inTree = (path: string): string => path.replace(/^\//, '').replace(/\/$/, '')
  return { ...clearance, paths: paths.map(inTree), denied: denied.map(inTree) }
}

/**
 * Branches and tags that the lease reaches, at the commits that are seen of them.
 * @throws LEASE_REQUIRED, SCOPE_EXCEEDED where the lease does not reach the home or names no path
 */
export async function refsSeen(context: Context, home: string): Promise<SeenRef[]> {
  const { store, principal } = context
  const { lease } = principal
  if (lease === null) return fail('LEASE_REQUIRED', { action: 'read' })
  const location = locationOf(context, home)
  const verdict = allows(lease, { location, action: 'read' })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, action: 'read' })
  const sight = sightOf(context)
  if (sight.paths?.length === 0) fail('SCOPE_EXCEEDED', { field: 'paths', action: 'read' })
  const seen: SeenRef[] = []
  const all = await listGitRefs(store.view(), home)
  const reached = all.filter(({ branch }) => allows(lease, { location, action: 'read', branch }).ok)
  for (const ref of namesOpen(context, home, reached)) {
    const { oid, peeled, name } = ref
    if (seesEverything(sight)) {
      seen.push(ref)
      continue
    }
    const projected = await projectCommit(store, { home, commit: peeled ?? oid, clearance: sight })
    // a tag names one commit and no other: where that one is not seen as it is, the tag is not either
    if (projected === (peeled ?? oid)) seen.push(ref)
    else if (projected !== null && peeled === undefined && !name.startsWith('refs/tags/'))
      seen.push({ ...ref, oid: projected })
  }
  return seen
}

/**
 * Refuse what the lease does not see: a want is a name it was shown, or lies behind one.
 * @throws NOT_FOUND
 */
export function checkWants(context: Context, home: string, wants: readonly string[], refs: readonly SeenRef[]): void {
  const tips = new Set(refs.flatMap(({ oid, peeled }) => [oid, peeled ?? oid]))
  const others = wants.filter((want) => !tips.has(want))
  if (others.length === 0) return
  const heads = refs.map(({ oid, peeled }) => peeled ?? oid)
  const isBehind = createHistory(context.store.view(), home, heads)
  const missing = others.find((want) => !isBehind(want))
  if (missing !== undefined) fail('NOT_FOUND', { home, oid: missing })
}
