/**
 * What is looked through before a forgetting is asked for: all history, and the whole record. It is long, so it is done
 * where nobody else waits for it, and kept with the request.
 * @clause L1.5, L3.4
 */
import {
  isSameOwner,
  madeAfterReading,
  payloadsThatMention,
  trusted,
  type DerivedFacts,
  type GateRequest,
} from '@csb/authority'
import { branchesHolding } from '@csb/files'
import { lookForNotes } from '@csb/guard'
import { notePath } from '@csb/memory'
import { key, type View } from '@csb/store'
import type { Parts } from '../operation.ts'

/** Branches told one by one; a person reads no more. */
const TOLD_BRANCHES = 32

/** What may hold words made from the notes, as far as the record tells. */
type Derived = {
  readonly branches: readonly string[]
  readonly commits: number
  /** dids of peers that a note went to with work */
  readonly handed: readonly string[]
}

export type Survey = {
  readonly looked: Awaited<ReturnType<typeof lookForNotes>>
  /** numbers of the entries that name one of the notes or a version of it */
  readonly records: readonly number[]
  readonly derived: Derived
}

/** @throws NOT_FOUND, FORGOTTEN */
export async function surveyNotes(
  { identity }: Pick<Parts, 'identity'>,
  view: View,
  home: string,
  ids: readonly string[],
): Promise<Survey> {
  const looked = await lookForNotes(view, home, ids)
  const versions = new Set(looked.blobs.flat())
  const found = await payloadsThatMention(view, [...new Set([...ids, ...versions])])
  const records = found.map(({ seq }) => seq)
  const paths = new Set(ids.map(notePath))
  const { commits, handed } = await madeAfterReading(
    view,
    records,
    (read) => read.home === home && (paths.has(read.path) || versions.has(read.oid)),
    (actor) => isSameOwner(view, identity.owner.did, actor),
  )
  const { branches, commits: held } = await branchesHolding(view, home, commits, paths)
  const got = handed.filter(({ notes }) => notes.some((id) => ids.includes(id))).map(({ did }) => did)
  return { looked, records, derived: { branches, commits: held, handed: [...new Set(got)].sort() } }
}

/** A survey as a request keeps it. */
export const keptSurvey = ({ looked, records, derived }: Survey) => ({
  looked: JSON.stringify(looked),
  records: records.join(' '),
  derived: JSON.stringify(derived),
})

/** What was looked through when a request was made. */
export const lookedAt = ({ looked }: GateRequest): Survey['looked'] | undefined =>
  looked === undefined ? undefined : (JSON.parse(looked) as Survey['looked'])

/** What was found then of words that were made from the notes, with the owner's names for those who got them. */
export function derivedIn(view: View, { derived }: GateRequest): DerivedFacts {
  const { branches, commits, handed } =
    derived === undefined ? { branches: [], commits: 0, handed: [] } : (JSON.parse(derived) as Derived)
  return {
    branches: branches.slice(0, TOLD_BRANCHES),
    more_branches: Math.max(branches.length - TOLD_BRANCHES, 0),
    commits,
    handed: handed.map((did) => ({ did, name: trusted(view, did)?.name ?? null })),
  }
}

/** Of the entries that named a note when it was asked, those that still do: none can begin to, and some may be erased. */
export const recordsIn = (view: View, { records = '' }: GateRequest): number[] =>
  records
    .split(' ')
    .filter((seq) => seq !== '')
    .map(Number)
    .filter((seq) => view.has(key('payload', seq)))
