/**
 * csb explain: by what right a commit was made. In a clone of a home it takes whatever git takes for a commit, and
 * where the node does not know that commit, it asks for the run that the commit names in its trailer. Anywhere it takes
 * the id of that run, for a commit of a clone that shows a part has an id that only that clone knows.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { fail, formatLabel, isNodeError, type Label } from '@csb/core'
import { callerDirectory, type Client } from '@csb/node'
import { acting, named, route } from '../context.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'
import { settledText, type Settled } from '../vouched.ts'

type Party = { readonly name: string; readonly did: string }

type Chain = {
  readonly hash: string
  readonly chain: readonly {
    readonly id: string
    readonly from: Party
    readonly to: Party
    readonly level: string
    readonly revoked: boolean
  }[]
}

type Explained = {
  readonly commit: string | null
  readonly seq: number
  readonly at: number
  readonly operation: string
  readonly actor: { readonly did: string | null; readonly name: string | null }
  readonly run: string | null
  readonly lease: Chain | null
  readonly basis: Chain | null
  readonly approval: {
    readonly card: string
    readonly approver: { readonly name: string | null; readonly did: string }
    readonly decidedAt: number
  } | null
  readonly readCount: number
  readonly reads: readonly { readonly path: string; readonly oid: string; readonly label: Label }[] | null
  readonly imported: {
    readonly home: string
    readonly node: { readonly did: string; readonly name: string | null }
    readonly signed: boolean
  } | null
  readonly inclusion: { readonly size: number; readonly root: string } | null
  readonly settled: Settled | null
}

const run = promisify(execFile)
/** Of a run or a task; no commit has such an id. */
const RUN_ID = /^[a-z]+_[0-9]{13}_[0-9A-Za-z]{1,64}$/
const GIT_MS = 10_000
const SHOWN_READS = 40

export function explainCommand(program: Command): void {
  program
    .command('explain <commit|run>')
    .description(t('explain.about'))
    .action(
      acting<object, [string]>(async ({ client, out }, [asked]) => {
        const { found, isByRun } = await explain(await client(), asked)
        if (isByRun) out.notice(t('explain.by-run'))
        out.answer(found, explainedText(found))
      }),
    )
}

type Found = { readonly found: Explained; /** of a commit that the node does not know */ readonly isByRun: boolean }

/** By a run where one is named, else by a commit. @throws NOT_FOUND with a reason that tells what else can be asked */
async function explain(client: Client, asked: string): Promise<Found> {
  try {
    if (!RUN_ID.test(asked)) return await explainCommit(client, asked)
    return { found: await explainRun(client, asked), isByRun: false }
  } catch (error) {
    if (!isNodeError(error, 'NOT_FOUND')) throw error
    return fail('NOT_FOUND', { ...error.details, reason: 'not_explained' }, error)
  }
}

const explainRun = (client: Client, id: string) => client.call<Explained>('GET', route(['v1', 'record', 'runs', id]))

/** First by what was typed, then by what git in this folder makes of it, then by the run its commit names. */
async function explainCommit(client: Client, commit: string): Promise<Found> {
  const byCommit = (oid: string) => client.call<Explained>('GET', route(['v1', 'record', 'explain', oid]))
  try {
    return { found: await byCommit(commit), isByRun: false }
  } catch (error) {
    if (!isNodeError(error, 'NOT_FOUND') && !isNodeError(error, 'INVALID_INPUT')) throw error
    const local = await commitHere(commit)
    if (local === undefined) throw error
    try {
      return { found: await byCommit(local.oid), isByRun: false }
    } catch (late) {
      if (!isNodeError(late, 'NOT_FOUND') || local.run === '') throw late
      return { found: await explainRun(client, local.run), isByRun: true }
    }
  }
}

/** Undefined where this folder is no clone, or has no such commit. */
async function commitHere(commit: string): Promise<{ oid: string; run: string } | undefined> {
  // what begins with a dash would be an option
  if (commit.startsWith('-')) return undefined
  const format = '--format=%H %(trailers:key=Csb-Run,valueonly,separator=%x2C)'
  try {
    const { stdout } = await run('git', ['log', '-1', format, commit, '--'], {
      cwd: callerDirectory(),
      timeout: GIT_MS,
    })
    const [oid = '', trailer = ''] = stdout.trim().split(' ')
    return { oid, run: trailer.split(',').at(-1) ?? '' }
  } catch {
    return undefined
  }
}

function explainedText(found: Explained): string {
  const { commit, operation, actor, run: runId, lease, basis, seq, inclusion, settled } = found
  return t('explain.text', {
    commit: commit ?? t('explain.no-commit'),
    operation,
    at: new Date(found.at).toISOString(),
    actor: actor.name === null ? actor.did : inline(actor.name),
    run: runId,
    lease: lease?.hash ?? t('explain.no-lease'),
    chain: [...chainText(lease), ...basisText(basis), ...approvalOf(found)].map((line) => `\n${line}`).join(''),
    reads: readsText(found),
    record:
      inclusion === null
        ? importedText(found)
        : t('explain.record', { seq, size: inclusion.size, root: inclusion.root, vouched: settledText(settled) }),
  })
}

/** Of another node's record: what can be said of it here, and what not. */
function importedText({ imported, seq, reads }: Explained): string {
  if (imported === null) return ''
  const { home, node, signed } = imported
  return t('explain.imported', {
    seq,
    home,
    node: named(node.name ?? '', node.did).trim(),
    checked: t(signed ? 'explain.signed' : 'explain.unsigned'),
    payload: t(reads === null ? 'explain.no-payload' : 'explain.payload'),
  })
}

function chainText(chain: Chain | null): string[] {
  return (chain?.chain ?? []).map(({ from, to, level, revoked }) => {
    const granted = t('explain.granted', { from: named(from.name, from.did), to: named(to.name, to.did), level })
    return `         ${granted}${revoked ? t('grants.revoked') : ''}`
  })
}

/** On whose word it was done, where the lease alone does not tell. */
function basisText(basis: Chain | null): string[] {
  if (basis === null) return []
  const id = basis.chain.at(-1)?.id ?? ''
  return [t('explain.basis', { id: inline(id), hash: basis.hash }), ...chainText(basis)]
}

/** Each thing with its label, as many as a person reads; the JSON has them all. */
function readsText({ reads, readCount }: Explained): string {
  if (reads === null) return t('explain.erased', { count: readCount })
  if (readCount === 0) return t('explain.nothing')
  const lines = reads
    .slice(0, SHOWN_READS)
    .map(({ path, label }) => t('explain.read', { path: inline(path), label: formatLabel(label) }))
  if (reads.length > SHOWN_READS) lines.push(t('explain.more', { count: reads.length - SHOWN_READS }))
  if (reads.length < readCount) lines.push(t('explain.lost', { count: readCount - reads.length }))
  return lines.join('\n         ')
}

function approvalOf({ approval }: Explained): string[] {
  if (approval === null) return []
  const { card, approver, decidedAt } = approval
  const by = named(approver.name ?? '', approver.did).trim()
  return [t('explain.approval', { by, at: new Date(decidedAt).toISOString(), card: inline(card) })]
}
