/**
 * Checking the flight recorder: the whole of it here, and single entries or growth elsewhere by short proofs.
 *
 * The whole check recomputes everything from the headers and trusts no stored hash.
 * @clause L1.6
 */
import { equalBytes, fail, fromHex, isNodeError, sha256, toHex } from '@csb/core'
import { prefix, tail, type View } from '@csb/store'
import {
  completedBy,
  consistencyPath,
  inclusionPath,
  isConsistent,
  leafHash,
  rootFromInclusion,
  rootOf,
} from './merkle.ts'
import { headOf, nodesOf } from './record.ts'
import { commitmentIn, leafOfRow, nodeIn, splitRow, timeOf } from './record-row.ts'

/** A payload row that belongs to no header. */
const STRAY = 'payload without a header'

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
 * Recompute the whole record: numbers, chain, tree, commitments. Headers and payloads are read side by side, each from
 * front to back; memory stays within one path of the tree.
 * @throws RECORD_DAMAGED `{seq, reason}` for the first entry that does not hold
 * @clause L1.6
 */
export async function verifyRecord(view: View): Promise<RecordReport> {
  const head = await headFor(view)
  const payloads = follow(view, prefix('payload'))
  /** the last full subtree of each level: the next one there is its sibling, and in the end they are the peaks */
  const full: Uint8Array[] = []
  const nodeAt = (level: number) => full[level] ?? fail('INTERNAL', { level })
  const start = prefix('header')
  let next = 0
  let leaf: Uint8Array | undefined
  let before = 0
  let erased = 0
  try {
    for await (const rows of view.pages({ prefix: start })) {
      for (const [fullKey, bytes] of rows) {
        const seq = Number(fullKey.slice(start.length))
        if (seq !== next) damaged(next, 'header missing')
        if (seq >= head.size) damaged(seq, 'behind the head')
        const row = splitRow(bytes, seq)
        const ts = timeOf(row, seq)
        if (ts < before) damaged(seq, 'time')
        leaf = leafHash(leafOfRow(leaf, row.said))
        for (const { level, hash } of completedBy(seq, leaf, nodeAt)) {
          if (!isSame(hash, nodeIn(row.nodes, level))) damaged(seq, 'node')
          full[level] = hash
        }
        if (payloads.isSpent()) await payloads.more()
        const payload = payloads.at(fullKey.slice(start.length), seq)
        if (payload === undefined) erased++
        else if (!isSame(sha256(payload), commitmentIn(row))) damaged(seq, 'payload')
        before = ts
        next++
      }
    }
    if (payloads.isSpent()) await payloads.more()
    if (payloads.isLeft()) damaged(next, STRAY)
  } finally {
    await payloads.end()
  }
  if (next !== head.size) damaged(next, 'header missing')
  if (before !== head.ts) damaged(Math.max(next - 1, 0), 'head')
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

/** Values of one table, asked for in the order of their keys. */
function follow(view: View, start: string) {
  const pages = view.pages({ prefix: start })[Symbol.asyncIterator]()
  let page: readonly (readonly [string, Uint8Array])[] = []
  let next = 0
  let isOver = false
  return {
    /** Are there no rows left at hand, and perhaps further ones? */
    isSpent: (): boolean => next >= page.length && !isOver,
    /** Is there a row at hand that nobody asked for? */
    isLeft: (): boolean => next < page.length,
    more: async (): Promise<void> => {
      const { done, value } = await pages.next()
      isOver = done === true
      page = done === true ? [] : value
      next = 0
    },
    /**
     * @param at what follows the prefix in the key, behind that of the last call
     * @throws RECORD_DAMAGED where a row lies before that one which nobody asked for: it would hide all behind it
     */
    at: (at: string, seq: number): Uint8Array | undefined => {
      const [fullKey, value] = page[next] ?? []
      if (fullKey === undefined || fullKey > start + at) return undefined
      if (fullKey < start + at) damaged(seq, STRAY)
      next++
      return value
    },
    end: async (): Promise<void> => {
      await pages.return?.()
    },
  }
}

const isSame = (hash: Uint8Array, stored: Uint8Array | undefined): boolean =>
  stored !== undefined && Buffer.compare(hash, stored) === 0

function damaged(seq: number, reason: string): never {
  fail('RECORD_DAMAGED', { seq, reason })
}
