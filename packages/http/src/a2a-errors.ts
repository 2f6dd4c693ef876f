/**
 * Errors of the A2A gateway as JSON-RPC 2.0 error objects with google.rpc details (A2A 1.0.1 section 5.4 and 9.5):
 * the code of the table, `ErrorInfo` for programs, `BadRequest` for each member that is wrong.
 */
import { isNodeError, type NodeError } from '@csb/core'
import { headersOf, jsonResponse } from './problem.ts'

export type RpcId = string | number | null

type Detail = { readonly '@type': string; readonly [member: string]: unknown }
export type RpcError = { readonly code: number; readonly message: string; readonly data: readonly Detail[] }

/** Faults of the protocol itself, which no operation of this node knows. */
const FAULTS = {
  INVALID_REQUEST: [-32600, 'That is no JSON-RPC 2.0 request with an id.'],
  BATCH_NOT_SUPPORTED: [-32600, 'Batches are not taken. Send one request at a time.'],
  METHOD_NOT_FOUND: [-32601, 'There is no such method in the A2A version asked for.'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 'Push notifications are not supported. Subscribe to the task.'],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: [-32007, 'There is no extended agent card.'],
  VERSION_NOT_SUPPORTED: [-32009, 'That A2A version is not spoken here.'],
} as const satisfies Record<string, readonly [code: number, message: string]>

type FaultReason = keyof typeof FAULTS

/** Names that A2A gives to errors of ours. */
const REASONS: Readonly<Partial<Record<NodeError['code'], string>>> = {
  NOT_FOUND: 'TASK_NOT_FOUND',
  TASK_NOT_CANCELABLE: 'TASK_NOT_CANCELABLE',
  UNSUPPORTED_OPERATION: 'UNSUPPORTED_OPERATION',
  CONTENT_TYPE: 'CONTENT_TYPE_NOT_SUPPORTED',
  AGENT_FAILED: 'INVALID_AGENT_RESPONSE',
  VERSION_MISMATCH: 'VERSION_NOT_SUPPORTED',
}

/** Refusals that HTTP itself has a status for; everything else is 200 with an error inside, as JSON-RPC has it. */
const HTTP_STATUSES = new Set([400, 401, 403, 413, 415, 429])

/** Never leaves this package. */
export class RpcFault extends Error {
  override readonly name = 'RpcFault'
  readonly reason: FaultReason
  readonly metadata: Readonly<Record<string, string>>

  constructor(reason: FaultReason, metadata: Readonly<Record<string, string>> = {}) {
    super(FAULTS[reason][1])
    this.reason = reason
    this.metadata = metadata
  }
}

/** @param error a NodeError or an RpcFault; see `toNodeError` for others */
export function rpcErrorOf(error: NodeError | RpcFault, requestId: string): RpcError {
  if (error instanceof RpcFault) {
    const metadata = { ...error.metadata, request_id: requestId }
    return {
      code: FAULTS[error.reason][0],
      message: error.message,
      data: [errorInfo(error.reason, A2A_DOMAIN, metadata)],
    }
  }
  const { code, message, row, details } = error
  const reason = REASONS[code]
  const metadata = { ...scalarsOf(details), code, retryable: String(row.retryable), request_id: requestId }
  const violations = violationsOf(error)
  return {
    code: row.rpc,
    message,
    data: [
      errorInfo(reason ?? code, reason === undefined ? CSB_DOMAIN : A2A_DOMAIN, metadata),
      ...(violations.length === 0
        ? []
        : [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }]),
    ],
  }
}

/** The error as a whole response. */
export function rpcErrorResponse(id: RpcId, error: NodeError | RpcFault, requestId: string): Response {
  const status = error instanceof RpcFault ? 200 : error.row.status
  return jsonResponse(
    { jsonrpc: '2.0', id, error: rpcErrorOf(error, requestId) },
    isTransportError(error) && HTTP_STATUSES.has(status) ? status : 200,
    { 'X-Request-Id': requestId, ...(error instanceof RpcFault ? {} : headersOf(error)) },
  )
}

const A2A_DOMAIN = 'a2a-protocol.org'
const CSB_DOMAIN = 'csb'

/** 400 is for what could not be read; a well-read request that can not be done is answered with 200. */
const isTransportError = (error: NodeError | RpcFault): boolean =>
  !(error instanceof RpcFault) && (error.row.status !== 400 || isNodeError(error, 'MALFORMED'))

const errorInfo = (reason: string, domain: string, metadata: Readonly<Record<string, string>>): Detail => ({
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason,
  domain,
  metadata,
})

/** ErrorInfo carries text only; lists and objects are told as field violations or not at all. */
function scalarsOf(details: Readonly<Record<string, unknown>>): Record<string, string> {
  const scalars: Record<string, string> = {}
  for (const [name, value] of Object.entries(details)) {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      scalars[name] = String(value)
  }
  return scalars
}

function violationsOf({ details }: NodeError): { field: string; description: string }[] {
  const errors = Array.isArray(details['errors'])
    ? (details['errors'] as readonly { path?: unknown; message?: unknown }[])
    : []
  return errors.map(({ path, message }) => ({
    field:
      typeof path === 'string'
        ? path
            .slice(1)
            .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
            .replaceAll('/', '.')
        : '',
    description: typeof message === 'string' ? message : 'is not valid',
  }))
}
