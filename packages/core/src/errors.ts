/**
 * The one table of error codes: what went wrong, what each door answers, whether trying again helps.
 *
 * A thing that refuses calls {@link fail}; details are data, never prose. Doors map by this table and
 * add nothing. A test holds the table and the README list together, both ways.
 */

/** One row: sentence for a person, HTTP status, JSON-RPC code, CLI exit code, whether a retry may succeed. */
export type ErrorRow = {
  readonly message: string
  readonly status: number
  readonly rpc: number
  readonly exit: number
  readonly retryable: boolean
}

const row = (message: string, status: number, rpc: number, exit: number, retryable = false): ErrorRow => ({
  message,
  status,
  rpc,
  exit,
  retryable,
})

/** Exit codes of the command: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable. */
export const EXIT = { ok: 0, fault: 1, input: 2, refused: 3, missing: 4, unreachable: 5 } as const

export const ERRORS = {
  INTERNAL: row('Something failed inside the node. The log has the request id.', 500, -32603, EXIT.fault),
  INVALID_INPUT: row('The input does not fit its schema.', 422, -32602, EXIT.input),
  MALFORMED: row('The bytes can not be read as what they claim to be.', 400, -32700, EXIT.input),
  TOO_LARGE: row('The input is larger than the limit named in the details.', 413, -32600, EXIT.input),
  UNKNOWN_OPERATION: row('There is no operation of that name.', 404, -32601, EXIT.input),
  CONTENT_TYPE: row('The body must be JSON, and say so in its Content-Type.', 415, -32005, EXIT.input),
  VERSION_MISMATCH: row('The other side speaks a version this node does not.', 400, -32009, EXIT.input),
  UNAUTHENTICATED: row('Who is asking could not be established.', 401, -32010, EXIT.refused),
  LEASE_REQUIRED: row('Nothing happens without a lease. Present one.', 401, -32011, EXIT.refused),
  LEASE_EXPIRED: row('The lease has expired.', 403, -32012, EXIT.refused),
  LEASE_REVOKED: row('The lease has been revoked.', 403, -32013, EXIT.refused),
  SCOPE_EXCEEDED: row('The lease does not reach that far. The details name the field.', 403, -32014, EXIT.refused),
  GRANT_INVALID: row('The grant failed a check. The details name it.', 403, -32015, EXIT.refused),
  PROTECTED: row('That branch is protected. It moves only by an approved merge.', 403, -32016, EXIT.refused),
  GATE_REQUIRED: row('A person must approve that first. The details name the card.', 403, -32042, EXIT.refused),
  GATE_STALE: row('What was approved is not what is there now. Nothing was done.', 409, -32043, EXIT.refused),
  CLEARANCE: row('The clearance of the other side does not cover that.', 403, -32017, EXIT.refused),
  DENIED: row('The policy of this node denies that.', 403, -32018, EXIT.refused),
  SENDER_MISMATCH: row('The sender named is not the peer that sent it.', 403, -32019, EXIT.refused),
  REPLAYED: row('That message was seen before.', 409, -32020, EXIT.refused),
  EXPIRED: row('That message is past its time to live.', 403, -32040, EXIT.refused),
  NOT_FOUND: row('There is no such thing here, or it is not yours to see.', 404, -32001, EXIT.missing),
  FORGOTTEN: row('That was forgotten and does not come back.', 410, -32021, EXIT.missing),
  CONFLICT: row('It changed meanwhile. Read it again and retry.', 409, -32022, EXIT.unreachable, true),
  ALREADY_HERE: row('That is here already, and stays as it is.', 409, -32045, EXIT.input),
  TASK_NOT_CANCELABLE: row('That task has already ended.', 400, -32002, EXIT.input),
  UNSUPPORTED_OPERATION: row('That operation is not supported for this task or agent.', 400, -32004, EXIT.input),
  AGENT_FAILED: row('The agent ended with an error. The details say how.', 502, -32006, EXIT.fault, true),
  AGENT_TIMEOUT: row('The agent did not answer before its deadline.', 504, -32023, EXIT.unreachable, true),
  AGENT_OUTPUT_TOO_LARGE: row('The agent wrote more than its bound allows.', 502, -32024, EXIT.fault),
  PEER_UNREACHABLE: row('That peer can not be reached now.', 503, -32025, EXIT.unreachable, true),
  PEER_MISBEHAVED: row('The peer broke the protocol. The stream was closed.', 502, -32026, EXIT.fault),
  TIMEOUT: row('No answer before the deadline.', 504, -32027, EXIT.unreachable, true),
  BUSY: row('Too many requests at once. Wait and try again.', 429, -32028, EXIT.unreachable, true),
  RECORD_DAMAGED: row('The record does not verify. The details name the first bad entry.', 500, -32029, EXIT.fault),
  RECORD_HELD: row(
    'A witness knows more of this record than this node. Nothing is written until its owner says so.',
    503,
    -32044,
    EXIT.fault,
  ),
  OBJECT_DAMAGED: row('A stored object does not match its id.', 500, -32030, EXIT.fault),
  HOME_LOCKED: row('Another process holds this data folder. The details name its pid.', 503, -32031, EXIT.unreachable),
  DATA_TOO_NEW: row('This data folder was written by a newer version. Update csb.', 500, -32032, EXIT.input),
  DATA_TOO_OLD: row(
    'This data folder was written by an earlier version, in a form that this one does not read.',
    500,
    -32046,
    EXIT.input,
  ),
  DISK_FULL: row(
    'The disk is full. Nothing was acknowledged. Free space and try again.',
    507,
    -32033,
    EXIT.fault,
    true,
  ),
  PORT_IN_USE: row('That port is taken. Choose another with --port.', 503, -32034, EXIT.unreachable),
  INSECURE_LISTEN: row(
    'Listening beyond this machine needs --insecure, or a proxy with TLS in front.',
    500,
    -32041,
    EXIT.input,
  ),
  NOT_INITIALISED: row('There is no node in that folder. Run csb init first.', 404, -32035, EXIT.missing),
  ALREADY_INITIALISED: row('There is a node in that folder already.', 409, -32036, EXIT.input),
  PASSPHRASE: row('The passphrase is missing or wrong.', 401, -32037, EXIT.refused),
  CONFIG_INVALID: row(
    'The configuration does not fit its schema. The details name the field.',
    500,
    -32039,
    EXIT.input,
  ),
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

/** What is told with an error: plain data, no secrets, no content. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** The only error class that leaves a package. `code` is a row of {@link ERRORS}. */
export class NodeError extends Error {
  override readonly name = 'NodeError'
  readonly code: ErrorCode
  readonly details: ErrorDetails
  /** somebody else said so: the details are that one's words */
  readonly isTold: boolean

  constructor(code: ErrorCode, details: ErrorDetails = {}, cause?: unknown, isTold = false) {
    super(ERRORS[code].message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
    this.isTold = isTold
  }

  get row(): ErrorRow {
    return ERRORS[this.code]
  }

  /** The form that crosses every border: `{code, message, retryable, details}`. */
  toJSON(): { code: ErrorCode; message: string; retryable: boolean; details: ErrorDetails } {
    return { code: this.code, message: this.message, retryable: this.row.retryable, details: this.details }
  }
}

/**
 * Refuse or give up.
 * @param code a row of {@link ERRORS}
 * @param details plain data that says which check failed and what would have passed
 * @param cause the foreign error this one wraps
 * @throws NodeError always
 */
export function fail(code: ErrorCode, details: ErrorDetails = {}, cause?: unknown): never {
  throw new NodeError(code, details, cause)
}

/** True for an error of ours, and of `code` where one is given. */
export function isNodeError(error: unknown, code?: ErrorCode): error is NodeError {
  return error instanceof NodeError && (code === undefined || error.code === code)
}

/** Wrap whatever was thrown: ours pass, the disk's and the runtime's known ones get their code, the rest is INTERNAL. */
export function toNodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ENOSPC' || /No space left on device/.test(messageOf(error)))
    return new NodeError('DISK_FULL', {}, error)
  if (code === 'EADDRINUSE') return new NodeError('PORT_IN_USE', {}, error)
  const name = (error as { name?: unknown } | null)?.name
  if (name === 'TimeoutError') return new NodeError('TIMEOUT', {}, error)
  return new NodeError('INTERNAL', {}, error)
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return error.cause instanceof Error ? `${error.message} ${error.cause.message}` : error.message
}

/** Read an error's wire form back, so that a code survives a hop. Unknown codes become INTERNAL. */
export function errorFromJSON(value: unknown): NodeError {
  const { code, details } = (value ?? {}) as { code?: unknown; details?: unknown }
  if (typeof code !== 'string' || !Object.hasOwn(ERRORS, code)) return new NodeError('INTERNAL', {}, undefined, true)
  return new NodeError(
    code as ErrorCode,
    typeof details === 'object' && details !== null ? (details as ErrorDetails) : {},
    undefined,
    true,
  )
}
