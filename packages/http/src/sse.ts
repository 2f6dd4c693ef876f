/**
 * Server-sent events: pulled, so a slow reader slows the source and fills no memory; a comment fills silence,
 * so no proxy takes the stream for dead; when the reader goes, the source is left.
 */
import { delay, utf8 } from '@csb/core'

/** `id` becomes the event's id; `json` is one value on one line. */
export type ServerEvent = { readonly id?: string | undefined; readonly json: unknown }

export type EventStreamInit = {
  readonly events: AsyncIterator<ServerEvent, unknown, undefined>
  /** what was already taken from `events` */
  readonly first: IteratorResult<ServerEvent, unknown>
  readonly heartbeatMs: number
  readonly headers?: Readonly<Record<string, string>>
}

const KEEP_ALIVE = utf8(': keep-alive\n\n')

export function eventStream({ events, first, heartbeatMs, headers }: EventStreamInit): Response {
  let next: Promise<IteratorResult<ServerEvent, unknown>> | undefined = Promise.resolve(first)
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      next ??= events.next()
      const result = await orSilence(next, heartbeatMs)
      if (result === undefined) {
        controller.enqueue(KEEP_ALIVE)
        return
      }
      next = undefined
      if (result.done === true) controller.close()
      else controller.enqueue(encode(result.value))
    },
    cancel: () => {
      // a source that waits for its next event ends by the signal of its request; its return is not waited for
      events.return?.(undefined).catch(() => undefined)
    },
  })
  return new Response(body, {
    headers: {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
    },
  })
}

/** Undefined where nothing came for so long. */
async function orSilence<T>(next: Promise<T>, heartbeatMs: number): Promise<T | undefined> {
  const settled = new AbortController()
  const silence = delay(heartbeatMs, settled.signal).then(
    () => undefined,
    () => undefined,
  )
  try {
    return await Promise.race([next, silence])
  } finally {
    settled.abort()
  }
}

function encode({ id, json }: ServerEvent): Uint8Array {
  return utf8(`${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(json)}\n\n`)
}
