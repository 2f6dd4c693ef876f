/**
 * RFC 6962 Merkle trees: hashes, roots, inclusion and consistency proofs. Pure: nodes come from a function.
 *
 * A node is named by its level (0 for leaves) and its index there; only nodes whose subtree is full are ever
 * asked for, so what was stored once never changes.
 * @clause L1.6
 */
import { equalBytes, sha256 } from '@csb/core'

/** Gives the 32-byte hash of a full subtree: `level` 0 is a leaf, `index` counts at that level. */
export type NodeSource = (level: number, index: number) => Uint8Array

const HASH_BYTES = 32

/** @returns 32 bytes */
export function leafHash(entry: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + entry.byteLength)
  bytes[0] = 0
  bytes.set(entry, 1)
  return sha256(bytes)
}

/** @returns 32 bytes */
export function innerHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + 2 * HASH_BYTES)
  bytes[0] = 1
  bytes.set(left, 1)
  bytes.set(right, 1 + HASH_BYTES)
  return sha256(bytes)
}

/**
 * The full subtrees that the leaf `index` completes, lowest first, the leaf itself among them.
 * @param nodeAt must know every node of the tree before this leaf
 */
export function completedBy(
  index: number,
  leaf: Uint8Array,
  nodeAt: NodeSource,
): readonly { level: number; index: number; hash: Uint8Array }[] {
  const nodes = [{ level: 0, index, hash: leaf }]
  let current = { level: 0, index, hash: leaf }
  while (current.index % 2 === 1) {
    const hash = innerHash(nodeAt(current.level, current.index - 1), current.hash)
    current = { level: current.level + 1, index: (current.index - 1) / 2, hash }
    nodes.push(current)
  }
  return nodes
}

/** Root of the first `size` leaves; of none, the hash of nothing. */
export const rootOf = (size: number, nodeAt: NodeSource): Uint8Array =>
  size === 0 ? sha256('') : subtree(0, size, nodeAt)

/** Hashes from the leaf upwards that prove leaf `index` in the first `size`. */
export function inclusionPath(index: number, size: number, nodeAt: NodeSource): Uint8Array[] {
  return pathOf(index, 0, size, nodeAt)
}

/** Hashes that prove the first `from` leaves to be the beginning of the first `to`. */
export function consistencyPath(from: number, to: number, nodeAt: NodeSource): Uint8Array[] {
  return from === 0 || from === to ? [] : subProof(from, 0, to, true, nodeAt)
}

/**
 * The root that a path leads to, or undefined where the path has the wrong length.
 * @param leaf 32-byte leaf hash
 */
export function rootFromInclusion(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: readonly Uint8Array[],
): Uint8Array | undefined {
  if (!isCount(index) || !isCount(size) || index >= size || !areHashes([leaf, ...path])) return undefined
  let node = leaf
  let at = index
  let last = size - 1
  for (const sibling of path) {
    if (last === 0) return undefined
    if (at % 2 === 1 || at === last) {
      node = innerHash(sibling, node)
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)]
    } else {
      node = innerHash(node, sibling)
    }
    ;[at, last] = [half(at), half(last)]
  }
  return last === 0 ? node : undefined
}

/** Do both roots follow from the path, the smaller tree being the beginning of the larger? */
export function isConsistent(
  from: number,
  to: number,
  fromRoot: Uint8Array,
  toRoot: Uint8Array,
  path: readonly Uint8Array[],
): boolean {
  if (!isCount(from) || !isCount(to) || from > to || !areHashes([fromRoot, toRoot, ...path])) return false
  if (from === to) return path.length === 0 && equalBytes(fromRoot, toRoot)
  if (from === 0) return path.length === 0 && equalBytes(fromRoot, sha256(''))
  let at = from - 1
  let last = to - 1
  while (at % 2 === 1) [at, last] = [half(at), half(last)]
  const [first, ...rest] = at === 0 ? [fromRoot, ...path] : path
  if (first === undefined) return false
  let small = first
  let large = first
  for (const sibling of rest) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      small = innerHash(sibling, small)
      large = innerHash(sibling, large)
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)]
    } else {
      large = innerHash(large, sibling)
    }
    ;[at, last] = [half(at), half(last)]
  }
  return last === 0 && equalBytes(small, fromRoot) && equalBytes(large, toRoot)
}

/** Hash of the leaves `begin` to `end`; `begin` is a multiple of the size of the full subtree that starts there. */
function subtree(begin: number, end: number, nodeAt: NodeSource): Uint8Array {
  const size = end - begin
  const width = splitOf(size)
  if (size === 1 || size === width * 2) {
    const full = size === 1 ? 1 : width * 2
    return nodeAt(Math.log2(full), begin / full)
  }
  return innerHash(subtree(begin, begin + width, nodeAt), subtree(begin + width, end, nodeAt))
}

function pathOf(index: number, begin: number, end: number, nodeAt: NodeSource): Uint8Array[] {
  if (end - begin === 1) return []
  const middle = begin + splitOf(end - begin)
  return index < middle
    ? [...pathOf(index, begin, middle, nodeAt), subtree(middle, end, nodeAt)]
    : [...pathOf(index, middle, end, nodeAt), subtree(begin, middle, nodeAt)]
}

/** RFC 6962 2.1.2; `isWhole` while the smaller tree's root is itself known to the verifier. */
function subProof(from: number, begin: number, end: number, isWhole: boolean, nodeAt: NodeSource): Uint8Array[] {
  if (from === end) return isWhole ? [] : [subtree(begin, end, nodeAt)]
  const middle = begin + splitOf(end - begin)
  return from <= middle
    ? [...subProof(from, begin, middle, isWhole, nodeAt), subtree(middle, end, nodeAt)]
    : [...subProof(from, middle, end, false, nodeAt), subtree(begin, middle, nodeAt)]
}

/** The largest power of two below `size`; for 1, a half. */
const splitOf = (size: number): number => 2 ** (Math.ceil(Math.log2(size)) - 1)

const half = (count: number): number => Math.floor(count / 2)
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0
const areHashes = (hashes: readonly Uint8Array[]): boolean => hashes.every((hash) => hash.byteLength === 32)
