/**
 * What may hold words of something that was read, by what the record says of who read it: the run that did, and the
 * session under one lease that did, from then on. What went other ways is not found: through a person's head, through
 * another run that read what was made first, through another node.
 * @clause L1.5, L3.4
 */
import { fromHex, toBase64Url, type Grant } from '@csb/core'
import { key, prefix, tail, type ReadEntry, type View } from '@csb/store'
import { readRecords, recordAt, type RecordItem } from './record.ts'

export type MadeAfter = {
  /** object ids of commits that were made by whoever had read it */
  readonly commits: ReadonlySet<string>
  /** dids of nodes that work was handed to, with the ids of the notes that went along */
  readonly handed: readonly { readonly did: string; readonly notes: readonly string[] }[]
}

/** Entries of one run that are looked at together. */
const PAGE = 500

/**
 * @param mentions numbers of the entries that name what was read
 * @param isMeant is it one of the things whose words are looked for?
 * @param isPerson is that actor a person at a command line? What a person read goes on in nothing the record sees.
 * @clause L1.5
 */
export async function madeAfterReading(
  view: View,
  mentions: readonly number[],
  isMeant: (read: ReadEntry) => boolean,
  isPerson: (actor: string) => boolean,
): Promise<MadeAfter> {
  const commits = new Set<string>()
  const handed: { did: string; notes: readonly string[] }[] = []
  const runs = new Map<string, number>()
  const leases = new Map<string, number>()
  for (const seq of mentions.toSorted((a, b) => a - b)) {
    const item = recordAt(view, seq)
    const { header, payload } = item
    if (payload === null) continue
    const { to, notes } = payload.effect
    if (typeof to === 'string' && Array.isArray(notes)) handed.push({ did: to, notes: notes.map(String) })
    if (!payload.reads.some(isMeant)) continue
    for (const oid of commitsOf(item)) commits.add(oid)
    const { run, lease, actor } = header
    if (run !== null && !runs.has(run)) runs.set(run, seq)
    const isSession = lease !== null && actor !== null && !isPerson(actor) && !isErrand(view, lease)
    if (isSession && !leases.has(lease)) leases.set(lease, seq)
  }
  for (const [run, since] of runs)
    for await (const item of entriesOf(view, run, since)) for (const oid of commitsOf(item)) commits.add(oid)
  for await (const item of entriesUnder(view, leases)) for (const oid of commitsOf(item)) commits.add(oid)
  return { commits, handed }
}

const commitsOf = ({ payload }: RecordItem): readonly string[] => {
  const more = payload?.effect['commits']
  return [payload?.commit ?? [], Array.isArray(more) ? more.map(String) : []].flat()
}

/** What was lent for one task is one run, which is looked for by its name. */
const isErrand = (view: View, lease: string): boolean =>
  (view.getJson<Grant>(key('grant', lease))?.delegation.task ?? null) !== null

/** Entries of a run, from one of them on. */
async function* entriesOf(view: View, run: string, since: number): AsyncGenerator<RecordItem> {
  for (let after = since; ;) {
    const items = await readRecords(view, { run, after, limit: PAGE })
    yield* items
    const last = items.at(-1)
    if (last === undefined || items.length < PAGE) return
    after = last.header.seq
  }
}

/**
 * Entries under some leases, each from one of them on. Looked for in all headers: the index by lease has those only that
 * list reads, and what is asked for here made commits, with reads or without.
 */
async function* entriesUnder(view: View, leases: ReadonlyMap<string, number>): AsyncGenerator<RecordItem> {
  if (leases.size === 0) return
  const spelled = [...leases.keys()].map(spelledLease)
  const from = Math.min(...leases.values())
  for await (const [fullKey, bytes] of view.range({ prefix: prefix('header'), after: key('header', from) })) {
    const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (!spelled.some((lease) => row.includes(lease))) continue
    const item = recordAt(view, Number(tail(fullKey, 'header')))
    const since = leases.get(item.header.lease ?? '')
    if (since !== undefined && item.header.seq > since) yield item
  }
}

/** As a stored header spells it. */
const spelledLease = (lease: string): string => toBase64Url(fromHex(lease.replace(/^sha256:/, '')) ?? new Uint8Array())
