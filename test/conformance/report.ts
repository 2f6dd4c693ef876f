/** Turns results into the declaration of the AgentNAS document. `planned` is never counted as passed. */
import type { Conformance } from '@csb/core'
import type { Clause } from '../../protocols/clauses.ts'

export type Result = 'pass' | 'fail' | 'planned'

const LEVELS = ['L0', 'L1', 'L2', 'L3', 'L4'] as const

/**
 * @param results by clause id; a clause of a level that is missing is planned, and no test of it is built
 * @param deviations one sentence by clause id
 * @param notAsked ids of clauses whose tests are built and were left out of this run: nothing is declared of them
 */
export function createReport(
  clauses: readonly Clause[],
  results: ReadonlyMap<string, Result>,
  deviations: Readonly<Record<string, string>>,
  version: string,
  notAsked: ReadonlySet<string> = new Set(),
): Conformance {
  const named = clauses.filter(({ id, level }) => (level !== undefined || results.has(id)) && !notAsked.has(id))
  const tests = Object.fromEntries(named.map(({ id }) => [id, results.get(id) ?? 'planned']))
  return {
    implementation: 'csb',
    version,
    spec: '0.2',
    level: levelOf(clauses, tests),
    tests,
    deviations: Object.entries(deviations).map(([id, sentence]) => `${id}: ${sentence}`),
  }
}

/** The highest level of which, and of all levels below which, every test passed. */
export function levelOf(
  clauses: readonly Clause[],
  tests: Readonly<Record<string, Result | undefined>>,
): Conformance['level'] {
  let reached: Conformance['level'] = 'none'
  for (const level of LEVELS) {
    const own = clauses.filter((clause) => clause.level === level)
    if (own.length === 0 || !own.every(({ id }) => tests[id] === 'pass')) return reached
    reached = level
  }
  return reached
}
