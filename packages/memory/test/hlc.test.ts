import { key } from '@csb/store'
import { expect, test } from 'vitest'
import { hlcTime, isAhead, nextHlc, observeHlc } from '../src/hlc.ts'
import { NOW, openHome } from './support.ts'

test('readings grow as text, through equal, later and earlier wall clocks', async () => {
  const { store } = await openHome()
  const readings: string[] = []
  for (const now of [NOW, NOW, NOW + 5, NOW - 90_000, NOW + 5])
    readings.push(await store.transact((tx) => nextHlc(tx, now)))
  expect(readings).toEqual([...readings].sort())
  expect(new Set(readings).size).toBe(readings.length)
  expect(hlcTime(readings[2] ?? '')).toBe(NOW + 5)
})

test('a full counter goes over into the milliseconds', async () => {
  const { store } = await openHome()
  await store.transact((tx) => tx.putJson(key('meta', 'hlc'), '01a3185c5000ffff'))
  expect(await store.transact((tx) => nextHlc(tx, NOW))).toBe('01a3185c50010000')
})

test('what was seen is passed, and what is older moves nothing', async () => {
  const { store } = await openHome()
  const next = (seen: string) =>
    store.transact((tx) => {
      observeHlc(tx, seen)
      return nextHlc(tx, NOW)
    })
  expect(await next('01a3185c60000004')).toBe('01a3185c60000005')
  expect(await next('0000000000000000')).toBe('01a3185c60000006')
})

test('five minutes ahead is well, more is not', () => {
  const at = (ms: number) => `${ms.toString(16).padStart(12, '0')}0000`
  expect(isAhead(at(NOW + 300_000), NOW)).toBe(false)
  expect(isAhead(at(NOW + 300_001), NOW)).toBe(true)
})
