/** What came of a handoff, in lines. */
import { t } from './texts.ts'

export type Handed = {
  readonly outcome: string
  /** ids of notes that the peer may not see */
  readonly withheld: readonly string[]
  readonly branch?: string
}

/** That nothing of what was named went along is said first: whatever the agent made of it, it made without. */
export function handedText(done: Handed, named: readonly string[]): string {
  const isNothing = named.length > 0 && named.every((id) => done.withheld.includes(id))
  return [
    ...(isNothing ? [t('handoff.nothing')] : []),
    t('handoff.done', done),
    ...(done.branch === undefined ? [] : [t('handoff.result', { branch: done.branch })]),
    ...(done.withheld.length === 0 ? [] : [t('handoff.withheld', { ids: done.withheld.join(', ') })]),
  ].join('\n')
}
