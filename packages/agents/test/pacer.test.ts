import { describe, expect, test } from 'vitest'
import { LIMITS } from '@csb/core'
import { createPacer } from '../src/pacer.ts'

const text = (said: string) => ({ kind: 'text' as const, text: said })

describe('pacing', () => {
  test('little texts without end are told in larger pieces, and all of them', () => {
    const pacer = createPacer()
    const told = Array.from({ length: 100_000 }, () => [...pacer.take([text('ab')])]).flat()
    told.push(...pacer.flush())
    expect(told.length).toBeLessThan(LIMITS.agentTexts + 100)
    expect(told.map((event) => (event.kind === 'text' ? event.text : '')).join('')).toBe('ab'.repeat(100_000))
  })

  test('statuses without end are refused', () => {
    const pacer = createPacer()
    const statuses = Array.from({ length: LIMITS.agentEvents + 1 }, () => ({ kind: 'status' as const, text: 's' }))
    expect(() => [...pacer.take(statuses)]).toThrow(expect.objectContaining({ code: 'AGENT_OUTPUT_TOO_LARGE' }))
  })

  test('what was said before an error is told before it', () => {
    const said: unknown[] = []
    const pacer = createPacer()
    function* broken() {
      yield text('a')
      throw new Error('broken')
    }
    expect(() => {
      for (const event of pacer.take(broken())) said.push(event)
    }).toThrow('broken')
    expect(said).toEqual([text('a')])
  })
})
