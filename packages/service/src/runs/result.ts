/**
 * What an agent writes lands on its own branch; what its lease does not reach is refused and told.
 * @clause L0.1, L1.2
 */
import { fail, joinLabels, utf8, type Label } from '@csb/core'
import type { AgentResult } from '@csb/agents'
import { allows, charge } from '@csb/authority'
import { commitFiles, validatePath } from '@csb/files'
import type { Transaction } from '@csb/store'
import { locationOf, type Context } from '../operation.ts'
import { trailersOf } from '../session/authorship.ts'
import { leastLabel } from '../session/taint.ts'
import { runBranch } from './lease.ts'

const PRIVATE: Label = { level: 'private', integrity: 'agent', tags: [] }

/** Commit an agent's files to its branch: those the lease reaches, or none. @throws SCOPE_EXCEEDED */
export function commitResult(tx: Transaction, context: Context, task: string, files: AgentResult['files']) {
  const { principal, clock, identity } = context
  if (files === undefined || files.length === 0) return undefined
  context.runs.active.get(task)?.checkWriting()
  const home = identity.home ?? fail('SCOPE_EXCEEDED', { field: 'locations', reason: 'this node has no home' })
  const branch = runBranch(task)
  for (const { path } of files) {
    const request = {
      location: locationOf(context, home),
      action: 'write' as const,
      path: `/${validatePath(path)}`,
      branch,
    }
    const verdict = principal.lease === null ? { ok: false as const, field: 'lease' } : allows(principal.lease, request)
    if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, path, branch })
  }
  const bytes = files.reduce((sum, { text }) => sum + utf8(text).byteLength, 0)
  if (principal.leaseHash !== null) charge(tx, principal.leaseHash, { bytes_written: bytes })
  const done = commitFiles(tx, {
    home,
    branch,
    changes: files.map(({ path, text }) => ({ path, bytes: utf8(text) })),
    // derived from what the run read, by an agent
    labels: files.map(({ path }) => ({
      path,
      label: joinLabels([PRIVATE, leastLabel(context, tx), ...context.reads().map(({ label }) => label)]),
    })),
    author: { name: principal.name, did: principal.did ?? context.key.did },
    message: `work of ${principal.name}`,
    trailers: trailersOf(context),
    now: clock.now(),
  })
  return { home, branch, commit: done.commit }
}
