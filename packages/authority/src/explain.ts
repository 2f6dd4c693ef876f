/**
 * From a commit back to everything that stands behind it: the run, who acted, the chain of grants with the names
 * in it, what was read, and the proof that the entry stands in the record.
 * @clause L1.5
 */
import { LIMITS, fail, isNodeError, type Grant, type Lease } from '@csb/core'
import { commitsBetween, readCommit } from '@csb/files'
import { prefix, tail, type View } from '@csb/store'
import { earlierReads } from './earlier-reads.ts'
import { findCard } from './gate.ts'
import { grantHash, leaseOf } from './grant.ts'
import type { Rank } from './rank.ts'
import { witnessState, type KnownCheckpoint } from './checkpoints.ts'
import { readRecords, recordAt, recordOfCommit } from './record.ts'
import type { RecordHeader, RecordPayload } from './record-row.ts'
import { proveInclusion, type InclusionProof } from './record-check.ts'
import { importedCommits, importedEvidence } from './record-evidence.ts'
import { isRevoked } from './revocation.ts'
import { storedChain } from './stored-grants.ts'
import { trusted } from './trust.ts'

/** Fewer digits of an object id than this find too much. */
const SHORTEST_PREFIX = 4
/** Commits that a prefix may fit and that are told. */
const MOST_MATCHES = 9
/** Commits that a merge brought in and that are told. */
const MOST_MERGED = 32

/** One grant of the chain, as a person asks for it. */
export type ExplainedGrant = {
  readonly hash: string
  readonly id: string
  readonly from: { readonly name: string; readonly did: string }
  readonly to: { readonly name: string; readonly did: string }
  readonly level: Rank
  readonly scope: readonly string[]
  /** what it lets be touched; null where it only lends a voice */
  readonly lease: Lease | null
  readonly expiresAt: number | null
  /** whether it is revoked now */
  readonly revoked: boolean
}

export type ExplainedApproval = {
  readonly card: string
  /** digest of the changes that were approved */
  readonly diff: string
  readonly approver: { readonly name: string | null; readonly did: string }
  /** ms since epoch */
  readonly decidedAt: number
}

/** A commit that came in with a merge. Of one that stands in no entry of this record nothing else is known. */
export type ExplainedMerge = {
  readonly commit: string
  readonly entry: Pick<Explanation, 'seq' | 'at' | 'actor' | 'run' | 'readCount' | 'reads' | 'earlier'> | null
}

/** Who vouches for an entry besides this node. */
export type Vouched = Pick<KnownCheckpoint, 'size' | 'root' | 'at'> & {
  readonly cosigners: readonly {
    readonly did: string
    readonly name: string | null
    /** ms since epoch */ readonly at: number
  }[]
}

export type ExplainedImport = {
  /** home that it came with */
  readonly home: string
  /** in whose record it stands, by this node's own name for it */
  readonly node: { readonly did: string; readonly name: string | null }
  /** true where it is what that node signed; the payload, where it was not erased, is then the one it committed to */
  readonly signed: boolean
}

export type Explanation = {
  /** null where the run made none, or it was erased */
  readonly commit: string | null
  readonly seq: number
  /** ms since epoch */
  readonly at: number
  readonly operation: string
  readonly outcome: RecordHeader['outcome']
  readonly actor: {
    readonly did: string | null
    /** this node's own name for it, or as granted */ readonly name: string | null
  }
  readonly door: string
  readonly run: string | null
  /** null where none was used; `chain` is root first, empty where the grants are not kept here */
  readonly lease: { readonly hash: string; readonly chain: readonly ExplainedGrant[] } | null
  /** the grant on whose word it was done, where that is another's: its chain as `lease` has it; null where there is none */
  readonly basis: { readonly hash: string; readonly chain: readonly ExplainedGrant[] } | null
  /** the person's decision that let it happen; null where none was needed */
  readonly approval: ExplainedApproval | null
  readonly label: string
  /** how many things were read, which stays when the rest is erased */
  readonly readCount: number
  /** null where the payload was erased; fewer than they were where a snapshot can not be read */
  readonly reads: RecordPayload['reads'] | null
  /** What was read under the same lease and stands in entries before this one, so far as it is not listed again. */
  readonly earlier: {
    readonly reads: RecordPayload['reads']
    /** entries whose payload was erased */
    readonly erased: number
    /** at least so many further things were read before, which are not told */
    readonly more: number
  }
  /** the commits that a merge brought in, newest first, and by what right each was made; empty where it is no merge */
  readonly merged: readonly ExplainedMerge[]
  /** further ones were brought in, which are not told */
  readonly mergedMore: boolean
  readonly effect: RecordPayload['effect'] | null
  /** Where it is an entry of another node's record, which came with a home. That it stands there is not proved here. */
  readonly imported: ExplainedImport | null
  /** of its leaf in the whole record now; null where the entry is of another node's record */
  readonly inclusion: InclusionProof | null
  /** the newest settled checkpoint, where it covers the entry; null: nobody but this node vouches for it */
  readonly settled: Vouched | null
}

/**
 * @param oidPrefix at least 4 hex digits of the commit's object id
 * @throws INVALID_INPUT where the prefix is too short or fits several commits, which the details list
 * @throws NOT_FOUND
 * @clause L1.5
 */
export async function explainCommit(view: View, oidPrefix: string): Promise<Explanation> {
  const { commit, home } = await resolve(view, oidPrefix)
  const seq = recordOfCommit(view, commit)
  if (seq !== undefined) return explanationOf(view, seq, commit)
  return home === undefined ? fail('NOT_FOUND', { commit }) : importedExplanation(view, home, commit)
}

/**
 * The same from the id of a run, as the trailer of a commit names it, where the commit itself is not known here: the
 * newest entry of the run that made a commit, else its newest.
 * @throws NOT_FOUND
 * @clause L1.5
 */
export async function explainRun(view: View, run: string): Promise<Explanation> {
  const items = await readRecords(view, { run, limit: LIMITS.listMax, reverse: true })
  const found = items.find(({ payload }) => typeof payload?.commit === 'string') ?? items[0]
  if (found === undefined) return fail('NOT_FOUND', { run })
  return explanationOf(view, found.header.seq, found.payload?.commit ?? null)
}

async function explanationOf(view: View, seq: number, commit: string | null): Promise<Explanation> {
  const { header, payload } = recordAt(view, seq)
  return {
    ...entryOf(view, commit, { header, payload }),
    earlier: await earlierOf(view, header, payload),
    ...(await mergedIn(view, commit, payload)),
    approval: commit === null ? null : approvalOf(view, commit, payload),
    imported: null,
    inclusion: proveInclusion(view, seq),
    settled: vouchedFor(view, seq),
  }
}

/** A card of another node is not here, nor are its checkpoints; grants are where they were shown here. */
function importedExplanation(view: View, home: string, commit: string): Explanation {
  const { header, payload, node, isSigned } = importedEvidence(view, home, commit)
  return {
    ...entryOf(view, commit, { header, payload }),
    earlier: { reads: [], erased: 0, more: 0 },
    merged: [],
    mergedMore: false,
    approval: null,
    imported: { home, node: { did: node, name: nameOf(view, node, []) }, signed: isSigned },
    inclusion: null,
    settled: null,
  }
}

type Entry = { readonly header: RecordHeader; readonly payload: RecordPayload | null }

function entryOf(view: View, commit: string | null, { header, payload }: Entry) {
  const chain = header.lease === null ? [] : (storedChain(view, header.lease) ?? [])
  return {
    commit,
    seq: header.seq,
    at: header.ts,
    operation: header.operation,
    outcome: header.outcome,
    actor: { did: header.actor, name: nameOf(view, header.actor, chain) },
    door: header.door,
    run: header.run,
    lease: header.lease === null ? null : { hash: header.lease, chain: explainedChain(view, header.lease) },
    basis: header.basis === null ? null : { hash: header.basis, chain: explainedChain(view, header.basis) },
    label: header.label,
    readCount: header.reads,
    reads: payload?.reads ?? null,
    effect: payload?.effect ?? null,
  }
}

/** What the entries before it list that were written under the same lease, and its own does not. */
async function earlierOf(
  view: View,
  { lease, seq }: RecordHeader,
  payload: RecordPayload | null,
): Promise<Explanation['earlier']> {
  const { reads, erased, more } = await earlierReads(view, lease, seq)
  const listed = new Set((payload?.reads ?? []).map(nameOfRead))
  const others = reads.filter((read) => !listed.has(nameOfRead(read)))
  const told = others.slice(-LIMITS.earlierReads)
  return { reads: told, erased, more: more + others.length - told.length }
}

const nameOfRead = ({ home, path, oid }: RecordPayload['reads'][number]): string => `${home}\0${path}\0${oid}`

/** The commits that its other parents brought in. */
async function mergedIn(
  view: View,
  commit: string | null,
  payload: RecordPayload | null,
): Promise<Pick<Explanation, 'merged' | 'mergedMore'>> {
  const home = payload?.effect['home']
  const brought = commit === null || typeof home !== 'string' ? [] : broughtBy(view, home, commit)
  if (brought === undefined) return { merged: [], mergedMore: true }
  const merged: ExplainedMerge[] = []
  for (const oid of brought.slice(0, MOST_MERGED)) {
    const seq = recordOfCommit(view, oid)
    merged.push({ commit: oid, entry: seq === undefined ? null : await mergedEntry(view, oid, seq) })
  }
  return { merged, mergedMore: brought.length > MOST_MERGED }
}

async function mergedEntry(view: View, commit: string, seq: number): Promise<ExplainedMerge['entry']> {
  const { header, payload } = recordAt(view, seq)
  const { at, actor, run, readCount, reads } = entryOf(view, commit, { header, payload })
  return { seq, at, actor, run, readCount, reads, earlier: await earlierOf(view, header, payload) }
}

/** Newest first; undefined where they are too many to be told, or some of their history is not here. */
function broughtBy(view: View, home: string, commit: string): readonly string[] | undefined {
  try {
    const [first = '', ...others] = readCommit(view, home, commit).parents
    const found = others.flatMap((from) =>
      commitsBetween(view, home, { from, without: first, limit: LIMITS.gateCommits }),
    )
    return [...new Set(found)]
  } catch (error) {
    if (isNodeError(error, 'TOO_LARGE') || isNodeError(error, 'NOT_FOUND')) return undefined
    throw error
  }
}

function vouchedFor(view: View, seq: number): Vouched | null {
  const { settled } = witnessState(view)
  if (settled === null || settled.size <= seq) return null
  const { size, root, at, cosigners } = settled
  return { size, root, at, cosigners: cosigners.map((one) => ({ ...one, name: nameOf(view, one.did, []) })) }
}

/** A commit of this node's record, or of evidence that came with a home. */
async function resolve(view: View, oidPrefix: string): Promise<{ commit: string; home: string | undefined }> {
  if (!/^[0-9a-f]+$/.test(oidPrefix) || oidPrefix.length < SHORTEST_PREFIX) fail('INVALID_INPUT', { commit: oidPrefix })
  const imported = await importedCommits(view, oidPrefix, MOST_MATCHES)
  const own: string[] = []
  const start = `${prefix('recordByCommit')}${oidPrefix}`
  for await (const [fullKey] of view.range({ prefix: start, limit: MOST_MATCHES }))
    own.push(tail(fullKey, 'recordByCommit'))
  const matches = [...new Set([...own, ...imported.keys()])].slice(0, MOST_MATCHES)
  if (matches.length > 1 && !matches.includes(oidPrefix)) fail('INVALID_INPUT', { commit: oidPrefix, matches })
  const commit = matches.length > 1 ? oidPrefix : (matches[0] ?? fail('NOT_FOUND', { commit: oidPrefix }))
  return { commit, home: imported.get(commit) }
}

const explainedChain = (view: View, hash: string): readonly ExplainedGrant[] =>
  (storedChain(view, hash) ?? []).map((grant) => explained(view, grant))

function explained(view: View, grant: Grant): ExplainedGrant {
  const { id, grantor, grantor_key, grantee, grantee_key, level, scope, expires_at } = grant.delegation
  const hash = grantHash(grant)
  return {
    hash,
    id,
    from: { name: trusted(view, grantor_key)?.name ?? grantor, did: grantor_key },
    to: { name: trusted(view, grantee_key)?.name ?? grantee, did: grantee_key },
    level,
    scope,
    lease: leaseOf(grant),
    expiresAt: expires_at,
    revoked: isRevoked(view, hash),
  }
}

/** Only of a card that was approved and says it made this very commit. */
function approvalOf(view: View, commit: string, payload: RecordPayload | null): ExplainedApproval | null {
  const { card: id } = payload?.effect ?? {}
  const entry = typeof id === 'string' && payload?.commit === commit ? findCard(view, id) : undefined
  if (entry?.approval === undefined || entry.approval === null || entry.state !== 'approved') return null
  const { approver, decided_at: decidedAt, diff } = entry.approval.gate
  return { card: entry.card.id, diff, approver: { did: approver, name: nameOf(view, approver, []) }, decidedAt }
}

function nameOf(view: View, did: string | null, chain: readonly Grant[]): string | null {
  if (did === null) return null
  const granted = chain.find(({ delegation }) => delegation.grantee_key === did)?.delegation.grantee
  return trusted(view, did)?.name ?? granted ?? null
}
