/** The flight recorder's operations: look, verify, prove, explain. There is none that changes it. */
import { explainCommit, proveInclusion, readRecords, verifyRecord } from '@csb/authority'
import { EVERYTHING, homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'

const reading = (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'read' as const,
})

/** What was done and read is told with its ids and paths, whatever their labels. */
const readingAll = (input: unknown, parts: Parts) => ({ ...reading(input, parts), label: EVERYTHING })

export const recordOperations: readonly Operation[] = [
  {
    name: 'record.tail',
    input: 'RecordTail',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
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
    needs: readingAll,
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
