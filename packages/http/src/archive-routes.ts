/**
 * Homes as one file over HTTP. A download that broke off goes on with `Range` and `If-Range`, as of any large file;
 * an upload is read as it comes and answered when the home is there.
 * @clause L0.4
 */
import type { Context } from 'hono'
import { LIMITS, fail, toNodeError } from '@csb/core'
import type { ExportEvent, ImportEvent, MessagePort } from '@csb/service'
import { jsonResponse, problemResponse } from './problem.ts'
import { logFault, type Desk, type Handler } from './route.ts'
import { withinSilence } from './silence.ts'
import { callerOf, requestIdOf } from './visit.ts'

/** What an archive is called on the wire; plain bytes are taken too. */
const ARCHIVE_TYPE = 'application/vnd.csb.archive'
const TAKEN = new Set([ARCHIVE_TYPE, 'application/octet-stream'])

export const ARCHIVE_HANDLERS: readonly Handler[] = [
  {
    method: 'GET',
    path: '/v1/files/export',
    summary: 'A home as one archive; goes on with Range and If-Range',
    open: false,
    handle: (c, desk) => orProblem(c, desk, (visit) => exportHome(c, desk, visit)),
  },
  {
    method: 'POST',
    path: '/v1/files/import',
    summary: 'Take a home in from an archive',
    open: false,
    handle: (c, desk) => orProblem(c, desk, (visit) => importHome(c, desk, visit)),
  },
]

type Visit = { readonly requestId: string; readonly signal: AbortSignal }
type Asked = { readonly export?: string; readonly offset?: number }

async function exportHome(c: Context, desk: Desk, visit: Visit): Promise<Response> {
  const { headers } = c.req.raw
  const home = c.req.query('home')
  const open = async (asked: Asked) => {
    const input = { ...(home === undefined ? {} : { home }), ...asked }
    const events = desk.service.open(callerOf(headers), 'files.export', input, visit) as AsyncIterable<ExportEvent>
    const iterator = events[Symbol.asyncIterator]()
    const { value } = await iterator.next()
    const begun = value as ExportEvent | undefined
    return begun?.kind === 'begun' ? { begun, iterator } : fail('INTERNAL', { reason: 'an export without a beginning' })
  }
  const asked = askedOf(headers)
  const { begun, iterator } = await open(asked).catch((error: unknown) => {
    // that export is no more: as HTTP has it, what there is now is sent whole
    const { code } = toNodeError(error)
    if (asked.export === undefined || (code !== 'NOT_FOUND' && code !== 'CONFLICT')) throw error
    return open({})
  })
  const { bytes, offset } = begun
  const isPart = offset > 0
  return new Response(bodyOf(iterator), {
    status: isPart ? 206 : 200,
    headers: {
      'Content-Type': ARCHIVE_TYPE,
      'Content-Length': String(bytes - offset),
      ...(isPart ? { 'Content-Range': `bytes ${offset}-${bytes - 1}/${bytes}` } : {}),
      'Content-Disposition': `attachment; filename="${begun.home}.csbar"`,
      'Accept-Ranges': 'bytes',
      ETag: `"${begun.export}"`,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    },
  })
}

/** Only "from here to the end" is a range that is asked for; any other is answered with all, as HTTP allows. */
function askedOf(headers: Headers): Asked {
  const offset = /^bytes=([0-9]{1,15})-$/.exec(headers.get('range') ?? '')?.[1]
  const known = /^"([0-9a-f]{64})"$/.exec(headers.get('if-range') ?? '')?.[1]
  if (offset === undefined || known === undefined) return {}
  return { export: known, offset: Number(offset) }
}

function bodyOf(events: AsyncIterator<ExportEvent>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await events.next()
      if (done === true) controller.close()
      else if (value.kind === 'bytes') controller.enqueue(value.bytes)
    },
    cancel: async () => {
      await events.return?.()
    },
  })
}

async function importHome(c: Context, desk: Desk, visit: Visit): Promise<Response> {
  const { headers, body } = c.req.raw
  const type = (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  // a form or plain text is what a page of another site may send without asking
  if (!TAKEN.has(type)) fail('CONTENT_TYPE', { contentType: type.slice(0, 128), taken: [...TAKEN] })
  const parts = body?.[Symbol.asyncIterator]()
  let done: ImportEvent | undefined
  const port: MessagePort = {
    send: async (message) => {
      done = message as ImportEvent
    },
    receive: async () => {
      if (parts === undefined) return undefined
      // an upload that stands still holds an import open
      const next = await withinSilence(parts.next(), LIMITS.streamIdleMs)
      return next.done === true ? undefined : next.value
    },
    close: async () => undefined,
    abort: () => undefined,
  }
  try {
    await desk.service.attend(callerOf(headers), 'files.import', {}, port, visit)
  } finally {
    // not awaited: it would wait for a piece that may never come
    parts?.return?.().catch(() => undefined)
  }
  return jsonResponse(done ?? null, 201)
}

async function orProblem(c: Context, desk: Desk, work: (visit: Visit) => Promise<Response>): Promise<Response> {
  const requestId = requestIdOf(c.req.raw.headers, desk.clock)
  try {
    return await work({ requestId, signal: AbortSignal.any([c.req.raw.signal, desk.closing]) })
  } catch (error) {
    logFault(desk, error, requestId, c.req.path)
    return problemResponse(toNodeError(error), requestId)
  }
}
