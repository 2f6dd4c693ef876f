/** csb files branch, diff, merge, snapshot, recycle, restore, fsck, gc: branches as a whole, and what was deleted. */
import type { Command } from 'commander'
import { EXIT } from '@csb/core'
import { acting, countOf, given, route, shortId } from '../context.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Change = {
  readonly op: string
  readonly path: string
  readonly path_old?: string
  readonly label_old: string | null
  readonly label_new: string | null
  readonly diff?: string
}
type Conflict = { readonly kind: string; readonly path: string; readonly kept: readonly string[] }
type Changes = { readonly manifest: readonly Change[]; readonly conflicts: readonly Conflict[] }
type Deleted = {
  readonly path: string | null
  readonly branch: string
  readonly label: string
  readonly until: number
  readonly commit?: string
}
type Damage = {
  readonly oid: string
  readonly reason: string
  readonly paths: readonly string[]
  readonly commits: readonly string[]
  readonly branches: readonly string[]
  readonly holders: readonly string[]
  readonly cut: boolean
}
type Checked = { readonly objects: number; readonly unneeded: number; readonly damaged: readonly Damage[] }

/** @param files the command that these stand under */
export function branchCommands(files: Command): void {
  branchCommand(files)
  withHome(files.command('diff <from> <to> [path]'))
    .description(t('files.diff.about'))
    .action(
      acting<InHome, [string, string, string | undefined]>(async ({ client, out }, [from, to, path], options) => {
        const node = await client()
        const asked = route(['v1', 'files', 'diff'], { from, to, path, ...(await homeIn(node, options)) })
        const found = await node.call<{ items: Change[] }>('GET', asked)
        out.answer(found, found.items.length === 0 ? t('files.same') : found.items.map(changeText).join('\n'))
      }),
    )
  withHome(files.command('merge <from> [into]'))
    .description(t('files.merge.about'))
    .option('--preview', t('files.merge.preview'))
    .option('--message <message>', t('option.message'))
    .action(
      acting<InHome & { preview?: boolean; message?: string }, [string, string | undefined]>(
        async ({ client, out }, [from, into = 'main'], { preview = false, message, ...options }) => {
          const node = await client()
          const home = await homeIn(node, options)
          if (preview) {
            const found = await node.call<Changes>('GET', route(['v1', 'files', 'merge'], { from, into, ...home }))
            out.answer(found, changesText(found))
            return
          }
          const body = { ...home, from, into, ...given({ message }) }
          const done = await node.call<Changes & { commit?: string }>('POST', '/v1/files/merge', body)
          const merged = t('files.merged', { from, into, commit: shortId(done.commit) })
          out.answer(done, `${changesText(done)}\n${merged}`)
        },
      ),
    )
  withHome(files.command('snapshot <name> [branch]'))
    .description(t('files.snapshot.about'))
    .action(
      acting<InHome, [string, string | undefined]>(async ({ client, out }, [name, of], options) => {
        const node = await client()
        const body = { ...(await homeIn(node, options)), name, ...given({ of }) }
        const done = await node.call<{ branch: string }>('POST', '/v1/files/snapshots', body)
        out.answer(done, t('files.snapshot.done', { branch: done.branch }))
      }),
    )
  recycleCommands(files)
  upkeepCommands(files)
}

function branchCommand(files: Command): void {
  type Options = InHome & {
    readonly remove?: boolean
    readonly restore?: boolean
    readonly as?: string
    readonly head?: string
  }
  withHome(files.command('branch <name> [from]'))
    .description(t('files.branch.about'))
    .option('--remove', t('files.branch.remove'))
    .option('--restore', t('files.branch.restore'))
    .option('--as <name>', t('files.branch.as'))
    .option('--head <commit>', t('files.branch.head'))
    .action(
      acting<Options, [string, string | undefined]>(async ({ client, out }, [branch, from], options) => {
        const { remove, restore, as, head } = options
        const node = await client()
        const home = await homeIn(node, options)
        if (remove === true) {
          const done = await node.call('DELETE', route(['v1', 'files', 'branches', branch], home))
          out.answer(done, t('files.branch.removed', { branch }))
          return
        }
        const [path, body] =
          restore === true
            ? ['/v1/files/restore', { ...home, branch, ...given({ as, deleted_by: head }) }]
            : ['/v1/files/branches', { ...home, branch, ...given({ from }) }]
        const done = await node.call<{ head?: string }>('POST', path, body)
        out.answer(done, t('files.branch.done', { branch: as ?? branch, commit: shortId(done.head) }))
      }),
    )
}

function recycleCommands(files: Command): void {
  type Restoring = InHome & { readonly deletedBy?: string }
  type Page = InHome & { readonly limit?: number; readonly cursor?: string }
  withHome(files.command('recycle'))
    .description(t('files.recycle.about'))
    .option('--limit <n>', t('option.limit'), countOf)
    .option('--cursor <id>', t('option.cursor'))
    .action(
      acting<Page>(async ({ client, out }, _args, { limit, cursor, ...options }) => {
        const node = await client()
        const asked = route(['v1', 'files', 'recycle'], { limit, cursor, ...(await homeIn(node, options)) })
        const found = await node.call<{ items: Deleted[] }>('GET', asked)
        out.answer(found, found.items.length === 0 ? t('files.recycle.none') : found.items.map(deletedText).join('\n'))
      }),
    )
  withHome(files.command('restore <path> <branch>'))
    .description(t('files.restore.about'))
    .option('--deleted-by <commit>', t('files.restore.by'))
    .action(
      acting<Restoring, [string, string]>(async ({ client, out }, [path, branch], { deletedBy, ...options }) => {
        const node = await client()
        const body = { ...(await homeIn(node, options)), path, branch, ...given({ deleted_by: deletedBy }) }
        const done = await node.call<{ commit?: string }>('POST', '/v1/files/restore', body)
        out.answer(done, t('files.restored', { path: inline(path), branch, commit: shortId(done.commit) }))
      }),
    )
}

function upkeepCommands(files: Command): void {
  withHome(files.command('fsck'))
    .description(t('files.fsck.about'))
    .action(
      acting<InHome>(async ({ client, out }, _args, options) => {
        const node = await client()
        const asked = route(['v1', 'files', 'fsck'], await homeIn(node, options))
        const found = await out.during(t('files.fsck.progress'), node.call<Checked>('GET', asked))
        out.answer(found, [t('files.fsck.done', found), ...found.damaged.map(damageText)].join('\n'))
        if (found.damaged.length > 0) process.exitCode = EXIT.fault
      }),
    )
  withHome(files.command('gc'))
    .description(t('files.gc.about'))
    .action(
      acting<InHome>(async ({ client, out }, _args, options) => {
        const node = await client()
        const asked = node.call<{ paused: boolean }>('POST', '/v1/files/gc', await homeIn(node, options))
        const done = await out.during(t('files.gc.progress'), asked)
        out.answer(done, [t('files.gc.done', done), ...(done.paused ? [t('files.gc.paused')] : [])].join('\n'))
      }),
    )
}

function changeText({ op, path, path_old: from, label_old: before, label_new: after, diff }: Change): string {
  const name = from === undefined ? inline(path) : `${inline(from)} -> ${inline(path)}`
  const label = before === after || before === null || after === null ? '' : `  ${before} -> ${after}`
  return `${op.padEnd(6)}  ${name}${label}${diff === undefined ? '' : `\n${diff.trimEnd()}`}`
}

function changesText({ manifest, conflicts }: Changes): string {
  const kept = conflicts.map(({ kind, path, kept: names }) =>
    t('files.conflict', { kind, path: inline(path), kept: names.map(inline).join(', ') }),
  )
  return manifest.length === 0 ? t('files.same') : [...manifest.map(changeText), ...kept].join('\n')
}

const deletedText = ({ path, branch, label, until, commit }: Deleted): string =>
  t(path === null ? 'files.recycle.branch' : 'files.recycle.file', {
    path: inline(path ?? ''),
    branch,
    label,
    until: new Date(until).toISOString().slice(0, 10),
    commit: shortId(commit),
  })

function damageText({ oid, reason, paths, commits, branches, holders, cut }: Damage): string {
  const rows = { paths, commits, branches, holders }
  const lines = (['paths', 'commits', 'branches', 'holders'] as const)
    .filter((row) => rows[row].length > 0)
    .map((row) => t(`files.fsck.${row}`, { names: rows[row].map(inline).join(', ') }))
  return [t('files.fsck.damaged', { reason, oid }), ...lines, ...(cut ? [t('files.fsck.cut')] : [])].join('\n')
}
