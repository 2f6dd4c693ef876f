/**
 * The hybrid logical clock that orders writes of all nodes: 48 bits of milliseconds, then a 16-bit counter,
 * as 16 hex digits, so that text order is time order. One clock per node, kept in the store.
 * A note from elsewhere moves it, but one that is further than LIMITS.futureHlcMs ahead is not taken in.
 */
import { LIMITS } from '@csb/core'
import { key, type Transaction } from '@csb/store'

const LAST = key('meta', 'hlc')
const COUNTER_MAX = 0xffff

/** True for 16 lower-case hex digits. */
export const isHlc = (text: unknown): text is string => typeof text === 'string' && /^[0-9a-f]{16}$/.test(text)

/** The milliseconds since epoch inside a clock reading. */
export const hlcTime = (hlc: string): number => Number.parseInt(hlc.slice(0, 12), 16)

/** True where `hlc` lies so far ahead of `now` (ms since epoch) that a note bearing it is refused. */
export const isAhead = (hlc: string, now: number): boolean => hlcTime(hlc) > now + LIMITS.futureHlcMs

/**
 * The next reading: later than every one given or seen before, even where the wall clock went back.
 * @param now ms since epoch
 * @returns 16 hex digits
 */
export function nextHlc(tx: Transaction, now: number): string {
  const last = readLast(tx)
  const wall = format(now, 0)
  const next = last === undefined || wall > last ? wall : following(last)
  tx.putJson(LAST, next)
  return next
}

/** Take note of the reading of a note that was taken in, so that the next own one is later. */
export function observeHlc(tx: Transaction, hlc: string): void {
  const last = readLast(tx)
  if (last === undefined || hlc > last) tx.putJson(LAST, hlc)
}

const readLast = (tx: Transaction): string | undefined => tx.getJson<string>(LAST)

function following(hlc: string): string {
  const counter = Number.parseInt(hlc.slice(12), 16)
  return counter < COUNTER_MAX ? format(hlcTime(hlc), counter + 1) : format(hlcTime(hlc) + 1, 0)
}

const format = (ms: number, counter: number): string =>
  ms.toString(16).padStart(12, '0') + counter.toString(16).padStart(4, '0')
