/**
 * Agent cards, open to everybody: the signed JSON as the service gives it, with an ETag, so that who knows it
 * need not read it again. Nothing of the request gets into it.
 */
import type { Context } from 'hono'
import { sha256Hex, toNodeError } from '@csb/core'
import { problemResponse } from './problem.ts'
import { logFault, type Desk, type Handler } from './route.ts'
import { callerOf, requestIdOf } from './visit.ts'

export const CARD_HANDLERS: readonly Handler[] = [
  {
    method: 'GET',
    path: '/.well-known/agent-card.json',
    summary: 'Signed A2A card of this node',
    open: true,
    handle: (c, desk) => card(c, desk, desk.defaultAgent()),
  },
  {
    method: 'GET',
    path: '/agents/{agent}/agent-card.json',
    summary: 'Signed A2A card of an agent',
    open: true,
    handle: (c, desk) => card(c, desk, c.req.param('agent')),
  },
  {
    method: 'GET',
    path: '/agents/{did}/{agent}/agent-card.json',
    summary: 'Card of an agent on another node, reached through this one',
    open: false,
    handle: (c, desk) => card(c, desk, c.req.param('agent'), c.req.param('did')),
  },
]

const MAX_AGE_SECONDS = 60

async function card(c: Context, desk: Desk, agent: string | undefined, did?: string): Promise<Response> {
  const { headers } = c.req.raw
  const requestId = requestIdOf(headers, desk.clock)
  try {
    const relayed = did === undefined ? {} : { did, relay: true }
    const input = { ...(agent === undefined ? {} : { agent }), ...relayed }
    const body = JSON.stringify(await desk.service.perform(callerOf(headers), 'agents.card', input, { requestId }))
    const etag = `"${sha256Hex(body)}"`
    // a card that took a lease to see is for no shared cache
    const scope = did === undefined ? 'public' : 'private'
    const caching = { ETag: etag, 'Cache-Control': `${scope}, max-age=${MAX_AGE_SECONDS}` }
    if (matches(headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers: caching })
    return new Response(body, {
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff', ...caching },
    })
  } catch (error) {
    logFault(desk, error, requestId, c.req.path)
    return problemResponse(toNodeError(error), requestId)
  }
}

const matches = (header: string | null, etag: string): boolean =>
  header !== null && header.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)
