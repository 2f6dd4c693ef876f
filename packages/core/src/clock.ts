/** The only file that reads the wall clock or starts a timer by itself. Everything else is handed a {@link Clock}. */

/** Milliseconds since the epoch. */
export type Clock = { now(): number }

export const systemClock: Clock = { now: () => Date.now() }

/** A clock that stands still until told: the one fake that tests may use. */
export type FakeClock = Clock & { advance(ms: number): void; set(ms: number): void }

/** @param start ms since epoch */
export function createFakeClock(start = 1_800_000_000_000): FakeClock {
  let now = start
  return {
    now: () => now,
    advance: (ms) => {
      now += ms
    },
    set: (ms) => {
      now = ms
    },
  }
}

/**
 * Resolve after `ms`, or reject with the signal's reason when aborted first.
 * The timer never keeps the process alive alone.
 */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error)
      return
    }
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/**
 * Resolve when what had come to the process by now has been read. After a timer it tells who was late from a process
 * that stood still itself: its timers come before what waits for it to be read.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A signal that fires after `ms`, or when `parent` does. */
export function deadline(ms: number, parent?: AbortSignal): AbortSignal {
  const timeout = AbortSignal.timeout(ms)
  return parent === undefined ? timeout : AbortSignal.any([timeout, parent])
}

/**
 * Ask again and again until `condition` gives something other than undefined or false.
 * @param timeoutMs after this it rejects with a TimeoutError that carries `what`
 */
export async function until<T>(
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs: number,
  what: string,
  everyMs = 25,
): Promise<T> {
  const end = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== false) return value
    if (Date.now() >= end)
      throw Object.assign(new Error(`not within ${timeoutMs} ms: ${what}`), { name: 'TimeoutError' })
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
