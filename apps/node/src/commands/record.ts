/** csb record: what was done, proofs of it for others, and what others vouch for. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import type { Command } from 'commander'
import { fail } from '@csb/core'
import { exportRecord, readProof, type Client } from '@csb/node'
import { acting, countOf, fromCaller, named, route, type Stand } from '../context.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'
import { vouchedText, type Vouching } from '../vouched.ts'
import { explainCommand } from './explain.ts'

type Header = {
  readonly seq: number
  readonly ts: number
  readonly operation: string
  readonly outcome: string
  readonly code: string | null
  readonly actor: string | null
}

type Witnessed = {
  readonly logs: readonly {
    readonly origin: string
    readonly size: number
    readonly at: number
    readonly shorter: { readonly size: number; readonly at: number } | null
  }[]
  readonly contradictions: readonly {
    readonly kind: string
    readonly origin: string
    readonly first: string
    readonly second: string
    readonly at: number
  }[]
}

type Resumed = {
  readonly log: number
  readonly from: number
  readonly after: { readonly origin: string; readonly size: number }
}

export function recordCommands(program: Command): void {
  const record = program.command('record').description(t('record.about'))
  record
    .command('tail')
    .description(t('record.tail.about'))
    .option('--limit <n>', t('option.limit'), countOf)
    .action(
      acting<{ limit?: number }>(async ({ client, out }, _args, { limit = 20 }) => {
        const node = await client()
        const found = await node.call<{ items: { header: Header }[] }>('GET', route(['v1', 'record'], { limit }))
        const names = await namesFor(node)
        out.answer(found, found.items.map(({ header }) => lineOf(header, names)).join('\n'))
      }),
    )
  record
    .command('verify')
    .description(t('record.verify.about'))
    .option('--proof <file>', t('record.verify.proof'))
    .option('--log <did>', t('record.verify.log'))
    .action(
      acting<{ proof?: string; log?: string }>((stand, _args, { proof, log }) =>
        proof === undefined ? verify(stand) : verifyFile(stand, fromCaller(proof), log),
      ),
    )
  record
    .command('prove <seq>')
    .description(t('record.prove.about'))
    .option('-o, --out <file>', t('record.prove.out'))
    .action(acting<{ out?: string }, [string]>((stand, [seq], { out }) => prove(stand, countOf(seq), out)))
  record
    .command('export')
    .description(t('record.export.about'))
    .option('-o, --out <file>', t('record.export.out'))
    .action(acting<{ out?: string }>((stand, _args, { out }) => exportAll(stand, out)))
  record.command('witnessed').description(t('record.witnessed.about')).action(acting(witnessed))
  record
    .command('resume')
    .description(t('record.resume.about'))
    .option('--after-restore', t('record.resume.after'))
    .action(
      acting<{ afterRestore?: boolean }>(async ({ client, out }, _args, { afterRestore }) => {
        if (afterRestore !== true) fail('INVALID_INPUT', { problem: t('record.resume.must') })
        const done = await (await client()).call<Resumed>('POST', '/v1/record/resume', { after_restore: true })
        out.answer(done, t('record.resume.done', { ...done, ...done.after }))
      }),
    )
  explainCommand(program)
}

async function verify({ client, out }: Stand): Promise<void> {
  const node = await client()
  const asked = node.call<Vouching & { root: string }>('GET', '/v1/record/verify')
  const report = await out.during(t('record.verify.progress'), asked)
  out.answer(report, t('record.verified', { ...report, vouched: vouchedText(report) }))
}

/** Needs no node and no network: what is believed is the did of the log, and those of the witnesses one knows. */
async function verifyFile({ out }: Stand, file: string, log: string | undefined): Promise<void> {
  const proved = await readProof(file)
  const { header, checkpoint } = proved
  if (log !== undefined && checkpoint.log.did !== log)
    fail('GRANT_INVALID', { reason: t('record.other-log'), log: checkpoint.log.did })
  const cosigned = checkpoint.cosignatures.map(({ did, at }) => `${new Date(at).toISOString()}  ${did}`)
  out.answer(
    proved,
    t('record.proved', {
      ...header,
      operation: inline(header.operation),
      at: new Date(header.ts).toISOString(),
      actor: inline(header.actor ?? ''),
      size: checkpoint.size,
      root: checkpoint.root,
      log: checkpoint.log.did,
      cosigned: cosigned.length === 0 ? t('record.unvouched') : cosigned.join('\n            '),
    }),
  )
}

async function prove({ client, out, isJson }: Stand, seq: number, to: string | undefined): Promise<void> {
  const proof = await (await client()).call<{ file: string }>('GET', route(['v1', 'record', 'prove', String(seq)]))
  if (to === undefined) {
    if (isJson) out.answer(proof, '')
    else process.stdout.write(proof.file)
    return
  }
  const file = fromCaller(to)
  await writeFile(file, proof.file)
  out.answer({ ...proof, written: file }, t('record.prove.done', { file }))
}

async function exportAll({ client, out }: Stand, to: string | undefined): Promise<void> {
  const node = await client()
  const file = to === undefined ? undefined : fromCaller(to)
  const stream = file === undefined ? process.stdout : createWriteStream(file, { flags: 'wx' })
  let lines = 0
  for await (const line of exportRecord(node)) {
    if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, 'drain')
    if (++lines % 1000 === 0) out.progress(`${t('record.export.progress')} ${lines}`)
  }
  if (file === undefined) return
  stream.end()
  await finished(stream)
  // the last line is the checkpoint
  out.answer({ file, entries: lines - 1 }, t('record.export.done', { file, entries: lines - 1 }))
}

async function witnessed({ client, out }: Stand): Promise<void> {
  const node = await client()
  const found = await node.call<Witnessed>('GET', '/v1/record/witnessed')
  const own = await node.call<Vouching>('GET', '/v1/record/checkpoint')
  const lines = [
    ...(own.held === null ? [] : [t('record.own.held', own.held)]),
    ...found.contradictions.map((one) => t('record.witnessed.contradiction', { ...one, at: timeOf(one.at) })),
    ...found.logs.map(({ origin, size, at, shorter }) => {
      const words = shorter === null ? '' : t('record.witnessed.shorter', { ...shorter, at: timeOf(shorter.at) })
      return t('record.witnessed.log', { origin, size, at: timeOf(at), shorter: words })
    }),
  ]
  out.answer({ ...found, own }, lines.length === 0 ? t('record.witnessed.none') : lines.join('\n'))
}

const timeOf = (ms: number): string => new Date(ms).toISOString()

type Party = { readonly name: string; readonly did: string }

/** Names that this node itself gives: its own, its owner's, and those its owner wrote down. */
async function namesFor(node: Client): Promise<ReadonlyMap<string, string>> {
  const { name, did, owner } = await node.call<Party & { readonly owner?: Party }>('GET', route(['v1', 'status']))
  const { items } = await node.call<{ items: readonly Party[] }>('GET', route(['v1', 'trust']))
  const parties = [{ name, did }, ...(owner === undefined ? [] : [owner]), ...items]
  return new Map(parties.map((party) => [party.did, party.name]))
}

function lineOf({ seq, ts, operation, outcome, code, actor }: Header, names: ReadonlyMap<string, string>): string {
  const result = code === null ? outcome : `${outcome} ${code}`
  return `${String(seq).padStart(6)}  ${timeOf(ts)}  ${operation.padEnd(20)} ${result}  ${whoIs(actor, names)}`
}

function whoIs(actor: string | null, names: ReadonlyMap<string, string>): string {
  if (actor === null) return ''
  return actor.startsWith('did:') ? named(names.get(actor) ?? t('peer.unnamed'), actor) : inline(actor)
}
