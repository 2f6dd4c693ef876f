/** csb record, explain: what was done, by whom, by what right. */
import type { Command } from 'commander'
import { acting, countOf, named, route } from '../context.ts'
import { inline } from '../terminal.ts'
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
  readonly approval: {
    readonly card: string
    readonly approver: { readonly name: string | null; readonly did: string }
    readonly decidedAt: number
  } | null
  readonly reads: readonly { readonly path: string; readonly oid: string }[] | null
  readonly inclusion: { readonly size: number; readonly root: string }
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
        out.answer(found, found.items.map(({ header }) => lineOf(header)).join('\n'))
      }),
    )
  record
    .command('verify')
    .description(t('record.verify.about'))
    .action(
      acting(async ({ client, out }) => {
        const node = await client()
        const asked = node.call<Record<string, unknown>>('GET', '/v1/record/verify')
        const report = await out.during(t('record.verify.progress'), asked)
        out.answer(report, t('record.verified', report))
      }),
    )
  program
    .command('explain <commit>')
    .description(t('explain.about'))
    .action(
      acting<object, [string]>(async ({ client, out }, [commit]) => {
        const found = await (await client()).call<Explained>('GET', route(['v1', 'record', 'explain', commit]))
        out.answer(found, explainedText(found))
      }),
    )
}

function lineOf({ seq, ts, operation, outcome, code, actor }: Header): string {
  const result = code === null ? outcome : `${outcome} ${code}`
  return `${String(seq).padStart(6)}  ${new Date(ts).toISOString()}  ${operation.padEnd(20)} ${result}  ${actor ?? ''}`
}

function explainedText(found: Explained): string {
  const { commit, operation, actor, run, lease, seq, inclusion } = found
  const chain = (lease?.chain ?? []).map(({ from, to, level, revoked }) => {
    const granted = t('explain.granted', { from: named(from.name, from.did), to: named(to.name, to.did), level })
    return `         ${granted}${revoked ? t('grants.revoked') : ''}`
  })
  const reads = (found.reads ?? []).map(({ path }) => inline(path))
  return t('explain.text', {
    commit,
    operation,
    at: new Date(found.at).toISOString(),
    actor: actor.name === null ? actor.did : inline(actor.name),
    run,
    lease: lease?.hash ?? t('explain.no-lease'),
    chain: [...chain, ...approvalOf(found)].join('\n'),
    reads: reads.length === 0 ? t('explain.nothing') : reads.join('\n         '),
    seq,
    size: inclusion.size,
    root: inclusion.root,
  })
}

function approvalOf({ approval }: Explained): string[] {
  if (approval === null) return []
  const { card, approver, decidedAt } = approval
  const by = named(approver.name ?? '', approver.did).trim()
  return [t('explain.approval', { by, at: new Date(decidedAt).toISOString(), card: inline(card) })]
}
