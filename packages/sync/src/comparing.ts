/**
 * How both sides find out where they differ: each tells of every compartment that the other may see, in pages, and of
 * the set of what was forgotten.
 * @clause L4.1, L4.2
 */
import { LIMITS, fail } from '@csb/core'
import type { CompartmentSummary } from './messages.ts'
import { both, receivePages, sendPages, type Port } from './pages.ts'
import { rootOf, summarize, tombstoneRoot, type Holdings } from './summary.ts'

type Theirs = { readonly compartments: readonly CompartmentSummary[]; readonly tombstones: string }

/**
 * Tell the other side what there is for it, and hear what it has.
 * @throws TOO_LARGE where there are more labels here than a session tells; PEER_MISBEHAVED also where one comes twice
 */
export async function exchangeSummaries(port: Port, type: 'hello' | 'done', holdings: Holdings): Promise<Theirs> {
  const tombstones = tombstoneRoot(holdings.tombstones)
  const mine = summarize(holdings)
  if (mine.length > LIMITS.syncLabels) fail('TOO_LARGE', { maxLabels: LIMITS.syncLabels })
  const theirs = new Map<string, CompartmentSummary>()
  let told = ''
  await both(
    sendPages(port, mine, (compartments, last) => ({ type, compartments, tombstones, last })),
    receivePages(
      port,
      type,
      ({ compartments }) => compartments,
      (page) => {
        for (const one of page.compartments) {
          if (theirs.has(one.label)) fail('PEER_MISBEHAVED', { reason: 'told twice', label: one.label })
          theirs.set(one.label, one)
        }
        if (theirs.size > LIMITS.syncLabels) fail('PEER_MISBEHAVED', { reason: 'no end', maxLabels: LIMITS.syncLabels })
        told = page.tombstones
      },
    ),
  )
  return { compartments: [...theirs.values()], tombstones: told }
}

/** Labels whose sets differ, sorted, each once; both sides compute the same list. */
export function differing(a: readonly CompartmentSummary[], b: readonly CompartmentSummary[]): string[] {
  const empty = rootOf([])
  const roots = (list: readonly CompartmentSummary[]) => new Map(list.map(({ label, root }) => [label, root]))
  const left = roots(a)
  const right = roots(b)
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((label) => (left.get(label) ?? empty) !== (right.get(label) ?? empty))
    .sort()
}
