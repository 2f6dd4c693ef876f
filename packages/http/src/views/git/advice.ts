/** What somebody who pushes by git can do about a refusal: one line for the screen, that says nothing of what is hidden. */
import type { ErrorCode, ErrorDetails } from '@csb/core'

type Refusal = { readonly code: ErrorCode; readonly details: ErrorDetails }

/** Above this a file comes whole, in git's words. */
const WHOLE = 'core.bigFileThreshold=16m'

const ADVICE: Partial<Record<ErrorCode, string>> = {
  CONFLICT: 'somebody was quicker: git pull --rebase, then push again',
  FORGOTTEN: 'take it out of every commit that is pushed (git rebase -i @{upstream}); it does not come back',
  INVALID_INPUT: 'mend it in every commit that is pushed (git rebase -i @{upstream}), then push again',
  DENIED: 'leave it out of the commits; the owner can do it: csb label --help',
  SCOPE_EXCEEDED: 'push to what the lease names, or ask the owner for another: csb lease --help',
  CLEARANCE: 'push a branch on what you fetched, or ask the owner for a lease that sees more',
  NOT_FOUND: 'fetch again and build on what is there: git pull --rebase, then push again',
  DISK_FULL: 'the node has no room left; nothing was taken in',
  BUSY: 'push again in a moment',
  TIMEOUT: 'the line stood still for too long; push again, in parts where it is slow',
  MALFORMED: 'look for what is broken on your side: git fsck --strict',
}

/** @returns undefined where nothing helps but reading the refusal */
export function adviceOn({ code, details }: Refusal): string | undefined {
  const { hint, kind } = details
  if (typeof hint === 'string') return hint
  if (code !== 'TOO_LARGE') return ADVICE[code]
  if (kind === 'delta')
    return `send large files whole: git -c ${WHOLE} push; where they are packed: git -c ${WHOLE} repack -adF first`
  if (kind === undefined) return 'push in parts: git push <remote> <an older commit>:<branch>, then the rest'
  return 'leave that out of the commits: git rebase -i @{upstream}'
}
