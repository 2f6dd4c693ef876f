/** What only one place may do: read the environment, the clock, chance; spell keys. One sentence per break. */
import { TABLES } from '@csb/store'
import { maskText, stringsOf } from './code.ts'
import { sourcesOf, type House, type SourceFile } from './house.ts'

const CLOCKS = ['packages/core/src/clock.ts', 'packages/service/src/jobs.ts']
const CONFIG = 'packages/node/src/config.ts'
const KEYSPACE = 'packages/store/src/keyspace.ts'

const ENVIRONMENT = /\bprocess\s*\??\.\s*env\b|\bprocess\s*\[|\{[^}]*\benv\b[^}]*\}\s*from\s*['"]\s*/g
const TIME = /\bDate\s*\.\s*now\b|\bnew\s+Date\(\s*\)|\bperformance\s*\.\s*now\b|\bprocess\s*\.\s*hrtime\b/g
const TIMER = /\b(?:setTimeout|setInterval|setImmediate)\b|\bAbortSignal\s*\.\s*timeout\b/g
const CHANCE = /\bMath\s*\.\s*random\b|\brandomBytes\b|\brandomUUID\b|\brandomFill\w*\b|\bgetRandomValues\b/g

/** The environment is read in the node's configuration only. */
export function checkEnvironment({ files }: House): string[] {
  return sourcesOf(files)
    .filter(({ path }) => path !== CONFIG)
    .flatMap((file) =>
      hits(file, ENVIRONMENT)
        .filter(({ text }) => !text.startsWith('{') || importsProcess(file))
        .map(({ line }) => `${file.path}:${line} reads the environment`),
    )
}

/** The wall clock is read and timers are started in core/clock.ts and service/jobs.ts only. */
export function checkTime({ files }: House): string[] {
  return sourcesOf(files)
    .filter(({ path }) => !CLOCKS.includes(path))
    .flatMap((file) => [
      ...hits(file, TIME).map(({ line, text }) => `${file.path}:${line} reads the clock: ${text}`),
      ...hits(file, TIMER).map(({ line, text }) => `${file.path}:${line} starts a timer: ${text}`),
    ])
}

/** Chance comes from core only. */
export function checkChance({ files }: House): string[] {
  return sourcesOf(files)
    .filter(({ path }) => !path.startsWith('packages/core/src/'))
    .flatMap((file) => hits(file, CHANCE).map(({ line, text }) => `${file.path}:${line} makes its own chance: ${text}`))
}

/** Key prefixes are spelled in the key space only. */
export function checkKeys({ files }: House): string[] {
  const prefixes = Object.values(TABLES).map((prefix) => `${prefix}/`)
  return sourcesOf(files)
    .filter(({ path }) => path !== KEYSPACE)
    .flatMap(({ path, text }) =>
      stringsOf(text)
        .filter(({ value }) => prefixes.some((prefix) => value.startsWith(prefix)))
        .map(({ line, value }) => `${path}:${line} spells a key: ${value}`),
    )
}

/** Every prefix of the key space is one of its own, so no table reads another's rows. */
export function checkPrefixes(tables: Readonly<Record<string, string>>): string[] {
  const seen = new Map<string, string>()
  return Object.entries(tables).flatMap(([table, prefix]) => {
    const other = seen.get(prefix)
    seen.set(prefix, table)
    return other === undefined ? [] : [`${table} and ${other} share the prefix ${prefix}`]
  })
}

function hits(file: SourceFile, pattern: RegExp): { line: number; text: string }[] {
  const code = maskText(file.text, 'comments and strings')
  return [...code.matchAll(pattern)].map((match) => ({
    line: code.slice(0, match.index).split('\n').length,
    text: match[0],
  }))
}

function importsProcess(file: SourceFile): boolean {
  return /from\s*['"](?:node:)?process['"]/.test(file.text)
}
