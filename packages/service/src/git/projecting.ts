/**
 * Long histories are projected behind the back of who asks by REST: it is told no ids until that is done. One after the
 * other, each reader and branch once, since each goes through all of a history; in memory only, since whoever asks again
 * after a restart begins it again, and what was done of it by then is kept.
 */
import { LIMITS } from '@csb/core'

export type Projecting = {
  /**
   * Begin, unless the same is under way or too much waits.
   * @param work that may fail: whoever asks next begins it again. Its signal fires when the node stops
   * @returns when it is over; never rejects
   */
  begin(name: string, work: (signal: AbortSignal) => Promise<unknown>): Promise<void>
  /** Break off what is under way, and begin nothing more. */
  stop(): void
}

export function createProjecting(): Projecting {
  const open = new Set<string>()
  const stopping = new AbortController()
  const { signal } = stopping
  let last = Promise.resolve()
  const run = async (name: string, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> => {
    try {
      if (!signal.aborted) await work(signal)
    } catch {
      // whoever asks next begins it again, and hears why it can not be done where that is so
    } finally {
      open.delete(name)
    }
  }
  return {
    begin: async (name, work) => {
      if (open.has(name) || open.size >= LIMITS.projectionsWaiting || signal.aborted) return
      open.add(name)
      last = last.then(() => run(name, work))
      await last
    },
    stop: () => stopping.abort(),
  }
}
