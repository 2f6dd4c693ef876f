/** csb note, import, files: what the home holds. */
import { text as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
import { parseLabel, type Memory } from '@csb/core'
import { importNotes } from '@csb/node'
import { acting, collect } from '../context.ts'
import { t } from '../texts.ts'

type Note = Memory & { readonly label: string; readonly deleted?: boolean }

const query = (values: Readonly<Record<string, unknown>>): string => {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)] as [string, string]))}`
}

const lineOf = ({ id, type, level, label, content }: Note): string =>
  `${id}  ${type.padEnd(10)} ${level.padEnd(4)} ${label.padEnd(14)} ${content.split('\n', 1)[0]?.slice(0, 60) ?? ''}`

export function noteCommands(program: Command): void {
  program.commandsGroup(t('group.notes'))
  const note = program.command('note').description(t('note.about'))
  note
    .command('add <text>')
    .description(t('note.add.about'))
    .option('--type <type>')
    .option('--level <level>')
    .option('--tag <tag>', '', collect)
    .option('--label <label>')
    .action(
      acting(async (stand, [text], { type = 'other', level = 'warm', tag, label }) => {
        const entry = { content: text, type, level, tags: tag ?? [], source: 'user' }
        const made = await (
          await stand.client()
        ).call<Note>('POST', '/v1/memory', {
          entry,
          ...(label === undefined ? {} : { label }),
        })
        stand.out.answer(made, t('note.added', { id: made.id }))
      }),
    )
  note
    .command('list')
    .description(t('note.list.about'))
    .option('--level <level>')
    .option('--type <type>')
    .option('--limit <n>')
    .option('--cursor <id>')
    .option('--home <home>')
    .action(
      acting(async (stand, _args, { level, type, limit, cursor, home }) => {
        const path = `/v1/memory${query({ level, type, limit, cursor, home })}`
        const page = await (await stand.client()).call<{ items: Note[] }>('GET', path)
        stand.out.answer(page, page.items.length === 0 ? t('note.none') : page.items.map(lineOf).join('\n'))
      }),
    )
  note
    .command('show <id>')
    .description(t('note.show.about'))
    .option('--home <home>')
    .action(
      acting(async (stand, [id], { home }) => {
        const found = await (await stand.client()).call<Note>('GET', `/v1/memory/${id}${query({ home })}`)
        const head = `${found.id}\n${found.type} ${found.level} ${found.label} ${(found.tags ?? []).map((tag) => `#${tag}`).join(' ')}`
        stand.out.answer(found, `${head}\n\n${found.content}`)
      }),
    )
  changing(note, 'rm', 'note.rm.about', 'DELETE', '', 'note.deleted')
  changing(note, 'restore', 'note.restore.about', 'POST', '/restore', 'note.restored')
  note
    .command('forget <id>')
    .description(t('note.forget.about'))
    .option('--reason <reason>')
    .action(
      acting(async (stand, [id], { reason }) => {
        const path = `/v1/memory/${id}/hard${query({ reason })}`
        const done = await (await stand.client()).call<{ report: { remains: string[] }[] }>('DELETE', path)
        const files = done.report.flatMap(({ remains }) => remains)
        const scan = files.length === 0 ? t('note.scan.clean') : t('note.scan.remains', { files: files.join(', ') })
        stand.out.answer(done, t('note.forgotten', { id, scan }))
      }),
    )

  program
    .command('import <path>')
    .description(t('import.about'))
    .option('--label <label>')
    .action(
      acting(async (stand, [path = ''], { label }) => {
        const client = await stand.client()
        const chosen = label === undefined ? null : parseLabel(label)
        const report = await importNotes(client, path, chosen, (count) =>
          stand.out.progress(t('import.progress', { count })),
        )
        const skipped = report.skipped.map((file) => t('import.skipped', file))
        const { created, kept } = report
        stand.out.answer(report, [t('import.done', { created, kept, skipped: skipped.length }), ...skipped].join('\n'))
      }),
    )
  fileCommands(program)
}

function changing(
  note: Command,
  verb: string,
  about: 'note.rm.about' | 'note.restore.about',
  method: 'DELETE' | 'POST',
  suffix: string,
  done: 'note.deleted' | 'note.restored',
): void {
  note
    .command(`${verb} <id>`)
    .description(t(about))
    .action(
      acting(async (stand, [id]) => {
        const body = method === 'POST' ? {} : undefined
        stand.out.answer(await (await stand.client()).call(method, `/v1/memory/${id}${suffix}`, body), t(done, { id }))
      }),
    )
}

function fileCommands(program: Command): void {
  const files = program.command('files').description(t('files.about'))
  files
    .command('refs')
    .description(t('files.refs.about'))
    .action(
      acting(async (stand) => {
        type Refs = { refs: { branch: string; commit: string; protected: boolean }[] }
        const found = await (await stand.client()).call<Refs>('GET', '/v1/files/refs')
        const lines = found.refs.map(
          (ref) => `${ref.commit.slice(0, 12)}  ${ref.branch}${ref.protected ? '  (protected)' : ''}`,
        )
        stand.out.answer(found, lines.join('\n'))
      }),
    )
  files
    .command('ls <branch> [path]')
    .description(t('files.ls.about'))
    .action(
      acting(async (stand, [branch, path]) => {
        const found = await (
          await stand.client()
        ).call<{ items: { path: string; kind: string }[] }>('GET', `/v1/files/tree${query({ branch, path })}`)
        stand.out.answer(
          found,
          found.items.map((item) => (item.kind === 'folder' ? `${item.path}/` : item.path)).join('\n'),
        )
      }),
    )
  files
    .command('cat <branch> <path>')
    .description(t('files.cat.about'))
    .action(
      acting(async (stand, [branch, path]) => {
        const found = await (
          await stand.client()
        ).call<{ text?: string; base64?: string }>('GET', `/v1/files/file${query({ branch, path })}`)
        stand.out.answer(found, found.text ?? found.base64 ?? '')
      }),
    )
  files
    .command('put <branch> <path>')
    .description(t('files.put.about'))
    .option('--message <message>')
    .action(
      acting(async (stand, [branch, path], { message }) => {
        const body = { branch, path, text: await readAll(process.stdin), ...(message === undefined ? {} : { message }) }
        const done = await (await stand.client()).call<{ commit: string }>('PUT', '/v1/files/file', body)
        stand.out.answer(done, t('files.put', { commit: done.commit.slice(0, 12), branch }))
      }),
    )
  files
    .command('log <branch>')
    .description(t('files.log.about'))
    .option('--limit <n>')
    .action(
      acting(async (stand, [branch], { limit }) => {
        type Log = { items: { commit: string; author: { name: string }; message: string; at: number }[] }
        const found = await (await stand.client()).call<Log>('GET', `/v1/files/log${query({ branch, limit })}`)
        const line = (entry: Log['items'][number]) =>
          `${entry.commit.slice(0, 12)}  ${new Date(entry.at).toISOString()}  ${entry.author.name}: ${entry.message.split('\n', 1)[0] ?? ''}`
        stand.out.answer(found, found.items.map(line).join('\n'))
      }),
    )
}
