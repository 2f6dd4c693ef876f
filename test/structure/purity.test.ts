import { describe, expect, test } from 'vitest'
import { TABLES } from '@csb/store'
import { readHouse, type House } from './house.ts'
import { checkChance, checkEnvironment, checkKeys, checkPrefixes, checkTime } from './purity.ts'

const house = await readHouse()
const one = (text: string, path = 'packages/memory/src/notes.ts'): House => ({ files: [{ path, text }], manifests: [] })

describe('the environment is read in one file', () => {
  test('in this house', () => expect(checkEnvironment(house)).toEqual([]))
  test('every spelling is found', () => {
    expect(checkEnvironment(one("const a = process.env['HOME']\nconst b = process['env']\n"))).toHaveLength(2)
    expect(checkEnvironment(one("import { env } from 'node:process'\n"))).toHaveLength(1)
    expect(checkEnvironment(one('// process.env\nexport const env = {}\n'))).toEqual([])
    expect(checkEnvironment(one('process.env', 'packages/node/src/config.ts'))).toEqual([])
  })
})

describe('time comes from the clock', () => {
  test('in this house', () => expect(checkTime(house)).toEqual([]))
  test('clocks and timers elsewhere are found', () => {
    expect(checkTime(one('const a = Date.now()\nconst b = new Date()\nconst c = new Date(5)\n'))).toHaveLength(2)
    expect(checkTime(one("import { setTimeout } from 'node:timers/promises'\nAbortSignal.timeout(5)\n"))).toHaveLength(
      2,
    )
    expect(checkTime(one('Date.now()', 'packages/core/src/clock.ts'))).toEqual([])
  })
})

describe('chance comes from core', () => {
  test('in this house', () => expect(checkChance(house)).toEqual([]))
  test('other sources of chance are found', () => {
    expect(checkChance(one("Math.random()\nimport { randomBytes } from 'node:crypto'\n"))).toHaveLength(2)
  })
})

describe('keys are spelled in the key space', () => {
  test('in this house', () => expect(checkKeys(house)).toEqual([]))
  test('a key spelled elsewhere is found', () => {
    expect(checkKeys(one('tx.put(`fo/${home}/${oid}`, bytes)\n'))).toHaveLength(1)
    expect(checkKeys(one("read('notes/2026')\n"))).toEqual([])
  })
  test('each table has its own prefix', () => expect(checkPrefixes(TABLES)).toEqual([]))
  test('a shared prefix is found', () => expect(checkPrefixes({ a: 'x', b: 'x' })).toHaveLength(1))
})
