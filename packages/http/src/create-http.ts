/**
 * The HTTP door: one listener, by default on this machine only. It holds no rule: every route is a call of the
 * service, which validates, authorizes and records.
 */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { delay, fail, systemClock, toNodeError, type Clock } from '@csb/core'
import type { Service } from '@csb/service'
import { createApp } from './app.ts'
import { createOriginCheck, isLoopback } from './origin.ts'
import type { Desk, HttpLog } from './route.ts'

export type HttpInit = {
  readonly service: Service
  /** default 127.0.0.1 */
  readonly host?: string
  /** 0: any free port; default 7480 */
  readonly port?: number
  /** listen beyond this machine without TLS in front */
  readonly insecure?: boolean
  /** `https://name[:port]` where a proxy stands in front: its name is taken as ours */
  readonly publicUrl?: string
  /** id of the agent whose card is at /.well-known; undefined: the service chooses */
  readonly defaultAgent?: () => string | undefined
  readonly log?: HttpLog
  readonly clock?: Clock
  /** silence on a stream is filled this often, default 15 s */
  readonly heartbeatMs?: number
  /** so long a client of the git view may stand still, either way; default 60 s */
  readonly streamIdleMs?: number
}

export type Http = {
  /** `publicUrl`, or where it listens; without a slash at the end */
  readonly url: string
  readonly port: number
  /** Ends streams, answers what is under way for a moment more, and stops. */
  close(): Promise<void>
}

const DEFAULT_PORT = 7480
const HEARTBEAT_MS = 15_000
/** How long a request under way may take to end when the door closes. */
const CLOSING_MS = 2_000
const CLOSING_STEP_MS = 20
/** A connection is kept for longer than a client that stalls: one that is ended as its next request comes is a reset. */
const KEPT_MS = 75_000
/** How long one request may take to arrive: a home or a repository comes in one, and a line may be slow. */
const UPLOAD_MS = 6 * 60 * 60_000

/**
 * @throws INSECURE_LISTEN off loopback without `insecure`; PORT_IN_USE; CONFIG_INVALID where `publicUrl` is no URL
 *   or the address is not one of this machine
 */
export async function createHttp(init: HttpInit): Promise<Http> {
  const { service, host = '127.0.0.1', port = DEFAULT_PORT, log = () => undefined } = init
  const publicUrl = checkUrl(init.publicUrl)
  if (!isLoopback(host) && init.insecure !== true) fail('INSECURE_LISTEN', { host })
  const closing = new AbortController()
  const desk: Desk = {
    service,
    clock: init.clock ?? systemClock,
    log,
    defaultAgent: init.defaultAgent ?? (() => undefined),
    heartbeatMs: init.heartbeatMs ?? HEARTBEAT_MS,
    closing: closing.signal,
  }
  let url = publicUrl ?? ''
  const app = createApp(desk, createOriginCheck({ host, publicUrl }), () => url, init.streamIdleMs)
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  server.requestTimeout = UPLOAD_MS
  server.keepAliveTimeout = KEPT_MS
  const bound = await listen(server, host, port)
  url = publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
  log('info', 'http listens', { url, port: bound })
  return {
    url,
    port: bound,
    close: () => {
      closing.abort()
      return stop(server)
    },
  }
}

/** Connections that fall idle are ended as they do; what is still busy after {@link CLOSING_MS} is cut. */
async function stop(server: Server): Promise<void> {
  const closed = new Promise<boolean>((resolve) => {
    server.close(() => resolve(true))
  })
  for (let waitedMs = 0; waitedMs < CLOSING_MS; waitedMs += CLOSING_STEP_MS) {
    server.closeIdleConnections()
    if (await Promise.race([closed, delay(CLOSING_STEP_MS).then(() => false)])) return
  }
  server.closeAllConnections()
  await closed
}

function checkUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    fail('CONFIG_INVALID', { field: 'http.public_url', value: text })
  return text.replace(/\/+$/, '')
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      try {
        if (error.code === 'EADDRINUSE') fail('PORT_IN_USE', { host, port }, error)
        if (error.code === 'EACCES' || error.code === 'EADDRNOTAVAIL')
          fail('CONFIG_INVALID', { field: 'http', host, port, cause: error.code }, error)
        reject(toNodeError(error))
      } catch (refusal) {
        reject(toNodeError(refusal))
      }
    })
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
}
