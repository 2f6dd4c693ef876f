/**
 * What a lease sees of a home through git: all of it as it is, or for a lower clearance the projection of each branch.
 * @clause L0.5 L4.2
 */
import { fail } from '@csb/core'
import { allows } from '@csb/authority'
import { createHistory, listGitRefs, seesEverything } from '@csb/files'
import { projectCommit } from '@csb/guard'
import { locationOf, type Context } from './operation.ts'

export type SeenRef = { readonly name: string; readonly oid: string; readonly peeled?: string }

/**
 * Branches and tags that the lease reaches, at the commits that are seen of them.
 * @throws SCOPE_EXCEEDED where the lease does not reach all paths: a tree is sent whole or not at all
 */
export async function refsSeen(context: Context, home: string): Promise<SeenRef[]> {
  const { store, clearance, principal } = context
  const { lease } = principal
  if (lease === null) return fail('LEASE_REQUIRED', { action: 'read' })
  const location = locationOf(context, home)
  const verdict = allows(lease, { location, action: 'read', path: '/' })
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, action: 'read' })
  if ((lease.deny_paths ?? []).length > 0) fail('SCOPE_EXCEEDED', { field: 'deny_paths', action: 'read' })
  const seen: SeenRef[] = []
  for (const { name, oid, peeled, branch } of await listGitRefs(store.view(), home)) {
    if (!allows(lease, { location, action: 'read', branch }).ok) continue
    if (seesEverything(clearance)) {
      seen.push({ name, oid, ...(peeled === undefined ? {} : { peeled }) })
      continue
    }
    const projected = await projectCommit(store, { home, commit: peeled ?? oid, clearance })
    // a tag names one commit and no other: where that one is not seen as it is, the tag is not either
    if (projected === (peeled ?? oid)) seen.push({ name, oid, ...(peeled === undefined ? {} : { peeled }) })
    else if (projected !== null && peeled === undefined && !name.startsWith('refs/tags/'))
      seen.push({ name, oid: projected })
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
