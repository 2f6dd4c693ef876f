/** The flight recorder's operations: look, verify, prove, explain. There is none that changes it. */
import { explainCommit, proveInclusion, readRecords, verifyRecord } from '@csb/authority'
import { locationOf, type Context, type Operation, type Parts } from '../operation.ts'

const reading = (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, parts.identity.home ?? ''),
  action: 'read' as const,
})

export const recordOperations: readonly Operation[] = [
  {
    name: 'record.tail',
    input: 'RecordTail',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: async ({ view }: Context, input: { limit?: number; after?: number }) => ({
      items: await readRecords(view, {
        limit: input.limit ?? 50,
        ...(input.after === undefined ? { reverse: true } : { after: input.after }),
      }),
    }),
  },
  {
    name: 'record.verify',
    input: 'RecordVerify',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: ({ view }: Context) => verifyRecord(view),
  },
  {
    name: 'record.explain',
    input: 'RecordExplain',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: ({ view }: Context, input: { commit: string }) => explainCommit(view, input.commit),
  },
  {
    name: 'record.prove',
    input: 'RecordProve',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: ({ view }: Context, input: { seq: number }) => proveInclusion(view, input.seq),
  },
]
