/** `npm run clause L1.3`: what the clause says, who enforces it, what shows it. Without an id: all of them. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findAcceptance, findTags, findTests, readClauses, type Clause, type Mark } from './clauses.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const SKIPPED = new Set(['node_modules', 'dist', 'schema', 'vectors'])

const wanted = process.argv.slice(2)
const clauses = await readClauses()
const unknown = wanted.filter((id) => !clauses.some((clause) => clause.id === id))

if (unknown.length > 0) {
  process.stderr.write(`There is no clause ${unknown.join(', ')}. Without an id all are listed.\n`)
  process.exitCode = 2
} else if (wanted.length === 0) {
  for (const { id, state, title } of clauses) process.stdout.write(`${id.padEnd(14)} ${state.padEnd(8)} ${title}\n`)
} else {
  const { tags, tests } = await findMarks()
  for (const clause of clauses.filter(({ id }) => wanted.includes(id))) print(clause, tags, tests)
}

function print(clause: Clause, tags: readonly Mark[], tests: readonly Mark[]): void {
  const lines = [
    `${clause.id} ${clause.title} (${clause.state})`,
    `  ${clause.sentence}`,
    `  from ${clause.source}, package ${clause.package}`,
    '  enforced in',
    ...listed(tags, clause.id),
    '  shown by',
    ...listed(tests, clause.id),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

function listed(marks: readonly Mark[], id: string): string[] {
  const found = marks.filter((mark) => mark.id === id).map((mark) => `    ${mark.path}:${mark.line}`)
  return found.length === 0 ? ['    nothing yet'] : found
}

async function findMarks(): Promise<{ tags: Mark[]; tests: Mark[] }> {
  const tags: Mark[] = []
  const tests: Mark[] = []
  for (const top of ['packages', 'apps', 'test']) {
    for (const entry of await readdir(join(root, top), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name).slice(root.length)
      if (!entry.isFile() || !entry.name.endsWith('.ts') || path.split('/').some((part) => SKIPPED.has(part))) continue
      const text = await readFile(join(root, path), 'utf8')
      if (path.includes('/src/')) tags.push(...findTags(path, text))
      if (path.endsWith('.test.ts')) tests.push(...findTests(path, text))
      if (path.startsWith('test/conformance/')) tests.push(...findAcceptance(path, text))
    }
  }
  return { tags, tests }
}
