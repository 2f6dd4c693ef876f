/** How long a client may stand still while something is awaited of it. What came in time and was not read yet counts. */
import { delay, fail, turn } from '@csb/core'

/**
 * @param idleMs so long it may take
 * @throws TIMEOUT where nothing came, and whatever `next` throws
 */
export async function withinSilence<T>(next: Promise<T>, idleMs: number): Promise<T> {
  const settled = new AbortController()
  const silence = delay(idleMs, settled.signal)
    .then(turn)
    .then(
      () => fail('TIMEOUT', { idleMs }),
      () => undefined as never,
    )
  try {
    return await Promise.race([next, silence])
  } finally {
    settled.abort()
  }
}
