/**
 * Read a folder of Markdown notes, an Obsidian vault as it is. Nothing in it is changed, links out of the
 * folder are not followed, and whatever is not taken is named with its reason.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fail, fromUtf8, LIMITS, parseBounded, toNodeError, utf8, type Json } from '@csb/core'
import { parseDate } from './coerce.ts'
import { isType } from './entry.ts'
import { readTags, type Warning } from './fields.ts'
import { readYaml, splitFrontMatter, writeYaml } from './front-matter.ts'
import { importId, itemsOf, type Found, type ImportItem } from './import-item.ts'
import { createLinkFinder, type LinkFinder, type Named } from './wiki-links.ts'

/** Where people and programs write when a note was made, the surest first. */
const DATE_KEYS = ['created', 'created_at', 'date', 'timestamp'] as const
/** The last millisecond with 13 digits. */
const LAST_ID_MS = 9_999_999_999_999
const UNREADABLE = 'can not be read'

type VaultFile = { readonly path: string; readonly skipped?: string }

type Page = {
  readonly frontMatter: Readonly<Record<string, Json>>
  readonly body: string
  readonly timestamp: number
  readonly warnings: readonly string[]
}

/**
 * Two passes, so that links find notes that come later; only names are kept in memory between them.
 * @param directory its name is part of every id, so that two vaults never take each other's notes for their own
 * @throws NOT_FOUND where there is no such folder; TOO_LARGE above LIMITS.importFiles
 */
export async function* readVault(directory: string): AsyncGenerator<ImportItem> {
  const root = resolve(directory)
  const files = await listVault(root)
  const vault = basename(root)
  const named: Named[] = []
  for (const file of files) {
    const page = file.skipped === undefined ? await readPage(root, file.path) : file.skipped
    if (typeof page === 'string') continue
    const id = importId(page.timestamp, [vault, file.path])
    named.push({ id, path: file.path.normalize('NFC'), aliases: listOf(page.frontMatter['aliases'], /,/) })
  }
  const find = createLinkFinder(named)
  for (const { path, skipped } of files) {
    const page = skipped ?? (await readPage(root, path))
    if (typeof page === 'string') yield { kind: 'skipped', path, reason: page }
    else yield* partsOf(vault, path, page, find)
  }
}

/**
 * Read one note as it would be read with the folder it lies in, except that no link is found.
 * @param file of Markdown or plain text
 */
export async function* readNoteFile(file: string): AsyncGenerator<ImportItem> {
  const root = dirname(resolve(file))
  const path = basename(file)
  const page = await readPage(root, path)
  if (typeof page === 'string') yield { kind: 'skipped', path, reason: page }
  else yield* partsOf(basename(root), path, page, () => [])
}

/** No file can stop the others: one that can not be taken, for whatever reason, is named. */
function partsOf(vault: string, path: string, page: Page, find: LinkFinder): readonly ImportItem[] {
  try {
    return [...itemsOf(foundOf(vault, path, page, find))]
  } catch (error) {
    return [{ kind: 'skipped', path, reason: toNodeError(error).message }]
  }
}

/** Files in path order; what is hidden (`.obsidian`, `.git`, `.trash`) is not even named. */
async function listVault(root: string): Promise<VaultFile[]> {
  const files: VaultFile[] = []
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) =>
      folder === '' ? fail('NOT_FOUND', { directory: root }, error) : undefined,
    )
    if (entries === undefined) {
      files.push({ path: folder, skipped: UNREADABLE })
      return
    }
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.name.startsWith('.')) continue
      if (entry.isDirectory()) await walk(path)
      else files.push({ path, ...skipReason(entry.name, entry.isFile()) })
      if (files.length > LIMITS.importFiles) fail('TOO_LARGE', { maxFiles: LIMITS.importFiles })
    }
  }
  await walk('')
  return files
}

function skipReason(name: string, isFile: boolean): { skipped?: string } {
  // a link could lead out of the vault, to files that nobody meant to import
  if (!isFile) return { skipped: 'not a file' }
  return /\.(?:md|markdown)$/i.test(name) ? {} : { skipped: 'not a Markdown note' }
}

/** A reason instead of a page where the file can not be taken. */
async function readPage(root: string, path: string): Promise<Page | string> {
  const file = join(root, path)
  const about = await stat(file).catch(() => undefined)
  if (about === undefined) return UNREADABLE
  if (about.size > LIMITS.importFileBytes) return 'too large'
  const bytes = await readFile(file).catch(() => undefined)
  if (bytes === undefined) return UNREADABLE
  const text = fromUtf8(bytes)?.replace(/^\uFEFF/, '')
  if (text === undefined || text.includes('\0')) return 'not text in UTF-8'
  if (text.trim() === '') return 'empty'
  const page = readText(text)
  const timestamp = dateOf(page.frontMatter) ?? Math.min(Math.max(0, Math.floor(about.mtimeMs)), LAST_ID_MS)
  return { ...page, timestamp }
}

function readText(text: string): Omit<Page, 'timestamp'> {
  const { yaml, body } = splitFrontMatter(text)
  if (yaml === undefined) return { frontMatter: {}, body, warnings: [] }
  try {
    const frontMatter = readYaml(yaml, LIMITS.importFrontMatterBytes, LIMITS.jsonDepth)
    // what is short in one spelling may be long in ours
    if (utf8(writeYaml(frontMatter)).byteLength > LIMITS.importFrontMatterBytes)
      fail('MALFORMED', { reason: 'front matter too large' })
    // what the door of the node would refuse would take the notes beside it along
    parseBounded(JSON.stringify(frontMatter), LIMITS.httpBodyBytes)
    return { frontMatter, body, warnings: [] }
  } catch (error) {
    // nothing is lost: what can not be read as front matter stays in the text, where a person finds it
    return {
      frontMatter: {},
      body: text,
      warnings: [`front matter kept as text: ${wordsOf(toNodeError(error).details)}`],
    }
  }
}

const wordsOf = ({ reason, key }: Readonly<Record<string, unknown>>): string =>
  typeof key === 'string' ? `${String(reason)} (${key})` : String(reason)

function foundOf(vault: string, path: string, page: Page, find: LinkFinder): Found {
  const { frontMatter, body, timestamp, warnings } = page
  const title = basename(path)
    .replace(/\.[^.]*$/, '')
    .normalize('NFC')
  const { type, ...others } = frontMatter
  const tags = tagsOf(others)
  const isEmpty = body.trim() === ''
  return {
    path,
    origin: [vault, path],
    timestamp,
    text: isEmpty ? title : body,
    entry: {
      type: isType(type) ? type : ('other' as const),
      source: 'user' as const,
      ...(tags.list.length === 0 ? {} : { tags: tags.list }),
    },
    about: { origin: path.normalize('NFC'), title },
    extra: { ...(type === undefined || isType(type) ? {} : { type }), ...tags.others },
    warnings: isEmpty ? [...warnings, 'no text: the title is the content'] : warnings,
    linksOf: (piece: string) => find(piece, path),
  }
}

/** Tags that fit; where not all do, the original stays beside them. */
function tagsOf(frontMatter: Readonly<Record<string, Json>>): {
  list: string[]
  others: Readonly<Record<string, Json>>
} {
  const { tags, ...others } = frontMatter
  const dropped: Warning[] = []
  const names = listOf(tags, /[,\s]/).map((tag) => tag.replace(/^#/, ''))
  const list = readTags(names, dropped) ?? []
  const isWhole = tags === undefined || (dropped.length === 0 && list.length === names.length)
  return { list, others: isWhole ? others : frontMatter }
}

/** Obsidian writes lists as lists, or as one text. */
function listOf(value: Json | undefined, separator: RegExp): string[] {
  const given = typeof value === 'string' ? value.split(separator) : value
  const items: readonly Json[] = Array.isArray(given) ? given : []
  const texts = items.filter((item) => item !== null && typeof item !== 'object').map((item) => String(item).trim())
  return texts.filter((text) => text !== '')
}

function dateOf(frontMatter: Readonly<Record<string, Json>>): number | undefined {
  for (const name of DATE_KEYS) {
    const value = frontMatter[name]
    const ms = typeof value === 'string' ? parseDate(value) : undefined
    if (ms !== undefined && ms >= 0 && ms <= LAST_ID_MS) return ms
  }
  return undefined
}
