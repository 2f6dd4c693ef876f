/**
 * What a card is about, for each kind of card: computed from the objects, the record and the grants of this node, when
 * it is asked for and again when it is approved. Nothing is changed here.
 * @clause L1.7, L3.4
 */
import { LIMITS, dominates, fail, formatLabel, parseLabel, sha256Hex } from '@csb/core'
import {
  currentKey,
  hexOf,
  policyDigest,
  trusted,
  type ForgetFacts,
  type GateChange,
  type GateKind,
  type GateRequest,
  type GateSubject,
} from '@csb/authority'
import {
  commitsBetween,
  getHome,
  listRefs,
  previewMerge,
  previewRelabel,
  readBlob,
  type MergeBranches,
} from '@csb/files'
import { NOT_COVERED, planForget, type ForgetItem } from '@csb/guard'
import { getState } from '@csb/memory'
import { prefix, tail, type View } from '@csb/store'
import { peerRights } from '../session/credentials.ts'
import type { Parts } from '../operation.ts'
import { derivedIn, lookedAt, recordsIn } from './survey.ts'
import { mintSubject } from './wishes.ts'

type Own = Pick<GateSubject, 'home' | 'owner' | 'policy'>

type Asked = { readonly parts: Parts; readonly view: View; readonly request: GateRequest; readonly own: Own }

const SUBJECTS: Readonly<Record<GateKind, (asked: Asked) => GateSubject | Promise<GateSubject>>> = {
  merge: ({ view, request, own }) => mergeSubject(view, branchesOf(request), own),
  'lower-label': ({ view, request, own }) =>
    request['note'] === undefined ? relabelSubject(view, request, own) : noteSubject(view, request, own),
  forget: ({ parts, view, request, own }) => forgetSubject(parts, view, request, own),
  mint: ({ view, request, own }) => mintSubject(view, request, own),
}

/** Copies told one by one; a person reads no more. */
const TOLD_COPIES = 32

/**
 * The subject of a request as it is now.
 * @throws NOT_FOUND, FORGOTTEN, PROTECTED where what it is about is not there any more
 */
export async function subjectNow(parts: Parts, view: View, request: GateRequest): Promise<GateSubject> {
  const { home = '' } = request
  const owner = ownerNow(view, home)
  const refs = await listRefs(view, home)
  const guarded = refs.filter((ref) => ref.protected).map(({ branch }) => branch)
  const own = { home, owner, policy: policyDigest({ home, owner, protected: guarded }) }
  return SUBJECTS[request.kind]({ parts, view, request, own })
}

/** Who decides is who speaks for the owner now: a former key decides nothing any more. @throws NOT_FOUND */
export const ownerNow = (view: View, home: string): string => currentKey(view, getHome(view, home).owner)

export const branchesOf = ({ home = '', from = '', into = '' }: GateRequest): MergeBranches => ({ home, from, into })

/** Ids of notes as a request keeps them. */
export const idsOf = ({ ids = '' }: GateRequest): string[] => ids.split(' ')

function mergeSubject(view: View, branches: MergeBranches, own: Own): GateSubject {
  const { ours, theirs, tree, manifest, conflicts } = previewMerge(view, branches)
  const { home, from, into } = branches
  return {
    ...own,
    kind: 'merge',
    target: into,
    source: from,
    base: ours,
    head: theirs,
    resultTree: tree,
    changes: manifest,
    conflicts: conflicts.length,
    commits: commitsBetween(view, home, { from: theirs, without: ours, limit: LIMITS.gateCommits }),
  }
}

function relabelSubject(view: View, request: GateRequest, own: Own): GateSubject {
  const { home } = own
  const { branch = '', path = '', label = '' } = request
  const { base, oid, files } = previewRelabel(view, { home, branch, path, label: parseLabel(label) })
  if (files.length > LIMITS.gateChanges) fail('TOO_LARGE', { maxChanges: LIMITS.gateChanges })
  return {
    ...own,
    kind: 'lower-label',
    target: `${branch}:${path}`,
    source: label,
    base,
    head: oid,
    resultTree: null,
    changes: files,
    conflicts: 0,
    commits: [],
  }
}

function noteSubject(view: View, request: GateRequest, own: Own): GateSubject {
  const { home } = own
  const { note = '', label = '' } = request
  const state = getState(view, home, note) ?? fail('NOT_FOUND', { home, note })
  const bytes = readBlob(view, home, state.oid)
  return {
    ...own,
    kind: 'lower-label',
    target: note,
    source: label,
    base: state.oid,
    head: state.oid,
    resultTree: null,
    changes: [relabelled(state.path, bytes, state.label, formatLabel(parseLabel(label)))],
    conflicts: 0,
    commits: [],
  }
}

/** The words stay, the label does not. */
function relabelled(path: string, bytes: Uint8Array, before: string, after: string): GateChange {
  const sha256 = sha256Hex(bytes)
  const size = bytes.byteLength
  return {
    op: 'label',
    path,
    mode_old: null,
    mode_new: null,
    sha256_old: sha256,
    sha256_new: sha256,
    size_old: size,
    size_new: size,
    label_old: before,
    label_new: after,
  }
}

/** Everything that forgetting these notes does and does not reach; `head` is the digest of the whole plan. */
async function forgetSubject(parts: Parts, view: View, request: GateRequest, own: Own): Promise<GateSubject> {
  const { home } = own
  const { reason = '' } = request
  const ids = idsOf(request)
  const items = await planForget(view, home, ids, lookedAt(request))
  const records = recordsIn(view, request)
  const derived = derivedIn(view, request)
  const holders = await holdersOf(parts, view, home, items)
  const copies = items.flatMap(({ kept }) => kept.map(({ branch, path }) => ({ branch, path })))
  const facts: ForgetFacts = {
    kind: 'forget',
    notes: items.length,
    versions: items.reduce((sum, { versions }) => sum + versions.length, 0),
    copies: copies.slice(0, TOLD_COPIES),
    more_copies: Math.max(copies.length - TOLD_COPIES, 0),
    holders: holders.map((did) => ({ did, name: trusted(view, did)?.name ?? null })),
    records: records.length,
    derived,
    not_covered: [...NOT_COVERED],
    reason,
  }
  return {
    ...own,
    kind: 'forget',
    target: ids.length === 1 ? (ids[0] ?? '') : `${ids.length} notes`,
    source: 'memory',
    base: hexOf(items.map(({ id, oid }) => [id, oid])),
    head: hexOf({ v: 1, home, reason, notes: items, holders, records, derived, not_covered: NOT_COVERED }),
    resultTree: null,
    changes: items.map(goneNote).toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    conflicts: 0,
    commits: [],
    facts,
  }
}

const goneNote = ({ path, sha256, size, label }: ForgetItem): GateChange => ({
  op: 'delete',
  path,
  mode_old: null,
  mode_new: null,
  sha256_old: sha256,
  sha256_new: null,
  size_old: size,
  size_new: null,
  label_old: label,
  label_new: null,
})

/** Peers that were in step with the home and may see one of the notes; one whose right ended may hold it still. */
async function holdersOf(parts: Parts, view: View, home: string, items: readonly ForgetItem[]): Promise<string[]> {
  const dids = new Set<string>()
  for await (const [row] of view.range({ prefix: prefix('syncPeer') })) {
    const [did = '', of] = tail(row, 'syncPeer').split('/')
    if (of !== home) continue
    const { clearance } = peerRights(parts, did, home)
    if (clearance === undefined || items.some(({ label }) => dominates(clearance, parseLabel(label)))) dids.add(did)
  }
  return [...dids].sort()
}
