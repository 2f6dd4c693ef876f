/** L0 operations: branches, reading, writing into run branches. Protected branches are refused by the files room. */
import { dominates, fail, fromUtf8, parseLabel, utf8 } from '@csb/core'
import { commitFiles, getHome, listFiles, listRefs, readFile, readLog, validatePath } from '@csb/files'
import { authorOf, trailersOf } from '../authorship.ts'
import { homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'

type Home = { readonly home?: string }
type At = Home & { readonly branch: string; readonly path?: string }
type Write = At & {
  readonly path: string
  readonly text?: string
  readonly delete?: boolean
  readonly message?: string
  readonly label?: string
  readonly expect?: string | null
}

const reading = (input: At, parts: Parts) => ({
  location: locationOf(parts, homeOf(input, parts)),
  action: 'read' as const,
  branch: input.branch,
  ...(input.path === undefined || input.path === '' ? {} : { path: `/${input.path}` }),
})

export const filesOperations: readonly Operation[] = [
  {
    name: 'files.refs',
    input: 'FilesRefs',
    kind: 'read',
    open: 'lease',
    needs: (input: Home, parts) => ({ location: locationOf(parts, homeOf(input, parts)), action: 'list' }),
    run: async ({ view, ...parts }: Context, input: Home) => {
      const home = getHome(view, homeOf(input, parts))
      return { home, refs: await listRefs(view, home.id) }
    },
  },
  {
    name: 'files.list',
    input: 'FilesList',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: (context: Context, input: At) => {
      const { view, clearance } = context
      const home = homeOf(input, context)
      const items = listFiles(view, { home, at: input.branch, path: input.path ?? '', recursive: true })
      const isShown = ({ kind, path }: { kind: string; path: string }) =>
        kind === 'folder' || dominates(clearance, readFile(view, { home, at: input.branch, path }).label)
      return { items: items.filter(isShown) }
    },
  },
  {
    name: 'files.read',
    input: 'FilesRead',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: (context: Context, input: At & { path: string }) => {
      const file = readFile(context.view, { home: homeOf(input, context), at: input.branch, path: input.path })
      // what may not be seen looks like what is not there
      if (!dominates(context.clearance, file.label)) fail('NOT_FOUND', { path: input.path })
      const text = fromUtf8(file.bytes)
      const body = text === undefined ? { base64: Buffer.from(file.bytes).toString('base64') } : { text }
      return { path: input.path, oid: file.oid, label: file.label, ...body }
    },
  },
  {
    name: 'files.log',
    input: 'FilesLog',
    kind: 'read',
    open: 'lease',
    needs: reading,
    run: (context: Context, input: At & { limit?: number }) => ({
      items: readLog(context.view, { home: homeOf(input, context), at: input.branch, limit: input.limit ?? 50 }),
    }),
  },
  {
    name: 'files.write',
    input: 'FilesWrite',
    kind: 'write',
    open: 'lease',
    needs: (input: Write, parts) => ({ ...reading(input, parts), action: 'write' as const }),
    run: (context: Context, input: Write) => {
      const path = validatePath(input.path)
      if (input.delete !== true && input.text === undefined) fail('INVALID_INPUT', { reason: 'text or delete is needed' })
      return context.write(
        (tx) =>
          commitFiles(tx, {
            home: homeOf(input, context),
            branch: input.branch,
            changes: [{ path, bytes: input.delete === true ? null : utf8(input.text ?? '') }],
            ...(input.label === undefined ? {} : { labels: [{ path, label: parseLabel(input.label) }] }),
            ...(input.expect === undefined ? {} : { expect: input.expect }),
            author: authorOf(context),
            message: input.message ?? `${input.delete === true ? 'delete' : 'write'} ${path}`,
            trailers: trailersOf(context),
            now: context.clock.now(),
          }),
        ({ commit, parent, tree }) => ({ home: homeOf(input, context), branch: input.branch, commit, parent, tree }),
      )
    },
  },
]
