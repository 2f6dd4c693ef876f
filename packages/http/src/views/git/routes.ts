/**
 * Git over HTTP at `/git/<home>.git`: stock clone, fetch and push, protocol version 2 and before. Every request is one
 * operation or two; what may be seen or written is decided there.
 * @clause L0.5
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { LIMITS, NodeError, fail, toNodeError } from '@csb/core'
import type { Caller } from '@csb/service'
import { logFault, type Desk, type Handler } from '../../route.ts'
import { requestIdOf } from '../../visit.ts'
import { advertisement, listed, prefixesIn, type Refs, type ServiceName } from './advertise.ts'
import { createByteReader } from './byte-reader.ts'
import { answerFetch, answerOldFetch, readFetch, readOldFetch } from './fetch.ts'
import { bandPkt, readSection } from './pkt-line.ts'
import { createPushPort, readPush } from './push.ts'
import { createReply, type Reply } from './reply.ts'
import { callerOf, homeIn, refusalResponse, sentenceOf } from './visitor.ts'

type Node = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }

/** What all three routes work with. */
type Visit = {
  readonly desk: Desk
  readonly caller: Caller
  readonly home: string
  readonly request: IncomingMessage
  readonly reply: Reply
  /** so long the other side may stand still, either way */
  readonly idleMs: number
  readonly version: 0 | 1 | 2
  readonly options: { readonly requestId: string; readonly signal: AbortSignal }
}

const SERVICES: readonly ServiceName[] = ['git-upload-pack', 'git-receive-pack']

/**
 * One door's routes; together they take on so many requests at once and no more.
 * @param idleMs so long a client may stand still, either way
 */
export function createGitHandlers(idleMs: number = LIMITS.streamIdleMs): readonly Handler[] {
  let open = 0
  const within = (work: (visit: Visit, c: Context) => Promise<void>) => async (c: Context, desk: Desk) => {
    if (open >= LIMITS.gitRequests) return refusalResponse(new NodeError('BUSY', { maxRequests: LIMITS.gitRequests }))
    open++
    try {
      return await attend(c, desk, work, idleMs)
    } finally {
      open--
    }
  }
  return [
    {
      method: 'GET',
      path: '/git/{repository}/info/refs',
      summary: 'Git: names of a home, `repository` being `<home>.git`; the token is the password',
      open: false,
      handle: within(advertise),
    },
    {
      method: 'POST',
      path: '/git/{repository}/git-upload-pack',
      summary: 'Git: fetch',
      open: false,
      handle: within(upload),
    },
    {
      method: 'POST',
      path: '/git/{repository}/git-receive-pack',
      summary: 'Git: push',
      open: false,
      handle: within(receive),
    },
  ]
}

async function attend(
  c: Context,
  desk: Desk,
  work: (visit: Visit, c: Context) => Promise<void>,
  idleMs: number,
): Promise<Response> {
  const { incoming, outgoing } = c.env as Node
  const requestId = requestIdOf(c.req.raw.headers, desk.clock)
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  const reply = createReply(outgoing, idleMs)
  try {
    const visit: Visit = {
      desk,
      caller: callerOf(incoming.headers.authorization),
      home: homeIn(c.req.param('repository') ?? ''),
      request: incoming,
      reply,
      idleMs,
      version: versionOf(incoming.headers['git-protocol']),
      options: { requestId, signal: AbortSignal.any([gone.signal, desk.closing]) },
    }
    await work(visit, c)
    reply.end()
    return RESPONSE_ALREADY_SENT
  } catch (error) {
    logFault(desk, error, requestId, c.req.path)
    if (!reply.isBegun) return refusalResponse(toNodeError(error))
    const reason = toNodeError(error)
    // who reads nothing is told nothing
    if (reason.code === 'TIMEOUT') reply.abort()
    else await tellFault(reply, sentenceOf(reason))
    return RESPONSE_ALREADY_SENT
  }
}

async function advertise(visit: Visit, c: Context): Promise<void> {
  const { desk, caller, home, reply, version, options } = visit
  const service =
    SERVICES.find((name) => name === c.req.query('service')) ??
    fail('INVALID_INPUT', { field: 'service', reason: 'only smart clients are served' })
  const ends = service === 'git-upload-pack' && version !== 2
  const push = service === 'git-receive-pack'
  const refs = (await desk.service.perform(caller, 'git.refs', { home, ends, push }, options)) as Refs
  reply.begin(`application/x-${service}-advertisement`)
  await reply.write(advertisement(service, version, refs))
}

async function upload(visit: Visit): Promise<void> {
  const { desk, caller, home, request, reply, idleMs, version, options } = visit
  const reader = createByteReader(request, idleMs)
  if (version !== 2) {
    const ask = await readOldFetch(reader)
    if (ask === undefined) return reply.begin('application/x-git-upload-pack-result')
    return answerOldFetch(reply, ask, desk.service.open(caller, 'git.fetch', { home, ...ask.input }, options))
  }
  const { lines, mark } = await readSection(reader)
  const asked = mark === 'delim' ? (await readSection(reader)).lines : []
  const command = lines.find((line) => line.startsWith('command='))?.slice('command='.length)
  if (command === 'ls-refs') {
    const prefixes = prefixesIn(asked)
    // where many are asked for all are told, and the client is given what it wants of them
    const isAll = prefixes.length > LIMITS.gitRefPrefixes || prefixes.includes('')
    const told = isAll ? {} : { prefixes }
    const refs = (await desk.service.perform(caller, 'git.refs', { home, ...told }, options)) as Refs
    reply.begin('application/x-git-upload-pack-result')
    return reply.write(listed(refs, asked))
  }
  if (command !== 'fetch') fail('UNKNOWN_OPERATION', { command: command?.slice(0, 64) ?? null })
  const ask = readFetch(asked)
  return answerFetch(reply, ask, desk.service.open(caller, 'git.fetch', { home, ...ask.input }, options))
}

async function receive(visit: Visit): Promise<void> {
  const { desk, caller, home, request, reply, idleMs, options } = visit
  const reader = createByteReader(request, idleMs)
  const ask = await readPush(reader)
  if (ask === undefined) {
    // git asks first whether it may: a caller without a lease is told so before it sends much
    await desk.service.perform(caller, 'git.refs', { home, push: true }, options)
    return reply.begin('application/x-git-receive-pack-result')
  }
  const port = createPushPort(reader, reply, ask)
  await desk.service.attend(caller, 'git.push', { home, ...ask.input }, port, options)
  await port.finish()
}

/** Half an answer is on its way: git shows a fault on the third channel; without one the connection is cut. */
async function tellFault(reply: Reply, sentence: string): Promise<void> {
  await reply.write(...bandPkt(3, Buffer.from(`${sentence}\n`))).catch(() => undefined)
  reply.abort()
}

function versionOf(header: string | readonly string[] | undefined): 0 | 1 | 2 {
  const asked = /(?:^|:)version=([12])(?:$|:)/.exec(String(header ?? ''))?.[1]
  if (asked === '2') return 2
  return asked === '1' ? 1 : 0
}
