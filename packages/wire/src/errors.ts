/**
 * Foreign errors of streams, dials and queries become codes of our table, in one place.
 *
 * It never passes a text of the library on: names only, as details.
 */
import { NodeError, isNodeError, toNodeError, type ErrorCode } from '@csb/core'

/** Names of errors that libp2p and its parts throw, and what they mean to a caller. */
const NAMES: Readonly<Record<string, ErrorCode>> = {
  TimeoutError: 'TIMEOUT',
  AbortError: 'TIMEOUT',
  InvalidDataLengthError: 'TOO_LARGE',
  InvalidDataLengthLengthError: 'MALFORMED',
  InvalidMessageLengthError: 'MALFORMED',
  UnexpectedEOFError: 'PEER_MISBEHAVED',
  StreamBufferError: 'PEER_MISBEHAVED',
  UnsupportedProtocolError: 'VERSION_MISMATCH',
  TooManyOutboundProtocolStreamsError: 'BUSY',
  RateLimitError: 'BUSY',
}

const UNREACHABLE =
  /^(?:Stream|Connection|Muxer|Dial|NoValid|Encryption|Limited|NotFound|NotStarted|Transport|Aggregate|Invalid|Unexpected|Upgrade|Protocol|Timeout|Queue|ECONN)/

/**
 * Give any thrown value its code. Errors of ours pass unchanged; a `close` event stands for the error it carries.
 * @param thrown an error, or the close event that libp2p sometimes throws in its place
 * @param otherwise code of what can not be told apart
 */
export function wireError(thrown: unknown, otherwise: ErrorCode = 'PEER_UNREACHABLE'): NodeError {
  if (isNodeError(thrown)) return thrown
  const error = carried(thrown)
  if (isNodeError(error)) return error
  const name = nameOf(error)
  const code = NAMES[name]
  if (code !== undefined) return new NodeError(code, { reason: name }, error)
  if (UNREACHABLE.test(name)) return new NodeError('PEER_UNREACHABLE', { reason: name }, error)
  const known = toNodeError(error)
  return known.code === 'INTERNAL' ? new NodeError(otherwise, { reason: name }, error) : known
}

/** The same while a way to a peer is made: whatever breaks then, the peer was not reached. */
export function dialError(thrown: unknown): NodeError {
  const error = wireError(thrown)
  if (isNodeError(thrown) || ['TIMEOUT', 'BUSY', 'VERSION_MISMATCH'].includes(error.code)) return error
  return new NodeError('PEER_UNREACHABLE', error.details, thrown)
}

function carried(thrown: unknown): unknown {
  if (thrown instanceof Error) return thrown
  const inner = (thrown as { error?: unknown } | null | undefined)?.error
  return inner instanceof Error ? inner : Object.assign(new Error('the stream ended'), { name: 'StreamClosedError' })
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
