import { assert, property, string } from 'fast-check'
import { expect, test } from 'vitest'
import { createOriginCheck } from '../src/origin.ts'

test('no Host that is a name of somebody else gets in', () => {
  const check = createOriginCheck({ host: '127.0.0.1' })
  assert(
    property(string(), (text) => {
      const host = `${text.replaceAll(/[^\w.-]/g, '')}.example`
      const headers = new Headers({ host })
      expect(() => check(headers)).toThrow(expect.objectContaining({ code: 'DENIED' }))
    }),
  )
})
