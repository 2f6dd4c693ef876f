/** Tables that two places keep: clauses and their marks, error codes and their list. One sentence per break. */
import { findAcceptance, findTags, findTests, type Clause, type Mark } from '../../protocols/clauses.ts'
import { maskText, stringsOf } from './code.ts'
import { sourcesOf, type House } from './house.ts'

const ERROR_TABLE = 'packages/core/src/errors.ts'

/** Tags and tests of a house by clause id. */
export function marksOf({ files }: House): { tags: Mark[]; tests: Mark[] } {
  return {
    tags: sourcesOf(files).flatMap(({ path, text }) => findTags(path, text)),
    tests: files.flatMap(({ path, text }) => {
      if (path.endsWith('.test.ts')) return findTests(path, maskText(text, 'comments'))
      return path.startsWith('test/conformance/') ? findAcceptance(path, maskText(text, 'comments')) : []
    }),
  }
}

/**
 * A done clause has a tag and a test; each tag and each id in a test's name is a clause, or the head of several
 * (`DEL-002`), which speaks of the whole section and proves none of it.
 */
export function checkClauses(clauses: readonly Clause[], tags: readonly Mark[], tests: readonly Mark[]): string[] {
  const known = new Set(clauses.map(({ id }) => id))
  const tagged = new Set(tags.map(({ id }) => id))
  const tested = new Set(tests.map(({ id }) => id))
  return [
    ...[...tags, ...tests]
      .filter(({ id }) => !known.has(id) && !clauses.some((clause) => clause.id.startsWith(`${id}.`)))
      .map(({ id, path, line }) => `${path}:${line} names ${id}, which is no clause`),
    ...clauses
      .filter(({ id, state }) => state === 'done' && !tagged.has(id))
      .map(({ id }) => `${id} is done and no source bears its tag`),
    ...clauses
      .filter(({ id, state }) => state === 'done' && !tested.has(id))
      .map(({ id }) => `${id} is done and no test begins with it`),
  ]
}

/** The table of clauses is whole in itself: ids once, levels where the id has one, known rooms, words in every field. */
export function checkClauseTable(clauses: readonly Clause[], rooms: readonly string[]): string[] {
  const seen = new Set<string>()
  return clauses.flatMap((clause) => {
    const { id, level, state } = clause
    const broken: string[] = []
    if (seen.has(id)) broken.push(`${id} stands twice`)
    seen.add(id)
    if (level !== (/^L\d/.exec(id)?.[0] as Clause['level'])) broken.push(`${id} has the level ${level ?? 'of none'}`)
    if (!rooms.includes(clause.package)) broken.push(`${id} names the package ${clause.package}`)
    if (state !== 'done' && state !== 'planned') broken.push(`${id} has the state ${String(state)}`)
    const isSpoken = [clause.title, clause.sentence, clause.source].every((text) => text.trim() !== '')
    if (!isSpoken || clause.sentence.includes('\n')) broken.push(`${id} lacks words, or has too many lines`)
    return broken
  })
}

/** The README lists each code of the table, and no other. */
export function checkErrorList(codes: readonly string[], readme: string): string[] {
  const section = sectionOf(readme, /^#+ .*\berrors?\b/im)
  if (section === '') return ['README.md has no section on errors']
  const listed = new Set([...section.matchAll(/`([A-Z][A-Z0-9_]{2,})`/g)].map((match) => match[1] ?? ''))
  for (const variable of listed) if (variable.startsWith('CSB_')) listed.delete(variable)
  return [
    ...codes.filter((code) => !listed.has(code)).map((code) => `README.md does not list ${code}`),
    ...[...listed].filter((code) => !codes.includes(code)).map((code) => `README.md lists ${code}, which is no code`),
  ]
}

/** Each code of the table is thrown somewhere. */
export function checkThrown(codes: readonly string[], { files }: House): string[] {
  const thrown = new Set<string>()
  for (const { path, text } of sourcesOf(files)) {
    const spoken = maskText(text, 'comments').replaceAll(/\bisNodeError\([^)]*\)|code\s*[!=]==\s*'[A-Z_]+'/g, '')
    const made = [...spoken.matchAll(/\b(?:fail|NodeError)\(\s*'([A-Z_]+)'/g)].map((match) => match[1] ?? '')
    const named = path === ERROR_TABLE ? [] : stringsOf(spoken).map(({ value }) => value)
    for (const code of [...made, ...named]) thrown.add(code)
  }
  return codes.filter((code) => !thrown.has(code)).map((code) => `${code} is never thrown`)
}

/** The text from the first heading that fits to the next one of its rank or above. */
function sectionOf(markdown: string, heading: RegExp): string {
  const begin = heading.exec(markdown)
  if (begin === null) return ''
  const rank = /^#+/.exec(begin[0])?.[0].length ?? 1
  const rest = markdown.slice(begin.index + begin[0].length)
  const end = new RegExp(`^#{1,${rank}} `, 'm').exec(rest)
  return end === null ? rest : rest.slice(0, end.index)
}
