import { expect, test } from 'vitest'
import { LIMITS } from '@csb/core'
import { createProjecting } from '../src/git/projecting.ts'

/** Work that goes on until it is let go, and what of it has begun. */
function work() {
  const begun: string[] = []
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const start = (name: string) => async (signal: AbortSignal) => {
    const gate = Promise.withResolvers<void>()
    gates.set(name, gate)
    begun.push(name)
    signal.addEventListener('abort', () => gate.reject(signal.reason))
    await gate.promise
  }
  return { begun, start, end: (name: string) => gates.get(name)?.resolve() }
}

test('long histories are projected one after the other, and each once', async () => {
  const { begun, start, end } = work()
  const projecting = createProjecting()
  const [one, two] = [projecting.begin('one', start('one')), projecting.begin('two', start('two'))]
  await projecting.begin('one', start('again'))
  expect(begun).toEqual(['one'])
  end('one')
  await one
  const again = projecting.begin('one', start('again'))
  end('two')
  await two
  end('again')
  await again
  expect(begun).toEqual(['one', 'two', 'again'])
})

test('one that fails keeps the next from nothing', async () => {
  const projecting = createProjecting()
  await projecting.begin('one', () => Promise.reject(new Error('no')))
  const { begun, start, end } = work()
  const one = projecting.begin('one', start('one'))
  await Promise.resolve()
  end('one')
  await one
  expect(begun).toEqual(['one'])
})

test('above a bound nothing waits, and whoever asks again is taken', async () => {
  const projecting = createProjecting()
  const begun: number[] = []
  const all = Array.from({ length: LIMITS.projectionsWaiting + 1 }, (_, at) =>
    projecting.begin(String(at), async () => begun.push(at)),
  )
  await Promise.all(all)
  expect(begun).toHaveLength(LIMITS.projectionsWaiting)
  await projecting.begin('late', async () => begun.push(-1))
  expect(begun.at(-1)).toBe(-1)
})

test('a node that stops breaks off what is under way, and begins nothing more', async () => {
  const { begun, start } = work()
  const projecting = createProjecting()
  const [one, two] = [projecting.begin('one', start('one')), projecting.begin('two', start('two'))]
  await Promise.resolve()
  projecting.stop()
  await Promise.all([one, two, projecting.begin('three', start('three'))])
  expect(begun).toEqual(['one'])
})
