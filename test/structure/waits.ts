/** How long tests wait: long enough for a machine that is slow and busy, or load alone turns one red. */
import type { House } from './house.ts'

const LEAST_MS = 30_000
/** Smaller numbers beside a text are something else, as the status of an answer. */
const LEAST_SAID_MS = 1_000
/** Measurements, and the tests of this rule. */
const ASIDE = /^test\/(?:bench|structure)\//
const TEST = /(?:^|\/)test\/.*\.ts$/
/** `until(condition, 5_000, 'what is waited for')` */
const UNTIL = /,\s*(\d[\d_]*),\s*(?:'[^'\n]*'|`[^`\n]*`|"[^"\n]*")/g
/** the limit of one test, which the configuration sets for all */
const LIMIT = /^\s*\}(?:,\s*|, )(\d[\d_]*),?\s*\)$/gm

/** Nothing is waited for shorter than half a minute, and no test limits itself. */
export function checkWaits({ files }: House): string[] {
  const tests = files.filter(({ path }) => TEST.test(path) && !ASIDE.test(path))
  const short = tests.flatMap(({ path, text }) =>
    found(text, UNTIL)
      .filter(({ value }) => value >= LEAST_SAID_MS && value < LEAST_MS)
      .map(({ line, value }) => `${path}:${line} waits ${value} ms: say ${LEAST_MS}, a wait is over when it is true`),
  )
  const limited = tests.flatMap(({ path, text }) =>
    found(text, LIMIT).map(({ line }) => `${path}:${line} limits a test: the limit of all tests is enough`),
  )
  return [...short, ...limited]
}

function found(text: string, pattern: RegExp): { readonly line: number; readonly value: number }[] {
  return [...text.matchAll(pattern)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    value: Number((match[1] ?? '').replaceAll('_', '')),
  }))
}
