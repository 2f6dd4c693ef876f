/**
 * Checking the flight recorder: the whole of it here, and single entries or growth elsewhere by short proofs.
 *
 * The whole check recomputes everything from the headers and trusts no stored hash.
 * @clause L1.6
 */
import { equalBytes, fail, fromHex, isNodeError, toHex } from '@csb/core'
import { key, prefix, tail, type View } from '@csb/store'
import {
  completedBy,
  consistencyPath,
  inclusionPath,
  isConsistent,
  leafHash,
  rootFromInclusion,
  rootOf,
} from './merkle.ts'
import { headOf, isCommitted, nodesOf } from './record.ts'
import { headerRow, headerText, readHeaderRow } from './record-row.ts'

/** That entry `seq` stands in the first `size`. Hashes in hex. */
export type InclusionProof = {
  readonly seq: number
  readonly size: number
  readonly leaf: string
  readonly root: string
  readonly proof: readonly string[]
}

/** That the first `from` entries are the beginning of the first `to`. Hashes in hex. */
export type ConsistencyProof = {
  readonly from: number
  readonly to: number
  readonly fromRoot: string
  readonly toRoot: string
  readonly proof: readonly string[]
}

export type RecordReport = {
  readonly ok: true
  readonly size: number
  /** hex */
  readonly root: string
  /** entries whose payload was erased */
  readonly erased: number
}

/**
 * Recompute the whole record: numbers, chain, tree, commitments. That each entry names the one before follows from its
 * hash, since the name is put in from there.
 * @throws RECORD_DAMAGED `{seq, reason}` for the first entry that does not hold
 * @clause L1.6
 */
export async function verifyRecord(view: View): Promise<RecordReport> {
  const head = await headFor(view)
  /** roots of full subtrees so far, by level; one that is merged upwards stays readable until overwritten */
  const full = new Map<string, Uint8Array>()
  const nodeAt = (level: number, index: number) => full.get(`${level}/${index}`) ?? fail('INTERNAL', { level, index })
  let next = 0
  let previous: string | null = null
  let ts = 0
  let erased = 0
  for await (const [fullKey, bytes] of view.range({ prefix: prefix('header') })) {
    const seq = Number(tail(fullKey, 'header'))
    if (seq !== next) damaged(next, 'header missing')
    if (seq >= head.size) damaged(seq, 'behind the head')
    const header = readHeaderRow(bytes, seq, previous)
    // one value, one row: another spelling of it is a change as well
    if (Buffer.compare(headerRow(header), bytes) !== 0) damaged(seq, 'header')
    if (header.ts < ts) damaged(seq, 'time')
    const leaf = leafHash(headerText(header))
    for (const node of completedBy(seq, leaf, nodeAt)) {
      const stored = view.get(key('node', node.level, node.index))
      if (stored === undefined || Buffer.compare(stored, node.hash) !== 0) damaged(seq, 'node')
      full.set(`${node.level}/${node.index}`, node.hash)
      dropChildren(full, node.level, node.index)
    }
    const payload = view.get(key('payload', seq))
    if (payload === undefined) erased++
    else if (!isCommitted(header, payload)) damaged(seq, 'payload')
    previous = toHex(leaf)
    ts = header.ts
    next++
  }
  if (next !== head.size) damaged(next, 'header missing')
  if (previous !== head.leaf || ts !== head.ts) damaged(Math.max(next - 1, 0), 'head')
  return { ok: true, size: next, root: toHex(rootOf(next, nodeAt)), erased }
}

/**
 * @param size of the tree to prove it in; default: all of it
 * @throws NOT_FOUND where there is no such entry, INVALID_INPUT where `size` is larger than the record
 */
export function proveInclusion(view: View, seq: number, size: number = headOf(view).size): InclusionProof {
  if (size > headOf(view).size) fail('INVALID_INPUT', { size })
  if (!Number.isSafeInteger(seq) || seq < 0 || seq >= size) fail('NOT_FOUND', { seq })
  const nodeAt = nodesOf(view)
  return {
    seq,
    size,
    leaf: toHex(nodeAt(0, seq)),
    root: toHex(rootOf(size, nodeAt)),
    proof: inclusionPath(seq, size, nodeAt).map(toHex),
  }
}

/** Does the proof lead from its leaf to its root? The reader still compares the root with one it trusts. */
export function verifyInclusion({ seq, size, leaf, root, proof }: InclusionProof): boolean {
  const hashes = hashesOf([leaf, root, ...proof])
  const [leafBytes, rootBytes, ...path] = hashes ?? []
  if (leafBytes === undefined || rootBytes === undefined) return false
  const computed = rootFromInclusion(seq, size, leafBytes, path)
  return computed !== undefined && equalBytes(computed, rootBytes)
}

/** @throws INVALID_INPUT unless `from` is at most `to` and `to` at most the size of the record */
export function proveConsistency(view: View, from: number, to: number = headOf(view).size): ConsistencyProof {
  const isOrdered = Number.isSafeInteger(from) && from >= 0 && from <= to && to <= headOf(view).size
  if (!isOrdered) fail('INVALID_INPUT', { from, to })
  const nodeAt = nodesOf(view)
  return {
    from,
    to,
    fromRoot: toHex(rootOf(from, nodeAt)),
    toRoot: toHex(rootOf(to, nodeAt)),
    proof: consistencyPath(from, to, nodeAt).map(toHex),
  }
}

/** Does the proof hold between its two roots? The reader still compares them with those it trusts. */
export function verifyConsistency({ from, to, fromRoot, toRoot, proof }: ConsistencyProof): boolean {
  const [fromBytes, toBytes, ...path] = hashesOf([fromRoot, toRoot, ...proof]) ?? []
  return fromBytes !== undefined && toBytes !== undefined && isConsistent(from, to, fromBytes, toBytes, path)
}

/** A head that can not be read is damage like any other: the last entry it spoke of is named. */
async function headFor(view: View): Promise<ReturnType<typeof headOf>> {
  try {
    return headOf(view)
  } catch (error) {
    if (!isNodeError(error, 'OBJECT_DAMAGED')) throw error
    let last = 0
    for await (const [fullKey] of view.range({ prefix: prefix('header'), limit: 1, reverse: true }))
      last = Number(tail(fullKey, 'header'))
    return damaged(last, 'head')
  }
}

function hashesOf(texts: readonly string[]): readonly Uint8Array[] | undefined {
  const hashes: Uint8Array[] = []
  for (const text of texts) {
    const bytes = fromHex(text)
    if (bytes?.byteLength !== 32) return undefined
    hashes.push(bytes)
  }
  return hashes
}

/** What lies below a full subtree is not needed any more: memory stays within one path. */
function dropChildren(full: Map<string, Uint8Array>, level: number, index: number): void {
  full.delete(`${level - 1}/${index * 2}`)
  full.delete(`${level - 1}/${index * 2 + 1}`)
}

function damaged(seq: number, reason: string): never {
  fail('RECORD_DAMAGED', { seq, reason })
}
