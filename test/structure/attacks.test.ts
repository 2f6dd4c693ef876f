import { describe, expect, test } from 'vitest'
import { OPEN, attacksIn, checkAttacks } from './attacks.ts'
import { readHouse } from './house.ts'

const shown = attacksIn((await readHouse()).files)
const all = new Set(Array.from({ length: 40 }, (_, at) => at + 1))

describe('each attack on authority is shown to fail', () => {
  test('in this house', () => expect(checkAttacks(shown, OPEN)).toEqual([]))

  test('one without a test, one that is open and shown, one too many and a missing reason are found', () => {
    expect(checkAttacks(all, new Map())).toEqual([])
    const others = new Set([...all].filter((n) => n !== 7))
    expect(checkAttacks(others, new Map())).toEqual(['no test names attack 7'])
    expect(checkAttacks(others, new Map([[7, 'a reason']]))).toEqual([])
    expect(checkAttacks(others, new Map([[7, ' ']]))).toHaveLength(1)
    expect(checkAttacks(all, new Map([[7, 'a reason']]))).toHaveLength(1)
    expect(checkAttacks(new Set([...all, 41]), new Map())).toEqual(['there is no attack 41'])
  })

  test('names are read from tests, not from comments or other files', () => {
    const file = (path: string, text: string) => [...attacksIn([{ path, text }])]
    expect(file('a.test.ts', "test('L1.1 attack 3: x', f)\ntest.each([])(`attack 14: %s`, f) // attack 5")).toEqual([
      3, 14,
    ])
    expect(file('a.ts', "test('attack 3', f)")).toEqual([])
    expect(file('a.test.ts', "test('attacks 3 and attack x', f)")).toEqual([])
  })
})
