/**
 * The flight recorder's operations: look, verify, prove, explain, and what others vouch for. None changes an entry;
 * one lets a node write again that came back from an old backup.
 */
import {
  checkCheckpoints,
  explainCommit,
  explainRun,
  listContradictions,
  listWitnessed,
  proveInclusion,
  readRecords,
  resumeRecord,
  verifyRecord,
  witnessState,
  writeProof,
} from '@csb/authority'
import { readingAll, ruling, type Context, type Operation } from '../operation.ts'

/** What was done and read is told with its ids and paths, whatever their labels; and how much was done, by its size. */
/** Names and words of whoever asked for something stand there as they came. */
const inRecord = () => 'the record'

export const recordOperations: readonly Operation[] = [
  {
    name: 'record.tail',
    input: 'RecordTail',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    hears: inRecord,
    run: async ({ view }: Context, input: { limit?: number; after?: number }) => ({
      items: await readRecords(view, {
        limit: input.limit ?? 50,
        ...(input.after === undefined ? { reverse: true } : {}),
        ...(input.after === undefined || input.after < 0 ? {} : { after: input.after }),
      }),
    }),
  },
  {
    name: 'record.verify',
    input: 'RecordVerify',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    run: async ({ view }: Context) => {
      const report = await verifyRecord(view)
      checkCheckpoints(view)
      const { log, latest, settled, held } = witnessState(view)
      return { ...report, log, latest, settled, held }
    },
  },
  {
    name: 'record.explain',
    input: 'RecordExplain',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    hears: inRecord,
    run: ({ view }: Context, { commit }: { commit: string }) => explainCommit(view, commit),
  },
  {
    name: 'record.explainRun',
    input: 'RecordExplainRun',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    hears: inRecord,
    run: ({ view }: Context, { run }: { run: string }) => explainRun(view, run),
  },
  {
    name: 'record.prove',
    input: 'RecordProve',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    run: ({ view, key }: Context, input: { seq: number }) => ({
      ...proveInclusion(view, input.seq),
      file: writeProof(view, input.seq, key),
    }),
  },
  {
    name: 'record.checkpoint',
    input: 'RecordCheckpoint',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    run: ({ view }: Context) => witnessState(view),
  },
  {
    name: 'record.witnessed',
    input: 'RecordWitnessed',
    kind: 'read',
    open: 'lease',
    needs: readingAll,
    run: async ({ view }: Context) => ({
      logs: await listWitnessed(view),
      contradictions: await listContradictions(view),
    }),
  },
  {
    name: 'record.resume',
    input: 'RecordResume',
    kind: 'write',
    // the word that ends it
    evenHeld: true,
    open: 'owner',
    needs: ruling,
    run: (context: Context) =>
      context.write(
        (tx) => resumeRecord(tx),
        (resumed) => resumed,
      ),
  },
]
