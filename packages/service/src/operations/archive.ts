/**
 * L0 operations: a home out as one stream of bytes, and in again. What leaves is everything, so the lease must reach
 * everything; what comes in makes a home here, which is for the owner alone.
 * @clause L0.4
 */
import { EVERY_TAG, dominates, fail, type Lease } from '@csb/core'
import { checkEvidence, evidenceOf } from '@csb/authority'
import { beginExport, importArchive, resumeExport, streamExport, type Export, type Imported } from '@csb/files'
import { exportSources, settleImport } from '@csb/guard'
import type { Transaction } from '@csb/store'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { takeInHome } from '../session/bulk-reads.ts'
import { finishForgetting } from '../gate/forgetting.ts'
import { EVERYTHING, homeOf, locationOf, ruling, type Context, type Operation, type Parts } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

type Out = { readonly home?: string; readonly export?: string; readonly offset?: number }

/** First what the export is, then its bytes, which stay in this process. */
export type ExportEvent =
  | {
      readonly kind: 'begun'
      readonly export: string
      readonly home: string
      /** length of the whole archive */
      readonly bytes: number
      readonly objects: number
      readonly offset: number
    }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }

/** What an import answers: how far it is, and at its end what it brought. */
export type ImportEvent =
  | { readonly kind: 'progress'; readonly objects: number }
  | {
      readonly kind: 'done'
      readonly home: string
      readonly objects: number
      readonly branches: number
      readonly digest: string
    }

export const archiveOperations: readonly Operation[] = [
  {
    name: 'files.export',
    input: 'FilesExport',
    kind: 'stream',
    open: 'lease',
    needs: (input: Out, parts: Parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'read',
      path: '/',
    }),
    run: exportHome,
  },
  { name: 'files.import', input: 'FilesImport', kind: 'session', open: 'owner', needs: ruling, run: importHome },
]

async function* exportHome(context: Context, input: Out): AsyncGenerator<ExportEvent> {
  const { store, clock, principal, key } = context
  const home = homeOf(input, context)
  const sources = exportSources((view, commit) => evidenceOf(view, commit, key))
  requireEverything(context, principal.lease)
  await takeInHome(context, home)
  const { offset = 0 } = input
  // what it is made from may be other than what was there before, and one that goes on is of another day
  const begin = (work: (tx: Transaction) => Promise<Export> | Export) =>
    context.write(
      async (tx) => {
        const made = await work(tx)
        if (offset > made.bytes) fail('INVALID_INPUT', { field: 'offset', bytes: made.bytes })
        await takeInHome(context, home, made)
        return made
      },
      ({ id, bytes }) => ({ home, export: id, bytes, offset }),
    )
  const found = input.export === undefined ? undefined : await resumeExport(store, home, sources, input.export)
  const begun =
    found === undefined
      ? await beginExport(store, home, sources, { now: clock.now(), write: begin })
      : await begin(() => found)
  const { id, bytes, objects } = begun
  yield { kind: 'begun', export: id, home, bytes, objects, offset }
  for await (const part of streamExport(store, begun, sources, offset)) {
    context.signal.throwIfAborted()
    yield { kind: 'bytes', bytes: part }
  }
}

/** @throws SCOPE_EXCEEDED with the field that leaves something out, CLEARANCE */
function requireEverything({ clearance }: Context, lease: Lease | null): void {
  const { branches = [], deny_paths: denied = [] } = lease ?? {}
  if (!branches.includes('*')) fail('SCOPE_EXCEEDED', { field: 'branches', action: 'read' })
  if (denied.length > 0) fail('SCOPE_EXCEEDED', { field: 'deny_paths', action: 'read' })
  if (!dominates(clearance, EVERYTHING)) fail('CLEARANCE', { needed: { level: 'sealed', tags: [EVERY_TAG] } })
}

async function importHome(context: Context, _input: object, port: MessagePort): Promise<void> {
  const { store, clock } = context
  const source = async function* (): AsyncGenerator<Uint8Array> {
    for (let part = await port.receive(); part !== undefined; part = await port.receive()) {
      if (!(part instanceof Uint8Array)) fail('MALFORMED', { reason: 'an archive comes in bytes' })
      yield part
    }
  }
  const done = await importArchive(store, source(), {
    checkEvidence,
    write: (work) => context.write(work, effectOf),
    finish: (tx, home, tombstones) =>
      settleImport(tx, {
        home,
        tombstones,
        author: authorOf(context),
        trailers: trailersOf(context),
        now: clock.now(),
      }),
    onProgress: (objects) => void port.send({ kind: 'progress', objects } satisfies ImportEvent).catch(() => undefined),
  })
  await finishForgetting(store)
  await port.send({ kind: 'done', ...effectOf(done) } satisfies ImportEvent)
  await port.close()
}

const effectOf = ({ home, objects, branches, digest }: Imported) => ({ home: home.id, objects, branches, digest })
