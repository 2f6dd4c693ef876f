/**
 * Errors as RFC 9457 problems, by the table of codes and nothing else: no HTML, no stack, no sentence made here.
 */
import type { NodeError } from '@csb/core'

/** The body of every REST error. */
export type Problem = {
  /** `urn:csb:error:<CODE>` */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  readonly retryable: boolean
  readonly request_id: string
  readonly details: Readonly<Record<string, unknown>>
}

export function problemOf(error: NodeError, requestId: string): Problem {
  const { status, retryable } = error.row
  return {
    type: `urn:csb:error:${error.code}`,
    title: error.message,
    status,
    code: error.code,
    retryable,
    request_id: requestId,
    details: error.details,
  }
}

/** The problem as a response. */
export function problemResponse(error: NodeError, requestId: string): Response {
  return jsonResponse(problemOf(error, requestId), error.row.status, {
    'Content-Type': 'application/problem+json',
    ...headersOf(error),
  })
}

/** What HTTP wants beside the status: how to authenticate, that a retry should wait. */
export function headersOf(error: NodeError): Record<string, string> {
  if (error.row.status === 401) return { 'WWW-Authenticate': 'Bearer realm="csb"' }
  return error.code === 'BUSY' ? { 'Retry-After': '1' } : {}
}

/** JSON that no browser will take for something else, and no cache keeps. */
export function jsonResponse(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
    },
  })
}
