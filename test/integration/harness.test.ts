import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Member } from '../../apps/harness/src/cluster.ts'
import { crowd } from '../../apps/harness/src/scenarios/crowd.ts'
import { partition } from '../../apps/harness/src/scenarios/partition.ts'
import { powerCut } from '../../apps/harness/src/scenarios/power-cut.ts'
import { stranger } from '../../apps/harness/src/scenarios/stranger.ts'
import { isProved, play, tableOf, type Scenario } from '../../apps/harness/src/stage.ts'

const silent = () => undefined

describe('each scenario proves every row', () => {
  test.each([
    { scenario: partition, rows: 7 },
    { scenario: powerCut, rows: 10 },
    { scenario: stranger, rows: 13 },
    { scenario: crowd, rows: 2 },
  ])('$scenario.name: $scenario.about', async ({ scenario, rows }) => {
    const lines: string[] = []
    const outcome = await play(scenario, { nodes: 5 }, (line) => lines.push(line))
    expect(isProved(outcome), [...lines, tableOf(outcome)].join('\n')).toBe(true)
    expect(outcome.rows).toHaveLength(rows)
  })
})

describe('the stage', () => {
  const scenario = (run: Scenario['run']): Scenario => ({ name: 'own', about: 'of this test', run })

  test('a row that does not hold, a throw, and no row at all are not proved', async () => {
    const held = await play(
      scenario(async ({ prove }) => prove('it holds', true, '')),
      {},
      silent,
    )
    expect(isProved(held)).toBe(true)
    const not = await play(
      scenario(async ({ prove }) => prove('it holds', false, '')),
      {},
      silent,
    )
    expect(isProved(not)).toBe(false)
    const thrown = await play(
      scenario(() => Promise.reject(new Error('by chance'))),
      {},
      silent,
    )
    expect(thrown.rows).toEqual([{ title: 'the scenario came to its end', holds: false, detail: 'by chance' }])
    expect(
      isProved(
        await play(
          scenario(async () => undefined),
          {},
          silent,
        ),
      ),
    ).toBe(false)
  })

  test('one that hangs is ended from outside, and its nodes with it', async () => {
    const stop = new AbortController()
    let member: Member | undefined
    const hanging = scenario(async ({ cluster }) => {
      member = await cluster.add({ name: 'alder' })
      stop.abort(new Error('enough'))
      await new Promise<never>(() => undefined)
    })
    const outcome = await play(hanging, {}, silent, stop.signal)
    expect(outcome.rows).toMatchObject([{ holds: false, detail: 'enough' }])
    await expect(member?.client.call('GET', '/v1/status')).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(existsSync(member?.directory ?? '/')).toBe(false)
  })
})
