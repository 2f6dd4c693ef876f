/** csb files refs, ls, cat, put, rm, log: what the branches of a home hold. */
import { buffer as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
import { fromUtf8 } from '@csb/core'
import { acting, countOf, given, route, shortId } from '../context.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'
import { archiveCommands } from './archive.ts'
import { branchCommands } from './branches.ts'
import { credentialCommand } from './credential.ts'

type Ref = { readonly branch: string; readonly commit?: string; readonly protected: boolean }
type Listed = { readonly path: string; readonly kind: string; readonly oid: string }
type Logged = {
  readonly commit?: string
  readonly author: { readonly name: string }
  readonly message: string
  readonly at: number
}

export function fileCommands(program: Command): void {
  const files = program.command('files').description(t('files.about'))
  withHome(files.command('refs'))
    .description(t('files.refs.about'))
    .action(
      acting<InHome>(async ({ client, out }, _args, options) => {
        const node = await client()
        const asked = route(['v1', 'files', 'refs'], await homeIn(node, options))
        const found = await node.call<{ refs: Ref[] }>('GET', asked)
        const lines = found.refs.map(
          (ref) => `${shortId(ref.commit)}  ${ref.branch}${ref.protected ? t('files.protected') : ''}`,
        )
        out.answer(found, lines.join('\n'))
      }),
    )
  withHome(files.command('ls <branch> [path]'))
    .description(t('files.ls.about'))
    .action(
      acting<InHome, [string, string | undefined]>(async ({ client, out }, [branch, path], options) => {
        const node = await client()
        const asked = route(['v1', 'files', 'tree'], { branch, path, ...(await homeIn(node, options)) })
        const found = await node.call<{ items: Listed[] }>('GET', asked)
        out.answer(found, found.items.map(listedText).join('\n'))
      }),
    )
  withHome(files.command('cat <branch> <path>'))
    .description(t('files.cat.about'))
    .action(
      acting<InHome, [string, string]>(async ({ client, out }, [branch, path], options) => {
        const node = await client()
        const asked = route(['v1', 'files', 'file'], { branch, path, ...(await homeIn(node, options)) })
        const found = await node.call<{ text?: string; base64?: string }>('GET', asked)
        const { text, base64 = '' } = found
        out.bytes(found, text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text))
      }),
    )
  writingCommands(files)
  withHome(files.command('log <branch>'))
    .description(t('files.log.about'))
    .option('--limit <n>', t('option.limit'), countOf)
    .action(
      acting<InHome & { limit?: number }, [string]>(async ({ client, out }, [branch], { limit, ...options }) => {
        const node = await client()
        const asked = route(['v1', 'files', 'log'], { branch, limit, ...(await homeIn(node, options)) })
        const found = await node.call<{ items: Logged[] }>('GET', asked)
        out.answer(found, found.items.map(loggedText).join('\n'))
      }),
    )
  branchCommands(files)
  archiveCommands(files)
  credentialCommand(files)
}

/** `placed`: what had to take another name beside what the lease does not see. */
type Written = { readonly commit?: string; readonly placed?: readonly { readonly path: string; readonly at: string }[] }
type Writing = InHome & { readonly message?: string }

function writingCommands(files: Command): void {
  withHome(files.command('put <branch> <path>'))
    .description(t('files.put.about'))
    .option('--message <message>', t('option.message'))
    .action(
      acting<Writing, [string, string]>(async ({ client, out }, [branch, path], { message, ...options }) => {
        const node = await client()
        const home = await homeIn(node, options)
        const bytes = await readAll(process.stdin)
        const text = fromUtf8(bytes)
        const content = text === undefined ? { base64: bytes.toString('base64') } : { text }
        const body = { ...home, branch, path, ...content, ...given({ message }) }
        const done = await node.call<Written>('PUT', '/v1/files/file', body)
        out.answer(done, writtenText(done, branch))
      }),
    )
  withHome(files.command('rm <branch> <path>'))
    .description(t('files.rm.about'))
    .option('--message <message>', t('option.message'))
    .action(
      acting<Writing, [string, string]>(async ({ client, out }, [branch, path], { message, ...options }) => {
        const node = await client()
        const body = { ...(await homeIn(node, options)), branch, path, delete: true, ...given({ message }) }
        const done = await node.call<Written>('PUT', '/v1/files/file', body)
        out.answer(done, writtenText(done, branch))
      }),
    )
}

const writtenText = ({ commit, placed = [] }: Written, branch: string): string =>
  [
    t('files.put', { commit: shortId(commit), branch }),
    ...placed.map(({ path, at }) => t('git.placed', { name: branch, path: inline(path), at: inline(at) })),
  ].join('\n')

function listedText({ path, kind, oid }: Listed): string {
  if (kind === 'submodule') return t('files.submodule', { path: inline(path), commit: oid.slice(0, 12) })
  return `${inline(path)}${kind === 'folder' ? '/' : ''}`
}

function loggedText({ commit, author, message, at }: Logged): string {
  const first = inline(message.split('\n', 1)[0] ?? '')
  return `${shortId(commit)}  ${new Date(at).toISOString()}  ${inline(author.name)}: ${first}`
}
