import { describe, expect, test } from 'vitest'
import { findTags, findTests, readClauses, type Clause } from '../../protocols/clauses.ts'
import { readHouse } from './house.ts'
import { FLOORS } from './layers.ts'
import { checkClauseTable, checkClauses, marksOf } from './parity.ts'

const house = await readHouse()
const clauses = await readClauses()
const { tags, tests } = marksOf(house)
const rooms = FLOORS.flat().map(([room]) => room)

const clause = (id: string, state: Clause['state']): Clause => ({
  id,
  level: 'L1',
  title: 't',
  sentence: 's',
  source: 'd',
  package: 'authority',
  state,
})

describe('clauses, tags and tests agree', () => {
  test('a done clause has a tag and a test, and each tag and test is a clause', () => {
    expect(checkClauses(clauses, tags, tests)).toEqual([])
  })

  test('a missing tag, a missing test and an unknown id are found', () => {
    const found = checkClauses(
      [clause('L1.1', 'done'), clause('L1.2', 'done'), clause('L1.3', 'planned')],
      [{ id: 'L1.1', path: 'a.ts', line: 1 }],
      [
        { id: 'L1.2', path: 'a.test.ts', line: 1 },
        { id: 'L9.9', path: 'a.test.ts', line: 2 },
      ],
    )
    expect(found).toHaveLength(3)
  })

  test('the head of a section may be named and proves nothing', () => {
    const head = [{ id: 'DEL-002', path: 'a.ts', line: 1 }]
    expect(checkClauses([clause('DEL-002.2.1', 'planned')], head, [])).toEqual([])
    expect(checkClauses([clause('DEL-002.2.1', 'done')], head, head)).toHaveLength(2)
  })
})

describe('the table of clauses', () => {
  test('is whole', () => expect(checkClauseTable(clauses, rooms)).toEqual([]))

  test('has the 26 acceptance tests of the five levels', () => {
    expect(clauses.filter(({ level }) => level !== undefined).map(({ id }) => id)).toHaveLength(26)
  })

  test('a broken row is found', () => {
    const row = { ...clause('L1.1', 'done'), level: 'L2' as const, package: 'cellar', sentence: '' }
    expect(checkClauseTable([row, row], rooms)).toHaveLength(7)
  })
})

describe('marks are read from text', () => {
  test('tags with one and with several ids', () => {
    const text = '/**\n * @clause L1.3, MEM-001.1.3 and so on\n */\n/** @clause DEL-003.3.2 */\n'
    expect(findTags('a.ts', text).map(({ id, line }) => [id, line])).toEqual([
      ['L1.3', 2],
      ['MEM-001.1.3', 2],
      ['DEL-003.3.2', 4],
    ])
  })

  test('names of tests, plain, each, skipped and conditional', () => {
    const text = [
      "test('L1.6 a changed record is found', () => {})",
      "test.each([1])('IOP-4.1 %s', () => {})",
      'it.skipIf(isAway(1))("A2A-OP-3.1.1, L1.1: works", () => {})',
      "test('L is no id', () => {})",
    ].join('\n')
    expect(findTests('a.test.ts', text).map(({ id }) => id)).toEqual(['L1.6', 'IOP-4.1', 'A2A-OP-3.1.1', 'L1.1'])
  })
})
