/** Two ends of a session in memory: each message crosses as text, is kept, and can be the last one that does. */
import { NodeError, canonicalize } from '@csb/core'
import type { Port } from '../src/pages.ts'

export type Wire = {
  readonly left: Port
  readonly right: Port
  /** texts that reached that end, in order */
  readonly toLeft: string[]
  readonly toRight: string[]
  /** break the line, as a door does when one side gives up */
  cut(): void
}

/** @param cutAfter how many messages cross, both ways together, before the line breaks */
export function createWire(cutAfter = Number.POSITIVE_INFINITY): Wire {
  const toLeft: string[] = []
  const toRight: string[] = []
  let crossed = 0
  let broken = false
  const wakers = new Set<() => void>()
  const wake = () => {
    for (const waker of wakers) waker()
    wakers.clear()
  }
  const gone = () => new NodeError('PEER_UNREACHABLE', { reason: 'cut' })

  const endOf = (inbox: string[], outbox: string[]): Port => {
    let read = 0
    return {
      send: async (message) => {
        if (crossed >= cutAfter) broken = true
        if (broken) {
          wake()
          throw gone()
        }
        crossed++
        outbox.push(canonicalize(message))
        wake()
      },
      receive: async () => {
        for (;;) {
          const text = inbox[read]
          if (text !== undefined) {
            read++
            return JSON.parse(text) as unknown
          }
          if (broken) throw gone()
          const { promise, resolve } = Promise.withResolvers<void>()
          wakers.add(resolve)
          await promise
        }
      },
    }
  }
  return {
    left: endOf(toLeft, toRight),
    right: endOf(toRight, toLeft),
    toLeft,
    toRight,
    cut: () => ((broken = true), wake()),
  }
}

/** An end that says what a test tells it to, in order, and hears everything. */
export function scripted(replies: readonly ((heard: Record<string, unknown>) => unknown)[]): Port & {
  readonly heard: Record<string, unknown>[]
} {
  const heard: Record<string, unknown>[] = []
  let next = 0
  const wakers = new Set<() => void>()
  return {
    heard,
    send: async (message) => {
      heard.push(JSON.parse(canonicalize(message)) as Record<string, unknown>)
      for (const waker of wakers) waker()
      wakers.clear()
    },
    receive: async () => {
      const at = next++
      while (heard.length === 0) {
        const { promise, resolve } = Promise.withResolvers<void>()
        wakers.add(resolve)
        await promise
      }
      const reply = replies[Math.min(at, replies.length - 1)]
      return reply?.(heard.at(-1) ?? {})
    },
  }
}
