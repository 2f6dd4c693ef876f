/** csb note, forget, import: what the home remembers. */
import { Option, type Command } from 'commander'
import { LIMITS, fail, parseLabel, systemClock, type Memory } from '@csb/core'
import { importNotes } from '@csb/node'
import { acting, collect, countOf, fromCaller, given, labelOf, noteIdOf, route } from '../context.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { inline } from '../terminal.ts'
import { forgetCommand } from './forget.ts'
import { t } from '../texts.ts'
import { titleOf } from '../title.ts'

type Note = Memory & { readonly label: string; readonly deleted?: boolean }
type Page = { readonly items: readonly Note[]; readonly next_cursor: string | null }
type Remark = { readonly path: string; readonly from?: unknown; readonly to?: unknown }
type Added = Note & { readonly warnings?: readonly Remark[] }
type Adding = InHome & {
  readonly type?: string
  readonly level?: string
  readonly tag?: string[]
  readonly label?: string
}
type Listing = InHome & {
  readonly level?: string
  readonly type?: string
  readonly limit?: number
  readonly cursor?: string
}

const LEVELS = ['hot', 'warm', 'cold']
const TYPES: readonly Memory['type'][] = [
  'event',
  'decision',
  'lesson',
  'todo',
  'discovery',
  'preference',
  'identity',
  'other',
]

export function noteCommands(program: Command): void {
  const note = program.command('note').description(t('note.about'))
  withHome(note.command('add <text>'))
    .description(t('note.add.about'))
    .addOption(new Option('--type <type>', t('option.type')).choices(TYPES))
    .addOption(new Option('--level <level>', t('option.level')).choices(LEVELS))
    .option('--tag <tag>', t('option.tag'), collect)
    .option('--label <label>', t('option.label'), labelOf)
    .action(
      acting<Adding, [string]>(async ({ client, out }, [text], options) => {
        const { type = 'other', level = 'warm', tag = [], label } = options
        const chars = Array.from(text.normalize('NFC')).length
        const most = LIMITS.memoryContentChars
        if (chars > most) fail('INVALID_INPUT', { problem: t('note.long', { chars, most }) })
        const entry = { content: text, type, level, timestamp: systemClock.now(), tags: tag, source: 'user' }
        const node = await client()
        const home = await homeIn(node, options)
        const made = await node.call<Added>('POST', '/v1/memory', { entry, ...home, ...given({ label }) })
        const remarks = (made.warnings ?? []).map(remarkText)
        out.answer(made, [t('note.added', { id: made.id }), ...remarks].join('\n'))
      }),
    )
  withHome(note.command('list'))
    .description(t('note.list.about'))
    .addOption(new Option('--level <level>', t('option.level')).choices(LEVELS))
    .addOption(new Option('--type <type>', t('option.type')).choices(TYPES))
    .option('--limit <n>', t('option.limit'), countOf)
    .option('--cursor <id>', t('option.cursor'))
    .action(
      acting<Listing>(async ({ client, out }, _args, { level, type, limit, cursor, ...options }) => {
        const node = await client()
        const path = route(['v1', 'memory'], { level, type, limit, cursor, ...(await homeIn(node, options)) })
        const page = await node.call<Page>('GET', path)
        const lines = page.items.map(lineOf)
        const more = page.next_cursor === null ? [] : [t('note.more', { next: inline(page.next_cursor) })]
        out.answer(page, [...(lines.length + more.length === 0 ? [t('note.none')] : lines), ...more].join('\n'))
      }),
    )
  withHome(note.command('show'))
    .argument('<id>', '', noteIdOf)
    .description(t('note.show.about'))
    .action(
      acting<InHome, [string]>(async ({ client, out }, [id], options) => {
        const node = await client()
        const found = await node.call<Note>('GET', route(['v1', 'memory', id], await homeIn(node, options)))
        const tags = (found.tags ?? []).map((tag) => ` #${inline(tag)}`).join('')
        out.answer(found, `${found.id}\n${found.type} ${found.level} ${found.label}${tags}\n\n${found.content}`)
      }),
    )
  endings(note)
  forgetCommand(program)
  withHome(program.command('import <path>'))
    .description(t('import.about'))
    .option('--label <label>', t('option.label'), labelOf)
    .action(
      acting<InHome & { label?: string }, [string]>(async ({ client, out }, [path], { label, ...options }) => {
        const chosen = label === undefined ? null : parseLabel(label)
        const node = await client()
        const into = { label: chosen, ...(await homeIn(node, options)) }
        out.progress(t('import.progress', { count: 0 }))
        const report = await importNotes(node, fromCaller(path), into, (count) =>
          out.progress(t('import.progress', { count })),
        )
        const { created, kept } = report
        const skipped = report.skipped.map((file) => t('import.skipped', { ...file, path: inline(file.path) }))
        const warned = report.warnings.map((file) =>
          t('import.warned', { path: inline(file.path), warnings: file.warnings.map(inline).join('; ') }),
        )
        const done = t('import.done', { created, kept, skipped: skipped.length })
        out.answer(report, [done, ...warned, ...skipped].join('\n'))
      }),
    )
}

function lineOf({ id, type, level, label, content }: Note): string {
  return `${id}  ${type.padEnd(10)} ${level.padEnd(4)} ${label.padEnd(14)} ${inline(titleOf(content))}`
}

const remarkText = ({ path, from, to }: Remark): string =>
  t('note.remark', {
    path: inline(path),
    from: inline(JSON.stringify(from ?? null)),
    to: inline(JSON.stringify(to ?? null)),
  })

/** Three ways a note ends: deleted for a while, taken back, forgotten for good. */
function endings(note: Command): void {
  withHome(note.command('rm'))
    .argument('<id>', '', noteIdOf)
    .description(t('note.rm.about'))
    .action(
      acting<InHome, [string]>(async ({ client, out }, [id], options) => {
        const node = await client()
        const gone = await node.call('DELETE', route(['v1', 'memory', id], await homeIn(node, options)))
        out.answer(gone, t('note.deleted', { id }))
      }),
    )
  withHome(note.command('restore'))
    .argument('<id>', '', noteIdOf)
    .description(t('note.restore.about'))
    .action(
      acting<InHome, [string]>(async ({ client, out }, [id], options) => {
        const node = await client()
        const restored = await node.call('POST', route(['v1', 'memory', id, 'restore']), await homeIn(node, options))
        out.answer(restored, t('note.restored', { id }))
      }),
    )
  forgetCommand(note)
}
