/** Whose turn it is to run, where only so many run at once: first come, first served, and no turn is lost. */

export type Turns = {
  /**
   * Wait until fewer than `most` are taken, first come first served; then take one.
   * @returns gives it back
   * @throws the signal's reason where it fires while waiting
   */
  take(most: number, signal: AbortSignal): Promise<() => void>
}

type Waiting = { readonly most: number; readonly begin: () => void }

export function createTurns(): Turns {
  let taken = 0
  const waiting = new Set<Waiting>()

  /** A turn goes from hand to hand: nobody who comes meanwhile takes it, and nobody who has gone is given it. */
  const giveOn = () => {
    for (const one of waiting) {
      if (taken >= one.most) return
      waiting.delete(one)
      taken++
      one.begin()
    }
  }
  const giveBack = () => {
    taken--
    giveOn()
  }

  return {
    take: async (most, signal) => {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const own: Waiting = { most, begin: resolve }
      const leave = () => {
        if (waiting.delete(own)) reject(signal.reason as Error)
        giveOn()
      }
      waiting.add(own)
      signal.addEventListener('abort', leave, { once: true })
      giveOn()
      try {
        await promise
      } finally {
        signal.removeEventListener('abort', leave)
      }
      if (signal.aborted) {
        giveBack()
        throw signal.reason as Error
      }
      let isHeld = true
      return () => {
        if (isHeld) giveBack()
        isHeld = false
      }
    },
  }
}
