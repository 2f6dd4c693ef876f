/**
 * Why a grant or a message authority was not honoured: one closed list of words, the same in refusals,
 * in downgraded messages, in the record and in replies.
 *
 * A reason never carries content of the document that failed, only which check and which field.
 * @clause DEL-003.3.2
 */
import { fail, isNodeError } from '@csb/core'

/** Every reason there is. */
export const REASONS = [
  'malformed',
  'ambiguous',
  'unknown_version',
  'wrong_audience',
  'not_yet_valid',
  'expired',
  'clock_suspect',
  'payload_mismatch',
  'replayed',
  'chain_shape',
  'too_deep',
  'cycle',
  'broken_link',
  'widened_scope',
  'widened_level',
  'widened_time',
  'widened_lease',
  'type_rule',
  'untrusted_root',
  'over_ceiling',
  'bad_signature',
  'weak_key',
  'holder_mismatch',
  'revoked',
  'revocation_stale',
  'out_of_scope',
  'level_exceeds',
  'already_used',
] as const

export type Reason = (typeof REASONS)[number]

/** Where in a chain a check failed. */
export type Where = {
  /** member of the document */
  readonly field?: string
  /** number of the grant in its chain, the root is 0 */
  readonly link?: number
  /** id of the card that was decided on before, and what became of it */
  readonly card?: string
  readonly state?: string
}

/**
 * Refuse a grant or an authority.
 * @throws GRANT_INVALID always, with `{reason, field?, link?}`
 */
export function refuse(reason: Reason, where: Where = {}): never {
  fail('GRANT_INVALID', { reason, ...where })
}

/** The reason of a GRANT_INVALID made here; undefined for every other error. */
export function reasonOf(error: unknown): Reason | undefined {
  if (!isNodeError(error, 'GRANT_INVALID')) return undefined
  return REASONS.find((reason) => reason === error.details['reason'])
}
