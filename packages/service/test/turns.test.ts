import { describe, expect, test } from 'vitest'
import { createTurns } from '../src/runs/turns.ts'

const { signal } = new AbortController()

/** What has been called so far, in order, after everything that was to happen by itself. */
async function seen(order: readonly string[]): Promise<readonly string[]> {
  await new Promise((resolve) => setImmediate(resolve))
  return [...order]
}

function queue(most: number) {
  const turns = createTurns()
  const order: string[] = []
  const take = (name: string, by: AbortSignal = signal) =>
    turns.take(most, by).then(
      (leave) => {
        order.push(name)
        return leave
      },
      () => {
        order.push(`not ${name}`)
        return () => undefined
      },
    )
  return { order, take }
}

describe('turns', () => {
  test('so many run at once, and the next when one has left, who may leave twice', async () => {
    const { order, take } = queue(2)
    const [first] = [take('a'), take('b'), take('c'), take('d')]
    expect(await seen(order)).toEqual(['a', 'b'])
    const leave = await first
    leave()
    leave()
    expect(await seen(order)).toEqual(['a', 'b', 'c'])
  })

  test('one that stops waiting at the very moment at which it would be its turn does not take it along', async () => {
    const { order, take } = queue(1)
    const stop = new AbortController()
    const first = await take('a')
    void take('b', stop.signal)
    void take('c')
    stop.abort()
    first()
    expect(await seen(order)).toEqual(['a', 'not b', 'c'])
  })

  test('one that is stopped just after it was given its turn gives it on', async () => {
    const { order, take } = queue(1)
    const stop = new AbortController()
    const first = await take('a')
    void take('b', stop.signal)
    void take('c')
    first()
    stop.abort()
    expect(await seen(order)).toEqual(['a', 'not b', 'c'])
  })

  test('who comes when a turn is free and somebody waits for it comes after that one', async () => {
    const { order, take } = queue(1)
    const first = await take('a')
    const second = take('b')
    first()
    void take('c')
    expect(await seen(order)).toEqual(['a', 'b'])
    ;(await second)()
    expect(await seen(order)).toEqual(['a', 'b', 'c'])
  })

  test('one that was stopped before waits for nothing', async () => {
    const { order, take } = queue(1)
    await take('a', AbortSignal.abort())
    await take('b')
    expect(order).toEqual(['not a', 'b'])
  })
})
