import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { LIMITS, validate } from '@csb/core'
import { readClauses } from '../../protocols/clauses.ts'
import { L0 } from './L0-files.ts'
import { L1 } from './L1-authority.ts'
import { L2 } from './L2-memory.ts'
import { L3 } from './L3-guard.ts'
import { L4 } from './L4-sync.ts'
import { createReport, type Result } from './report.ts'

const clauses = await readClauses()
const passed = (...levels: readonly string[]) =>
  new Map<string, Result>(clauses.filter(({ level }) => levels.includes(level ?? '')).map(({ id }) => [id, 'pass']))

describe('the declaration', () => {
  test('names every clause of the five levels and fits its schema', () => {
    const report = createReport(clauses, new Map(), { 'L1.3': 'within 60 seconds' }, '0.1.0')
    expect(() => validate('Conformance', report)).not.toThrow()
    expect(Object.values(report.tests)).toEqual(Array(26).fill('planned'))
    expect(report.level).toBe('none')
    expect(report.deviations).toEqual(['L1.3: within 60 seconds'])
  })

  test('the level is the highest of which all below passed too', () => {
    expect(createReport(clauses, passed('L0'), {}, '1').level).toBe('L0')
    expect(createReport(clauses, passed('L0', 'L1', 'L2'), {}, '1').level).toBe('L2')
    expect(createReport(clauses, passed('L0', 'L1', 'L2', 'L3', 'L4'), {}, '1').level).toBe('L4')
    expect(createReport(clauses, passed('L1', 'L2', 'L3', 'L4'), {}, '1').level).toBe('none')
  })

  test('one planned or failed test keeps a level from being reached', () => {
    for (const result of ['planned', 'fail'] as const) {
      const results = passed('L0', 'L1', 'L2').set('L1.7', result)
      expect(createReport(clauses, results, {}, '1').level).toBe('L0')
    }
  })

  test('a clause that was not asked is not declared at all, and keeps a level from being reached', () => {
    const results = passed('L0', 'L1')
    results.delete('L1.7')
    const report = createReport(clauses, results, {}, '1', new Set(['L1.7']))
    expect(report.tests).not.toHaveProperty('L1.7')
    expect(report.tests['L2.1']).toBe('planned')
    expect(report.level).toBe('L0')
  })

  test('L1.3 the declared bound is the one that grants are made with', async () => {
    const text = await readFile(new URL('deviations.json', import.meta.url), 'utf8')
    const declared = (JSON.parse(text) as Record<string, string>)['L1.3']
    expect(declared).toBe(`revocation takes effect within ${LIMITS.revocationMaxAgeMs / 1000} seconds`)
  })

  test('deviations name clauses', async () => {
    const text = await readFile(new URL('deviations.json', import.meta.url), 'utf8')
    const ids = new Set(clauses.map(({ id }) => id))
    expect(Object.keys(JSON.parse(text) as object).filter((id) => !ids.has(id))).toEqual([])
  })
})

test('each list holds tests of its own level only', () => {
  for (const [level, list] of Object.entries({ L0, L1, L2, L3, L4 })) {
    expect(list.filter(({ clause }) => !clause.startsWith(`${level}.`))).toEqual([])
  }
})
