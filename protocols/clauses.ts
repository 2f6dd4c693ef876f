/**
 * Reads the table of clauses and finds where each one is enforced and shown: `@clause` tags in sources, ids at the
 * beginning of test names, acceptance tests. It judges nothing; the structure tests do.
 */
import { readFile } from 'node:fs/promises'

/** One sentence of one of the three documents. `planned` means that nothing claims it yet. */
export type Clause = {
  readonly id: string
  readonly level?: 'L0' | 'L1' | 'L2' | 'L3' | 'L4'
  readonly title: string
  readonly sentence: string
  readonly source: string
  readonly package: string
  readonly state: 'done' | 'planned'
}

/** Where a clause id stands: path of the file, line counted from 1. */
export type Mark = { readonly id: string; readonly path: string; readonly line: number }

const ID = /^(?:L\d|MEM-|DEL-|A2A-|IOP-)[\w.-]*\w/
const TAG = /@clause[ \t]+([^\n*]+)/g
const TEST = /\b(?:test|it)(?:\.\w+)*(?:\((?:[^()]|\([^()]*\))*\))?\(\s*(['"`])((?:L\d|MEM-|DEL-|A2A-|IOP-)[^\n]*)/g
const ACCEPTANCE = /\bclause:\s*(['"`])([^'"`]+)\1/g

export async function readClauses(): Promise<readonly Clause[]> {
  return JSON.parse(await readFile(new URL('clauses.json', import.meta.url), 'utf8')) as Clause[]
}

/** Ids that the text of a source file bears as `@clause` tags; one tag may name several, parted by commas. */
export function findTags(path: string, text: string): readonly Mark[] {
  return [...text.matchAll(TAG)].flatMap((match) =>
    leadingIds(match[1] ?? '').map((id) => ({ id, path, line: lineAt(text, match.index) })),
  )
}

/** Ids with which the names of tests in the text of a test file begin. */
export function findTests(path: string, text: string): readonly Mark[] {
  return [...text.matchAll(TEST)].flatMap((match) =>
    leadingIds(match[2] ?? '').map((id) => ({ id, path, line: lineAt(text, match.index) })),
  )
}

/** Ids of the acceptance tests that a file of test/conformance lists. */
export function findAcceptance(path: string, text: string): readonly Mark[] {
  return [...text.matchAll(ACCEPTANCE)].map((match) => ({
    id: match[2] ?? '',
    path,
    line: lineAt(text, match.index),
  }))
}

/** The ids at the beginning of a text, parted by commas or spaces. A broken id comes out as it stands. */
function leadingIds(text: string): string[] {
  const ids: string[] = []
  for (const word of text.split(/[\s,;:]+/)) {
    const id = ID.exec(word)?.[0]
    if (id === undefined) break
    ids.push(id)
  }
  return ids
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
