/**
 * A response that is written as it comes, no faster than it is read; a reader that takes nothing for too long is cut.
 * With side-band: the pack on one channel, words for a person on another, a fault on the third.
 */
import type { ServerResponse } from 'node:http'
import { fail } from '@csb/core'
import { withinSilence } from '../../silence.ts'
import { FLUSH, LINE_BYTES, bandPkt } from './pkt-line.ts'

export type Reply = {
  readonly isBegun: boolean
  begin(contentType: string): void
  /** All parts, one behind the other. */
  write(...parts: readonly Uint8Array[]): Promise<void>
  end(): void
  /** Cut the connection: what was sent must not be taken for whole. */
  abort(): void
}

export type Band = {
  /** the pack, or the report of a push */
  data(bytes: Uint8Array): Promise<void>
  /** one or more whole lines */
  words(text: string): Promise<void>
  fault(text: string): Promise<void>
  close(): Promise<void>
}

/**
 * @param idleMs so long a reader may take nothing
 * @throws TIMEOUT where the reader stands still, PEER_UNREACHABLE where it is gone
 */
export function createReply(response: ServerResponse, idleMs: number): Reply {
  return {
    get isBegun() {
      return response.headersSent
    },
    begin: (contentType) => {
      response.writeHead(200, {
        'Content-Type': contentType,
        'Cache-Control': 'no-cache, max-age=0, must-revalidate',
        'X-Content-Type-Options': 'nosniff',
      })
    },
    write: async (...parts) => {
      if (response.destroyed) fail('PEER_UNREACHABLE', { reason: 'the reader is gone' })
      const hasRoom = parts.map((part) => response.write(part))
      if (hasRoom.at(-1) !== false) return
      await withinSilence(drained(response), idleMs)
    },
    end: () => {
      response.end()
    },
    abort: () => {
      response.destroy()
    },
  }
}

/** @param framed false for a client that knows no side-band: words are dropped */
export function createBand(reply: Reply, framed: boolean): Band {
  const send = async (channel: number, bytes: Uint8Array): Promise<void> => {
    const most = LINE_BYTES - 1
    for (let at = 0; at < bytes.byteLength; at += most)
      await reply.write(...bandPkt(channel, bytes.subarray(at, at + most)))
  }
  return {
    data: (bytes) => (framed ? send(1, bytes) : reply.write(bytes)),
    words: async (text) => {
      if (framed) await send(2, Buffer.from(text))
    },
    fault: async (text) => {
      if (framed) await send(3, Buffer.from(text))
    },
    close: async () => {
      if (framed) await reply.write(FLUSH)
    },
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
