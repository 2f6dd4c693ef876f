/** Who a commit names: the principal as author, and in trailers the run and the lease, so that a bare clone explains itself. */
import type { Context } from '../operation.ts'

export const authorOf = ({ principal, key }: Pick<Context, 'principal' | 'key'>): { name: string; did: string } => ({
  name: principal.name,
  did: principal.did ?? key.did,
})

export const trailersOf = ({ principal, run }: Pick<Context, 'principal' | 'run'>): Record<string, string> => ({
  'Csb-Run': run,
  ...(principal.leaseHash === null ? {} : { 'Csb-Lease': principal.leaseHash }),
})
