/**
 * Delegation by word of mouth (DEL-003 3.3, third way): a person told the owner of this node that somebody speaks for
 * them, and the owner wrote it down here. No document comes from afar; so it counts only for messages whose sender the
 * stream itself has proved, and only as far as was written down.
 * @clause DEL-003.3.3
 */
import { LIMITS } from '@csb/core'
import type { View } from '@csb/store'
import { isAtMost, isScopeWithin, LEVEL_RANKS, type Rank } from './rank.ts'
import { refuse } from './reasons.ts'
import { effectiveNow } from './record.ts'
import { trusted, type TrustEntry } from './trust.ts'

/** What DEL-002 2.2 asks of an authority, and no more: it claims, and proves nothing. */
export type Claim = {
  readonly delegated_by: string
  readonly scope: readonly string[]
  readonly level: Rank
  /** ms since epoch */
  readonly issued_at: number
  readonly expires_at?: number | null
  readonly delegation_id?: string
}

const MEMBERS = ['delegated_by', 'scope', 'level', 'issued_at', 'expires_at', 'delegation_id']

/** A claim without a signature, a chain or a holder. Whatever else it may be is read as a signed authority. */
export function isClaim(value: unknown): value is Claim {
  if (typeof value !== 'object' || value === null) return false
  const claim = value as Partial<Claim>
  const isText = (text: unknown) => typeof text === 'string' && text !== '' && text.length <= LIMITS.nameChars
  const { scope, expires_at: expiresAt = null } = claim
  return (
    Object.keys(value).every((name) => MEMBERS.includes(name)) &&
    isText(claim.delegated_by) &&
    Array.isArray(scope) &&
    scope.length > 0 &&
    scope.length <= LIMITS.scopeTokens &&
    scope.every(isText) &&
    LEVEL_RANKS.some((level) => level === claim.level) &&
    Number.isSafeInteger(claim.issued_at) &&
    (expiresAt === null || Number.isSafeInteger(expiresAt))
  )
}

/**
 * What the owner wrote down of the sender.
 * @param sender did that the stream proved; undefined where nothing did
 * @throws GRANT_INVALID with `untrusted_root`
 */
export function spokenFor(view: View, sender: string | undefined): TrustEntry & { speaks: object } {
  const entry = sender === undefined ? undefined : trusted(view, sender)
  const speaks = entry?.speaks ?? null
  return entry === undefined || speaks === null ? refuse('untrusted_root') : { ...entry, speaks }
}

/**
 * Does what the owner wrote down of the sender still stand?
 * @param now ms since epoch
 * @throws GRANT_INVALID with `untrusted_root`, `expired`
 */
export function checkSpoken(view: View, sender: string, now: number): void {
  const { speaks } = spokenFor(view, sender) as TrustEntry
  if ((speaks?.until ?? now + 1) <= effectiveNow(view, now)) refuse('expired')
}

/**
 * What the message is about lies within what was written down.
 * @throws GRANT_INVALID with `out_of_scope`
 */
export function checkSpokenScope({ scope }: Claim, { speaks }: TrustEntry): void {
  if (!isScopeWithin(scope, speaks?.scope ?? [])) refuse('out_of_scope')
}

/** @throws GRANT_INVALID with `level_exceeds`, `over_ceiling` */
export function checkSpokenLevel({ level }: Claim, { speaks, ceiling }: TrustEntry): void {
  // override is a root's own signed word
  if (level === 'override' || !isAtMost(level, speaks?.level ?? 'inform')) refuse('level_exceeds')
  if (!isAtMost(level, ceiling)) refuse('over_ceiling')
}

/**
 * @param now ms since epoch
 * @throws GRANT_INVALID with `expired`, `not_yet_valid`
 */
export function checkSpokenTime({ issued_at, expires_at = null }: Claim, { speaks }: TrustEntry, now: number): void {
  if (issued_at > now + LIMITS.clockSkewMs) refuse('not_yet_valid')
  for (const end of [expires_at, speaks?.until ?? null]) if (end !== null && end <= now) refuse('expired')
}
