/**
 * Texts that people see and rooms below the command say: what stands on the screen of somebody who uses git alone. The
 * command's catalogue takes them in, so that there is one. Rooms say a key and what belongs into it; a door puts them
 * together.
 */
import type { ErrorDetails } from './errors.ts'

/** Above this a file comes whole, in git's words. */
const WHOLE = 'core.bigFileThreshold=16m'

/** `git.advice.<CODE>`, or with a word of the details behind it: what can be done about a refusal. Nothing of what is hidden. */
export const GIT_TEXTS = {
  'git.advice.CONFLICT': 'somebody was quicker: git pull --rebase, then push again',
  'git.advice.FORGOTTEN':
    'take it out of every commit that is pushed (git rebase -i @{upstream}); it does not come back',
  'git.advice.FORGOTTEN.head': 'take it away in a further commit (git rm), then push again',
  'git.advice.INVALID_INPUT': 'mend it in every commit that is pushed (git rebase -i @{upstream}), then push again',
  'git.advice.INVALID_INPUT.nothing': 'commit what is to be proposed, then push again; what is there: git log',
  'git.advice.INVALID_INPUT.name': 'name it otherwise, within the paths of the lease: git mv, then push again',
  'git.advice.DENIED': 'leave it out of the commits; the owner can do it: csb label --help',
  'git.advice.DENIED.label': 'label it in .csb/labels.json by a further commit, then push again',
  'git.advice.SCOPE_EXCEEDED': 'push to what the lease names, or ask the owner for another: csb lease --help',
  'git.advice.CLEARANCE': 'push a branch on what you fetched, or ask the owner for a lease that sees more',
  'git.advice.NOT_FOUND': 'fetch again and build on what is there: git pull --rebase, then push again',
  'git.advice.PROTECTED.propose': 'git push <remote> HEAD:refs/for/{branch}',
  'git.advice.DISK_FULL': 'the node has no room left; nothing was taken in',
  'git.advice.BUSY': 'push again in a moment',
  'git.advice.TIMEOUT': 'the line stood still for too long; push again, in parts where it is slow',
  'git.advice.MALFORMED': 'look for what is broken on your side: git fsck --strict',
  'git.advice.TOO_LARGE.push': 'push in parts: git push <remote> <an older commit>:<branch>, then the rest',
  'git.advice.TOO_LARGE.delta': `send large files whole: git -c ${WHOLE} push; where they are packed: git -c ${WHOLE} repack -adF first`,
  'git.advice.TOO_LARGE': 'leave that out of the commits: git rebase -i @{upstream}',

  'git.landed.one': '{name}: the change was taken in under new ids; go on from there: git pull --rebase',
  'git.landed.many':
    '{name}: the changes of {steps} commits were taken in under new ids; go on from there: git pull --rebase',
  'git.placed': '{name}: {path} was taken in as {at}',
  'git.proposed': 'proposed as {branch}; the owner decides: csb gate show {card}',

  'git.stage.receiving': 'receiving',
  'git.stage.resolving': 'resolving {objects} objects',
  'git.stage.checking': 'checking {objects} objects',
  'git.stage.storing': 'storing {objects} objects',
  'git.stage.sending': 'Sending {objects} objects',
} as const

/** What is to be said: a key of the catalogue, and the values that stand in it by name. */
export type GitText = { readonly text: keyof typeof GIT_TEXTS; readonly values: ErrorDetails }

const NAMED = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g

/** A text with its `{names}` filled in; `{name|one|many}` is a number and what is counted, in one of both. */
export function fillText(text: string, values: ErrorDetails): string {
  return text.replaceAll(NAMED, (_, name: string, one?: string, many?: string) => {
    const value = wordOf(values[name])
    return one === undefined ? value : `${value} ${value === '1' ? one : many}`
  })
}

/** The names that a text takes. */
export const namesIn = (text: string): string[] => [...text.matchAll(NAMED)].map(([, name = '']) => name)

export const gitText = ({ text, values }: GitText): string => fillText(GIT_TEXTS[text], values)

/** A value as it stands in a text. */
export function wordOf(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
