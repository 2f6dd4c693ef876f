/**
 * csb explain: by what right a commit was made. In a clone of a home it takes whatever git takes for a commit, and
 * where the node does not know that commit, it asks for the run that the commit names in its trailer. Anywhere it takes
 * the id of that run, for a commit of a clone that shows a part has an id that only that clone knows.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { fail, isNodeError } from '@csb/core'
import { callerDirectory, type Client } from '@csb/node'
import { acting, route } from '../context.ts'
import { explainedText, type Explained } from '../explain-text.ts'
import { t } from '../texts.ts'

const run = promisify(execFile)
/** Of a run or a task; no commit has such an id. */
const RUN_ID = /^[a-z]+_[0-9]{13}_[0-9A-Za-z]{1,64}$/
const GIT_MS = 10_000

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
