import { describe, expect, test } from 'vitest'
import { ERRORS } from '@csb/core'
import { readHouse, readText } from './house.ts'
import { checkErrorList, checkThrown } from './parity.ts'

const codes = Object.keys(ERRORS)

describe('the list of codes in the README', () => {
  test('is the table, both ways', async () => {
    expect(checkErrorList(codes, await readText('README.md').catch(() => ''))).toEqual([])
  })

  test('a missing and a foreign code are found', () => {
    const readme =
      '# csb\n`NOT_A_CODE`\n## Errors\n| `NOT_FOUND` | `CSB_DATA` |\n| `GONE_AWAY` |\n## Next\n`CONFLICT`\n'
    expect(checkErrorList(['NOT_FOUND', 'CONFLICT'], readme)).toEqual([
      'README.md does not list CONFLICT',
      'README.md lists GONE_AWAY, which is no code',
    ])
    expect(checkErrorList(['NOT_FOUND'], '# csb\n')).toHaveLength(1)
  })
})

describe('each code is thrown', () => {
  test('in this house', async () => expect(checkThrown(codes, await readHouse())).toEqual([]))

  test('a code that is only compared with is found', () => {
    const text = "if (isNodeError(error, 'CONFLICT') || error.code === 'BUSY') fail('NOT_FOUND', {}) // 'DENIED'\n"
    const files = [{ path: 'packages/files/src/a.ts', text }]
    expect(checkThrown(['NOT_FOUND', 'CONFLICT', 'BUSY', 'DENIED'], { files, manifests: [] })).toHaveLength(3)
  })
})

describe('the numbers of the table', () => {
  test('each code has its own JSON-RPC number, and a status of an error', () => {
    const numbers = Object.values(ERRORS).map(({ rpc }) => rpc)
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(Object.values(ERRORS).filter(({ status }) => status < 400 || status > 599)).toEqual([])
  })
})
