import { describe, expect, test } from 'vitest'
import { readHouse, type House } from './house.ts'
import { checkWaits } from './waits.ts'

const house = await readHouse()
const one = (text: string, path = 'packages/memory/test/notes.test.ts'): House => ({
  files: [{ path, text }],
  manifests: [],
})

describe('a test waits as long as it takes', () => {
  test('in this house', () => expect(checkWaits(house)).toEqual([]))
  test('a short wait and a test with a limit of its own are found', () => {
    expect(checkWaits(one("await until(isThere, 5_000, 'it is there')\n"))).toHaveLength(1)
    expect(checkWaits(one('await until(\n  isThere,\n  5000,\n  `it is ${there}`,\n)\n'))).toHaveLength(1)
    expect(checkWaits(one("await until(isThere, 30_000, 'it is there')\n"))).toEqual([])
    expect(checkWaits(one("test('x', () => {\n}, 20_000)\n"))).toHaveLength(1)
    expect(checkWaits(one("test.each([])('x', () => {\n  },\n  20_000,\n)\n"))).toHaveLength(1)
    expect(checkWaits(one("test('x', () => {\n})\n"))).toEqual([])
  })
})
