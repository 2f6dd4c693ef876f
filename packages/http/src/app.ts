/** All routes in one app. Every request passes the origin check; every error leaves as a problem. */
import { Hono } from 'hono'
import { NodeError, toNodeError } from '@csb/core'
import { A2A_HANDLERS } from './a2a-routes.ts'
import { ARCHIVE_HANDLERS } from './archive-routes.ts'
import { AGENT_ROUTES, NODE_ROUTES } from './agent-routes.ts'
import { AUTHORITY_ROUTES, SYNC_ROUTES } from './authority-routes.ts'
import { CAPABILITY_HANDLERS } from './capability-routes.ts'
import { CARD_HANDLERS } from './card-routes.ts'
import { FILES_ROUTES, RECORD_ROUTES } from './files-routes.ts'
import { GATE_ROUTES, LABEL_ROUTES } from './gate-routes.ts'
import { MEMORY_ROUTES } from './memory-routes.ts'
import { openapiDocument } from './openapi.ts'
import type { OriginCheck } from './origin.ts'
import { jsonResponse, problemResponse } from './problem.ts'
import { logFault, mountHandlers, mountRoutes, type Desk, type Handler, type Route } from './route.ts'
import { createGitHandlers } from './views/git/routes.ts'
import { requestIdOf } from './visit.ts'

const ROUTES: readonly Route[] = [
  ...NODE_ROUTES,
  ...MEMORY_ROUTES,
  ...FILES_ROUTES,
  ...RECORD_ROUTES,
  ...AGENT_ROUTES,
  ...AUTHORITY_ROUTES,
  ...SYNC_ROUTES,
  ...LABEL_ROUTES,
  ...GATE_ROUTES,
]

/**
 * @param url where the API is, asked when it is shown: a port may be chosen late
 * @param streamIdleMs so long a client of the git view may stand still; default as {@link createGitHandlers}
 */
export function createApp(desk: Desk, check: OriginCheck, url: () => string, streamIdleMs?: number): Hono {
  const handlers: readonly Handler[] = [
    {
      method: 'GET',
      path: '/healthz',
      summary: 'Whether the node answers',
      open: true,
      handle: () => jsonResponse({ status: 'ok' }),
    },
    {
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document',
      open: true,
      handle: () => jsonResponse(openapiDocument(ROUTES, handlers, url())),
    },
    ...CARD_HANDLERS,
    ...CAPABILITY_HANDLERS,
    ...ARCHIVE_HANDLERS,
    ...A2A_HANDLERS,
    ...createGitHandlers(streamIdleMs),
  ]
  const app = new Hono()
  app.use(async (c, next) => {
    check(c.req.raw.headers)
    await next()
    if (c.res.status >= 400)
      desk.log('debug', 'refused', { method: c.req.method, path: c.req.path, status: c.res.status })
  })
  app.onError((error, c) => {
    const requestId = requestIdOf(c.req.raw.headers, desk.clock)
    logFault(desk, error, requestId, c.req.path)
    return problemResponse(toNodeError(error), requestId)
  })
  app.notFound((c) => {
    const { method, path } = c.req
    const error = new NodeError('UNKNOWN_OPERATION', { method, path: path.slice(0, 256) })
    return problemResponse(error, requestIdOf(c.req.raw.headers, desk.clock))
  })
  mountRoutes(app, ROUTES, desk)
  mountHandlers(app, handlers, desk)
  return app
}
