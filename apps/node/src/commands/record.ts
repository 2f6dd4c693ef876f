/** csb record, explain: what was done, by whom, by what right. */
import type { Command } from 'commander'
import { acting } from '../context.ts'
import { t } from '../texts.ts'

type Header = {
  readonly seq: number
  readonly ts: number
  readonly operation: string
  readonly outcome: string
  readonly code: string | null
  readonly actor: string | null
}

type Party = { readonly name: string; readonly did: string }

type Explained = {
  readonly commit: string
  readonly seq: number
  readonly at: number
  readonly operation: string
  readonly actor: { readonly did: string | null; readonly name: string | null }
  readonly run: string | null
  readonly lease: {
    readonly hash: string
    readonly chain: readonly {
      readonly from: Party
      readonly to: Party
      readonly level: string
      readonly revoked: boolean
    }[]
  } | null
  readonly reads: readonly { readonly path: string; readonly oid: string }[] | null
  readonly inclusion: { readonly size: number; readonly root: string }
}

export function recordCommands(program: Command): void {
  program.commandsGroup(t('group.record'))
  const record = program.command('record').description(t('record.about'))
  record
    .command('tail')
    .description(t('record.tail.about'))
    .option('--limit <n>')
    .action(
      acting(async (stand, _args, { limit = 20 }) => {
        const found = await (
          await stand.client()
        ).call<{ items: { header: Header }[] }>('GET', `/v1/record?limit=${String(limit)}`)
        const line = ({ header }: { header: Header }) =>
          `${String(header.seq).padStart(6)}  ${new Date(header.ts).toISOString()}  ${header.operation.padEnd(20)} ${header.outcome}${header.code === null ? '' : ` ${header.code}`}  ${header.actor ?? ''}`
        stand.out.answer(found, found.items.map(line).join('\n'))
      }),
    )
  record
    .command('verify')
    .description(t('record.verify.about'))
    .action(
      acting(async (stand) => {
        const report = await (await stand.client()).call<Record<string, unknown>>('GET', '/v1/record/verify')
        stand.out.answer(report, t('record.verified', report))
      }),
    )
  program
    .command('explain <commit>')
    .description(t('explain.about'))
    .action(
      acting(async (stand, [commit]) => {
        const found = await (await stand.client()).call<Explained>('GET', `/v1/record/explain/${commit}`)
        stand.out.answer(found, explainedText(found))
      }),
    )
}

function explainedText(found: Explained): string {
  const { commit, operation, actor, run, lease, reads, seq, inclusion } = found
  const named = ({ name, did }: Party) => `${name} (…${did.slice(-8)})`
  const chain = (lease?.chain ?? []).map(
    ({ from, to, level, revoked }) =>
      `         ${named(from)} granted ${named(to)}, ${level}${revoked ? ', REVOKED' : ''}`,
  )
  return t('explain.text', {
    commit,
    operation,
    at: new Date(found.at).toISOString(),
    actor: actor.name ?? actor.did,
    run,
    lease: lease?.hash ?? 'none',
    chain: chain.join('\n'),
    reads: (reads ?? []).length === 0 ? 'nothing' : (reads ?? []).map(({ path }) => path).join('\n         '),
    seq,
    size: inclusion.size,
    root: inclusion.root,
  })
}
